package slurm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dagbridge/dagbridge/integration/program"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

// node runs job scripts as a compute node would: bash, a PATH, and Slurm's variables.
type node struct {
	t    testing.TB
	site slurm.Site
}

func newNode(t testing.TB) node {
	t.Helper()
	return node{t, slurm.Site{WorkDir: t.TempDir(), User: "svc"}}
}

// job id and token of all submissions below.
const (
	jobID = "01910000-0000-7000-8000-000000000001"
	token = jobID + ".1"
)

// submission of a task, as the engine would make it.
func submission(task *dagbridgev1.Task) translators.Submission {
	if task.GetKey() == nil {
		task.Key = &dagbridgev1.TaskKey{Deployment: "default", Orchestrator: "cli", Workflow: "w", Run: "r", Task: "train"}
	}
	return translators.Submission{
		Token: token,
		Job:   &dagbridgev1.Job{Id: jobID, Key: task.GetKey(), TryNumber: 1, Owner: "svc"},
		Task:  task,
	}
}

func command(argv ...string) *dagbridgev1.Task {
	return &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: argv}}
}

// sh is a task that runs a line of shell.
func sh(line string) *dagbridgev1.Task { return command("sh", "-c", line) }

// end is how a job script ended.
type end struct {
	code           int
	stdout, stderr string
}

// start begins a submission's job script, with Slurm's variables for a job that is no array.
func (n node) start(s translators.Submission, slurmEnv ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	n.t.Helper()
	job, faults := slurm.Translate(n.site, s)
	require.Empty(n.t, faults)
	require.NoError(n.t, os.MkdirAll(job.WorkingDirectory, 0o770))
	for name, text := range job.Files {
		require.NoError(n.t, os.WriteFile(filepath.Join(job.WorkingDirectory, name), []byte(text), 0o600))
	}
	script := filepath.Join(n.t.TempDir(), "slurm_script")
	writeProgram(n.t, script, job.Text())
	// -u: the script must not use a variable that may be unset.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	n.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bash", "-u", script)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Dir = job.WorkingDirectory
	cmd.Env = append([]string{"PATH=" + job.Environment["PATH"], "SLURM_JOB_ID=7", "SLURMD_NODENAME=n1"}, slurmEnv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(n.t, cmd.Start())
	n.t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return cmd, &stdout, &stderr
}

func (n node) run(s translators.Submission, slurmEnv ...string) end {
	n.t.Helper()
	cmd, stdout, stderr := n.start(s, slurmEnv...)
	_ = cmd.Wait()
	return end{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// marker is the exit marker of a job's first attempt.
func (n node) marker(position int) slurm.Ending {
	n.t.Helper()
	text, err := os.ReadFile(slurm.ExitMarker(n.site, jobID, token, position))
	require.NoError(n.t, err)
	ending, err := slurm.ParseExitMarker(text)
	require.NoError(n.t, err)
	return ending
}

// outputs of a job; "" when it has left none.
func (n node) outputs(position int) string {
	n.t.Helper()
	text, err := os.ReadFile(slurm.OutputsPath(n.site, n.site.User, jobID, position))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(n.t, err)
	return string(text)
}

func TestTheProgramsExitCodeIsTheJobs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line string
		code int
	}{
		"success":       {"exit 0", 0},
		"failure":       {"exit 3", 3},
		"signal":        {"kill -KILL $$", 137},
		"segfault":      {"kill -SEGV $$", 139},
		"no such thing": {"exec /no/such/program", 127},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			before := time.Now().Add(-time.Second)
			got := n.run(submission(sh(c.line)))
			require.Equal(t, c.code, got.code, got.stderr)
			marker := n.marker(-1)
			require.Equal(t, "7", marker.NativeID)
			require.EqualValues(t, c.code, marker.ExitCode)
			require.Empty(t, marker.Sentence)
			require.WithinRange(t, marker.EndTime, before, time.Now().Add(time.Second))
			require.FileExists(t, slurm.StartMarker(n.site, jobID, token, -1))
			require.NotContains(t, got.stderr, "slurm_script")
		})
	}
}

func TestASecondNativeJobOfOneTryDoesNotRun(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := submission(sh("echo ran >> count; exit 3"))
	require.Equal(t, 3, n.run(s).code)
	before := n.marker(-1)
	for name, env := range map[string][]string{
		"another job":                             {"SLURM_JOB_ID=8"},
		"another job, requeued":                   {"SLURM_JOB_ID=8", "SLURM_RESTART_COUNT=4"},
		"an id of which the first is a beginning": {"SLURM_JOB_ID=77"},
	} {
		got := n.run(s, env...)
		require.Equal(t, slurm.ExitDuplicate, got.code, name)
		require.Contains(t, got.stderr, "already started, as Slurm job 7", name)
	}
	require.Equal(t, before, n.marker(-1), "the exit marker is the first job's")
	count, err := os.ReadFile(filepath.Join(slurm.Dir(n.site, jobID), "count"))
	require.NoError(t, err)
	require.Equal(t, "ran\n", string(count))
}

func TestARequeuedJobRunsAgain(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"TERM", "USR1", "INT"} {
		for _, code := range []int{0, 3} {
			n := newNode(t)
			// the signal goes to the wrapper, as one of Slurm's goes to all
			s := submission(sh(fmt.Sprintf("kill -%s $PPID; echo ran >> count; exit %d", signal, code)))
			require.Equal(t, code, n.run(s).code)
			require.True(t, n.marker(-1).Signalled)
			require.Equal(t, code, n.run(s, "SLURM_RESTART_COUNT=1").code)
			require.Equal(t, 1, n.marker(-1).Restarts)
			require.Equal(t, slurm.ExitDuplicate, n.run(s, "SLURM_RESTART_COUNT=1").code, "this restart has been")
			require.Equal(t, code, n.run(s, "SLURM_RESTART_COUNT=2").code)
			require.Equal(t, "ran\nran\nran\n", n.count())
		}
	}
}

func TestAJobThatIsNotToBeRequeuedRunsOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := submission(sh("kill -TERM $PPID; echo ran >> count"))
	s.Task.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{"no-requeue": ""}}
	require.Zero(t, n.run(s).code)
	require.Equal(t, slurm.ExitDuplicate, n.run(s, "SLURM_RESTART_COUNT=1").code)
	require.Equal(t, "ran\n", n.count())
}

func TestASignalMayReachTheWrapperLate(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := submission(sh(`echo ran >> count; (sleep 0.3; kill -TERM $PPID) & exit 3`))
	require.Equal(t, 3, n.run(s).code)
	require.True(t, n.marker(-1).Signalled)
	require.Equal(t, 3, n.run(s, "SLURM_RESTART_COUNT=1").code)
	require.Equal(t, "ran\nran\n", n.count())
}

// count is what programs have appended to the file of that name.
func (n node) count() string {
	n.t.Helper()
	count, err := os.ReadFile(filepath.Join(slurm.Dir(n.site, jobID), "count"))
	require.NoError(n.t, err)
	return string(count)
}

func TestAnEndThatSlurmForgotIsToldOnceMore(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 3} {
		s := submission(sh(fmt.Sprintf(`echo ran >> count; echo a=1 > "$DAGBRIDGE_OUTPUT"; exit %d`, code)))
		for name, again := range map[string][]string{
			"as if it had not started":                 nil,
			"as if it had vanished with its node":      {"SLURM_RESTART_COUNT=1"},
			"as if it had vanished, for a second time": {"SLURM_RESTART_COUNT=2"},
		} {
			n := newNode(t)
			require.Equal(t, code, n.run(s).code)
			before, outputs := n.marker(-1), n.outputs(-1)
			require.Equal(t, code == 0, outputs == `{"a":"1"}`)
			got := n.run(s, again...)
			require.Equal(t, code, got.code, name)
			require.Contains(t, got.stderr, fmt.Sprintf("had ended already, with %d,", code), name)
			require.Equal(t, before, n.marker(-1), name)
			require.Equal(t, outputs, n.outputs(-1), name)
			require.Equal(t, "ran\n", n.count(), name)
			require.Equal(t, slurm.ExitDuplicate, n.run(s, "SLURM_JOB_ID=8").code, name)
		}
	}
	t.Run("a success again and again", func(t *testing.T) {
		t.Parallel()
		n, s := newNode(t), submission(sh("echo ran >> count"))
		for restarts := range 4 {
			require.Zero(t, n.run(s, fmt.Sprintf("SLURM_RESTART_COUNT=%d", restarts)).code)
		}
		require.Equal(t, "ran\n", n.count())
		require.FileExists(t, slurm.SucceededPath(n.site, n.site.User, jobID, -1))
	})
	t.Run("a failure that is requeued all the same runs again", func(t *testing.T) {
		t.Parallel()
		n, s := newNode(t), submission(sh("echo ran >> count; exit 3"))
		for restarts := range 4 {
			require.Equal(t, 3, n.run(s, fmt.Sprintf("SLURM_RESTART_COUNT=%d", restarts)).code)
		}
		require.Equal(t, "ran\nran\n", n.count())
	})
}

func TestAFolderThatCannotBeWrittenToRunsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := submission(sh("echo ran"))
	// A file where the start marker's folder should be: that stops root too.
	require.NoError(t, os.MkdirAll(filepath.Dir(slurm.Dir(n.site, jobID)), 0o770))
	job, faults := slurm.Translate(n.site, s)
	require.Empty(t, faults)
	require.NoError(t, os.WriteFile(slurm.Dir(n.site, jobID), nil, 0o600))
	cmd := exec.Command("bash", "-u", "-c", job.Text())
	out, _ := cmd.CombinedOutput()
	require.Equal(t, slurm.ExitNoFolder, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), "cannot be written to")
	require.NotContains(t, string(out), "ran\n")
}

// A file system that is full takes the start marker's name, and not its text.
func TestAFileSystemThatIsFullRunsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := submission(sh("echo ran"))
	job, faults := slurm.Translate(n.site, s)
	require.Empty(t, faults)
	require.NoError(t, os.MkdirAll(slurm.Dir(n.site, jobID), 0o770))
	cmd := exec.Command("bash", "-c", "trap '' XFSZ; ulimit -f 0; exec bash -u -c \"$0\"", job.Text())
	cmd.Env = []string{"PATH=" + job.Environment["PATH"], "SLURM_JOB_ID=7"}
	out, _ := cmd.CombinedOutput()
	require.Equal(t, slurm.ExitNoFolder, cmd.ProcessState.ExitCode(), "%s", out)
	require.Contains(t, string(out), "cannot be written to")
	require.Equal(t, "ran\n", n.run(s).stdout, "once there is room the try may be started")
}

// Outputs that vanished with the folder are not taken for none.
func TestAFolderThatVanishesIsNoSuccess(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	dir := slurm.Dir(n.site, jobID)
	ended := n.run(submission(sh("echo auc=0.9 >$DAGBRIDGE_OUTPUT; mv " + dir + " " + dir + ".elsewhere")))
	require.Equal(t, 1, ended.code)
	require.Contains(t, ended.stderr, dir+" is not there any more on n1")
	require.Equal(t, 3, newNode(t).run(submission(sh("rm -r \"$PWD\"; exit 3"))).code, "a failure is told as it is")
}

func TestAMissingWorkingDirectoryFailsWithASentence(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	task := sh("echo ran")
	task.WorkingDirectory = "/no/such/folder"
	got := n.run(submission(task))
	require.Equal(t, 1, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "the working directory /no/such/folder cannot be entered on n1")
	require.Contains(t, n.marker(-1).Sentence, "/no/such/folder")
}

func TestTheProgramRunsInItsWorkingDirectory(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	task := sh("pwd")
	require.Equal(t, slurm.Dir(n.site, jobID)+"\n", n.run(submission(task)).stdout)
	n, task = newNode(t), sh("pwd")
	task.WorkingDirectory = t.TempDir()
	require.Equal(t, task.WorkingDirectory+"\n", n.run(submission(task)).stdout)
}

// await waits until a file is there.
func await(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, 20*time.Second, 5*time.Millisecond, path)
}

func TestSignals(t *testing.T) {
	t.Parallel()
	const line = `trap 'echo term; exit 5' TERM; trap 'echo usr1' USR1; touch ready; while :; do sleep 0.05; done`

	t.Run("a cancel, which signals all processes, lets the program end in its own way", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		cmd, stdout, _ := n.start(submission(sh(line)))
		await(t, slurm.Dir(n.site, jobID)+"/ready")
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM))
		_ = cmd.Wait()
		require.Equal(t, 5, cmd.ProcessState.ExitCode())
		require.Equal(t, "term\n", stdout.String())
		require.EqualValues(t, 5, n.marker(-1).ExitCode)
	})
	t.Run("a signal to the batch shell alone does not end the job", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		cmd, _, _ := n.start(submission(sh(`touch ready; until [ -e go ]; do sleep 0.05; done; exit 6`)))
		await(t, slurm.Dir(n.site, jobID)+"/ready")
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
			require.NoError(t, cmd.Process.Signal(signal))
		}
		require.NoError(t, os.WriteFile(slurm.Dir(n.site, jobID)+"/go", nil, 0o600))
		_ = cmd.Wait()
		require.Equal(t, 6, cmd.ProcessState.ExitCode())
		require.EqualValues(t, 6, n.marker(-1).ExitCode)
	})
	t.Run("a killed job leaves a start marker, no exit marker and no outputs", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		cmd, _, _ := n.start(submission(sh(`echo '{"a": 1}' > "$DAGBRIDGE_OUTPUT"; ` + line)))
		await(t, slurm.Dir(n.site, jobID)+"/ready")
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
		_ = cmd.Wait()
		require.FileExists(t, slurm.StartMarker(n.site, jobID, token, -1))
		require.NoFileExists(t, slurm.ExitMarker(n.site, jobID, token, -1))
		require.Empty(t, n.outputs(-1))
	})
	t.Run("the program does not start with signals ignored", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		got := n.run(submission(sh(`kill -INT $$; echo survived`)))
		require.Equal(t, 130, got.code)
		require.Empty(t, got.stdout)
	})
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 48<<10)
	for name, c := range map[string]struct {
		written  string
		code     int
		outputs  string
		sentence string
	}{
		"nothing":                  {"", 0, "", ""},
		"white space":              {" \n\t\n", 0, "", ""},
		"an object, byte for byte": {"{ \"n\": 9007199254740993, \"f\": 3.0 }\n", 0, "{ \"n\": 9007199254740993, \"f\": 3.0 }\n", ""},
		"lines":                    {"auc=0.91\nnote=a \"b\" \\ c=d\n\n", 0, `{"auc":"0.91","note":"a \"b\" \\ c=d"}`, ""},
		"a line without an end":    {"k=\u2728", 0, "{\"k\":\"\u2728\"}", ""},
		"47 KiB":                   {`{"v":"` + big[:47<<10] + `"}`, 0, `{"v":"` + big[:47<<10] + `"}`, ""},
		"no JSON":                  {"{a:1", slurm.ExitOutputsRefused, "", "byte 2 is where they stop being one JSON object"},
		"half of JSON":             {`{"a":[1,`, slurm.ExitOutputsRefused, "", "is not complete"},
		"JSON that is no object":   {`["a=b"]`, slurm.ExitOutputsRefused, "", "no JSON object, nor lines name=value"},
		"two objects":              {"{}\n{}", slurm.ExitOutputsRefused, "", "byte 4 is where"},
		"a name twice":             {`{"a":1,"\u0061":2}`, slurm.ExitOutputsRefused, "", "an output is there twice"},
		"a line twice":             {"a=1\na=2", slurm.ExitOutputsRefused, "", "line 2: an output is there twice"},
		"a line without a name":    {"=1", slurm.ExitOutputsRefused, "", "line 1: an output has no name"},
		"no line":                  {"a=1\nb", slurm.ExitOutputsRefused, "", "line 2 is not of the form name=value"},
		"bytes":                    {"\xff\xfe\x00", slurm.ExitOutputsRefused, "", "byte 1 is no UTF-8"},
		"49 KiB":                   {`{"v":"` + big + `"}`, slurm.ExitOutputsRefused, "", "49160 bytes were written to DAGBRIDGE_OUTPUT, 49152 are taken"},
		"too large as JSON":        {"k=" + strings.Repeat("\x01", 10000), slurm.ExitOutputsRefused, "", "60008 bytes as JSON, 49152"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			file := filepath.Join(t.TempDir(), "written")
			require.NoError(t, os.WriteFile(file, []byte(c.written), 0o600))
			got := n.run(submission(command("sh", "-c", `cat "$0" > "$DAGBRIDGE_OUTPUT"`, file)))
			require.Equal(t, c.code, got.code, got.stderr)
			require.Equal(t, c.outputs, n.outputs(-1))
			require.Contains(t, n.marker(-1).Sentence, c.sentence)
			require.Equal(t, c.sentence == "", n.marker(-1).Sentence == "")
			require.Contains(t, got.stderr, c.sentence)
		})
	}
	t.Run("a program that fails leaves none", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		require.Equal(t, 4, n.run(submission(sh(`echo '{"a": 1}' > "$DAGBRIDGE_OUTPUT"; exit 4`))).code)
		require.Empty(t, n.outputs(-1))
	})
	t.Run("those of an earlier attempt do not outlive the next", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		// a signal to the wrapper, so that the end was not unasked
		s := submission(sh(`[ "${SLURM_RESTART_COUNT-0}" = 0 ] && echo a=1 > "$DAGBRIDGE_OUTPUT" && kill "$PPID"`))
		require.Equal(t, 0, n.run(s).code)
		require.Equal(t, `{"a":"1"}`, n.outputs(-1))
		require.Equal(t, 1, n.run(s, "SLURM_RESTART_COUNT=1").code)
		require.Empty(t, n.outputs(-1))
	})
}

func TestInputsAreTheUpstreamsOutputs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	leave := func(id string, position int, text string) {
		path := slurm.OutputsPath(n.site, n.site.User, id, position)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o770))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	leave("up", -1, "{\"auc\": 0.91}\n")
	leave("mapped", 0, `{"i":0}`)
	leave("mapped", 2, `{"i":2}`)

	s := submission(command("cat"))
	s.Task.Command.Argv = []string{"sh", "-c", `cat "$DAGBRIDGE_INPUTS"`}
	s.Inputs = []translators.Input{
		{Task: "known", JSON: `{"s":"it's 'quoted' $HOME %s \n"}`},
		{Task: "live", Jobs: []translators.InputJob{{JobID: "up", Position: -1}}},
		{Task: "mapped", Mapped: true, Jobs: []translators.InputJob{{JobID: "mapped"}, {JobID: "mapped", Position: 1}, {JobID: "mapped", Position: 2}}},
		{Task: "nothing \"left\"", Jobs: []translators.InputJob{{JobID: "nobody", Position: -1}}},
		{Task: "none", Mapped: true},
	}
	got := n.run(s)
	require.Zero(t, got.code, got.stderr)
	require.JSONEq(t, `{"known":{"s":"it's 'quoted' $HOME %s \n"}, "live":{"auc":0.91}, "mapped":[{"i":0},{},{"i":2}],
		"nothing \"left\"":{}, "none":[]}`, got.stdout)

	n = newNode(t)
	s.Inputs = nil
	require.Equal(t, "{}", n.run(s).stdout)
}

func TestTheEnvironmentIsPathEnvAndDagbridge(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	task := command("env", "-0")
	task.Key = &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "risk", Run: "manual__2026-01-01T00:00:00+00:00", Task: "tr'ain", MapIndex: []int32{3, 1}}
	task.Env = map[string]string{
		"EPOCHS": "3", "my.var": "a b", "-u": "x", "IFS": "x", "UID": "77", "EMPTY": "", "POSIXLY_CORRECT": "1",
		"DAGBRIDGE": "'\"$(x)\n", "base": "b", "LC_ALL": "C.UTF-8",
	}
	got := n.run(submission(task), "SLURM_EXPORT_ENV=NIL", "CUDA_VISIBLE_DEVICES=0")
	require.Zero(t, got.code, got.stderr)
	env := map[string]string{}
	for _, assignment := range strings.Split(strings.TrimSuffix(got.stdout, "\x00"), "\x00") {
		name, value, _ := strings.Cut(assignment, "=")
		env[name] = value
	}
	for name, value := range task.GetEnv() {
		require.Equal(t, value, env[name], name)
	}
	require.Equal(t, jobID, env["DAGBRIDGE_JOB_ID"])
	require.Equal(t, "tr'ain", env["DAGBRIDGE_TASK"])
	require.Equal(t, "manual__2026-01-01T00:00:00+00:00", env["DAGBRIDGE_RUN"])
	require.Equal(t, "3,1", env["DAGBRIDGE_MAP_INDEX"])
	require.Equal(t, "1", env["DAGBRIDGE_TRY"])
	require.Equal(t, "0", env["CUDA_VISIBLE_DEVICES"])
	require.Equal(t, "/usr/local/bin:/usr/bin:/bin", env["PATH"])
	require.NotEmpty(t, env["HOME"])
	require.NotContains(t, env, "SLURM_EXPORT_ENV")
}

func TestThePrologueComesBeforeTheProgram(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.site.Prologue = "set -u\nsite=here\nexport BOTH=site"
	task := sh(`echo "$SITE $BOTH"; echo "$@"`)
	task.Prologue = `export SITE="$site" BOTH="$BOTH+task"; set -- of the prologue; dagbridge_x=1`
	got := n.run(submission(task))
	require.Equal(t, "here site+task\n\n", got.stdout, got.stderr)

	t.Run("and in its environment", func(t *testing.T) {
		n, task := newNode(t), sh(`echo "$MODULE $0"`)
		task.Env = map[string]string{"VERSION": "12.4", "UID": "no variable of a shell"}
		task.Prologue = `export MODULE="cuda/$VERSION"`
		require.Equal(t, "cuda/12.4 sh\n", n.run(submission(task)).stdout)
	})

	t.Run("one that ends ends the job", func(t *testing.T) {
		n, task := newNode(t), sh("echo ran")
		task.Prologue = "exit 9"
		got := n.run(submission(task))
		require.Equal(t, 9, got.code)
		require.Empty(t, got.stdout)
	})
	t.Run("one that is no shell cannot break out", func(t *testing.T) {
		n, task := newNode(t), sh("echo ran")
		task.Prologue = "if '\n}\n)"
		require.Equal(t, "ran\n", n.run(submission(task)).stdout)
	})
}

func TestALoginShellReadsTheUsersProfile(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.site.LoginShell = true
	home := t.TempDir()
	require.NoError(t, os.WriteFile(home+"/.profile", []byte("export FROM_PROFILE=yes\n"), 0o600))
	// Without -u: what /etc/profile does is not ours.
	got := n.run(submission(sh(`echo "$FROM_PROFILE"`)), "HOME="+home, "PS1=", "BASH=/bin/bash")
	require.Contains(t, got.stdout, "yes\n", got.stderr)
}

func TestAnArrayRunsEachItemByItsIndex(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	task := command("sh", "-c", `echo "$DAGBRIDGE_JOB_ID $DAGBRIDGE_MAP_INDEX $A $B" "$@"; echo "i=$DAGBRIDGE_MAP_INDEX" > "$DAGBRIDGE_OUTPUT"`, "sh", "base")
	task.Env = map[string]string{"A": "task", "B": "task"}
	task.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{
		{Argv: []string{"x y", "'"}},
		{Env: map[string]string{"A": "item 1"}},
		{Env: map[string]string{"A": "", "odd.name": "1"}, Argv: []string{"-n"}},
	}}
	s := submission(task)
	s.Instances = []translators.Instance{
		{Position: 0, JobID: "j0", MapIndex: []int32{0}, Item: task.Array.Items[0]}, {Position: 2, JobID: "j2", MapIndex: []int32{2}, Item: task.Array.Items[2]},
	}
	want := map[string]string{"0": "j0 0 task task base x y '\n", "2": "j2 2  task base -n\n"}
	for index, stdout := range want {
		got := n.run(s, "SLURM_JOB_ID=9"+index, "SLURM_ARRAY_JOB_ID=9", "SLURM_ARRAY_TASK_ID="+index)
		require.Equal(t, end{0, stdout, ""}, got)
	}
	require.Equal(t, "9_2", n.marker(2).NativeID)
	require.Equal(t, `{"i":"0"}`, n.outputs(0))
	require.Equal(t, `{"i":"2"}`, n.outputs(2))
	require.Equal(t, slurm.ExitDuplicate, n.run(s, "SLURM_JOB_ID=98", "SLURM_ARRAY_JOB_ID=98", "SLURM_ARRAY_TASK_ID=2").code)
}

func TestTasksThatGoInTogetherRunEachItsOwnProgram(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	show := `: >"$DAGBRIDGE_TASK"; ls; echo "$DAGBRIDGE_JOB_ID $DAGBRIDGE_TASK $DAGBRIDGE_RUN $DAGBRIDGE_TRY [$DAGBRIDGE_MAP_INDEX] $A" "$@"; echo "task=$DAGBRIDGE_TASK" > "$DAGBRIDGE_OUTPUT"`
	key := func(task string) *dagbridgev1.TaskKey { return &dagbridgev1.TaskKey{Task: task, Run: "it's one"} }
	first := &dagbridgev1.Task{Key: key("a"), TryNumber: 1, Command: &dagbridgev1.Command{Argv: []string{"sh", "-c", show, "sh", "x y"}}, Env: map[string]string{"A": "'"}}
	second := &dagbridgev1.Task{Key: key("b\nc"), TryNumber: 2, Script: &dagbridgev1.Script{Text: "#!/bin/sh\n" + show + "\nexit 3\n"}}
	s := submission(first)
	s.Instances = []translators.Instance{{Position: 0, JobID: "ja", Task: first}, {Position: 5, JobID: "jb", Task: second}}
	slurmEnv := func(index string) []string {
		return []string{"SLURM_JOB_ID=9" + index, "SLURM_ARRAY_JOB_ID=9", "SLURM_ARRAY_TASK_ID=" + index}
	}
	require.Equal(t, end{0, "a\nja a it's one 1 [] ' x y\n", ""}, n.run(s, slurmEnv("0")...))
	require.Equal(t, end{3, "b\nc\njb b\nc it's one 2 [] \n", ""}, n.run(s, slurmEnv("5")...))
	require.Equal(t, `{"task":"a"}`, n.outputs(0))
	require.Empty(t, n.outputs(5))
	require.Equal(t, "9_5", n.marker(5).NativeID)
}

func TestPerTaskIsStartedBySrun(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	bin := t.TempDir()
	// srun as far as it matters here: options, --, a command.
	writeProgram(t, bin+"/srun", "#!/bin/bash\nwhile [ \"$1\" != -- ]; do echo \"$1\"; shift; done; shift; exec \"$@\"\n")
	task := command("echo", "-n", "hello")
	task.Launch = dagbridgev1.Task_PER_TASK
	task.Prologue = "PATH=" + bin + ":$PATH"
	task.Resources = &dagbridgev1.Resources{Cpu: "2", TasksPerNode: 4}
	require.Equal(t, "--export=ALL\n--cpus-per-task=2\nhello", n.run(submission(task)).stdout)
}

func TestOutputsAreWhatJSONReadersTake(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	got := n.run(submission(sh(`printf 'k=\001\037\177\t"\\/é\nB=\342\234\250' > "$DAGBRIDGE_OUTPUT"`)))
	require.Zero(t, got.code, got.stderr)
	var values map[string]string
	require.NoError(t, json.Unmarshal([]byte(n.outputs(-1)), &values))
	require.Equal(t, map[string]string{"k": "\x01\x1f\x7f\t\"\\/é", "B": "\u2728"}, values)
}

// The program itself is warned, and neither the wrapper nor what it says of the end is disturbed; nothing is left of the warner.
func TestTheProgramIsWarnedBeforeItsTimeRunsOut(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	task := with(sh(`trap 'echo warned; exit 7' USR1; while :; do sleep 0.1; done`), &dagbridgev1.Resources{TimeLimit: durationpb.New(time.Minute)})
	task.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{"signal": "B:SIGUSR1@59"}}
	got := n.run(submission(task))
	require.Equal(t, end{7, "warned\n", ""}, got)
	require.EqualValues(t, 7, n.marker(-1).ExitCode)
	require.NoFileExists(t, filepath.Join(slurm.Dir(n.site, jobID), "1.pid"))

	quick := with(sh(`echo done`), &dagbridgev1.Resources{TimeLimit: durationpb.New(time.Minute)})
	quick.Slurm = task.Slurm
	other := newNode(t)
	require.Equal(t, end{0, "done\n", ""}, other.run(submission(quick)), "one that ends before is not waited for")
}

// writeProgram writes a file that is then run. Another test's fork must not inherit the descriptor while it is open for
// writing: the kernel would not run the file ("text file busy").
func writeProgram(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, program.Write(path, []byte(text)))
}
