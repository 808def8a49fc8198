package local_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/local"
	"github.com/dagbridge/dagbridge/translators"
)

func TestRenderedTextIsAScript(t *testing.T) {
	t.Setenv("PATH", "/bin")
	b := cluster(t, "/data/local", func(o *local.Options) { o.Prologue = "module load python" })
	sub := backendtest.Submission(t, &dagbridgev1.Task{
		Key:     &dagbridgev1.TaskKey{Task: "train", Run: "r1"},
		Command: &dagbridgev1.Command{Argv: []string{"python", "train.py", "it's"}},
		Env:     map[string]string{"EPOCHS": "3"}, Prologue: "ulimit -n 100",
		Resources: &dagbridgev1.Resources{Cpu: "1500m", Memory: "1Ki", TimeLimit: durationpb.New(time.Minute)},
	})
	sub.Token, sub.Job.Id = "0196-job.2", "0196-job"
	text := render(t, b, sub)
	text = strings.ReplaceAll(text, filepath.Dir(filepath.Dir(b.Logs(nil, sub.Token, -1).Stdout)), "/JOB")
	require.Equal(t, `#!/bin/bash
# Runs here, for 1m0s at most, once 1.5 CPUs and 1024 bytes of memory are free.
mkdir -p '/JOB/attempt-2'
cat > '/JOB/attempt-2/inputs' <<'DAGBRIDGE'
{}
DAGBRIDGE
cat > '/JOB/attempt-2/prologue' <<'DAGBRIDGE'
module load python
ulimit -n 100
DAGBRIDGE
cd '/JOB' || exit
exec env -i \
  'DAGBRIDGE_INPUTS=/JOB/attempt-2/inputs' \
  'DAGBRIDGE_JOB_ID=0196-job' \
  'DAGBRIDGE_MAP_INDEX=' \
  'DAGBRIDGE_OUTPUT=/JOB/attempt-2/output' \
  'DAGBRIDGE_RUN=r1' \
  'DAGBRIDGE_TASK=train' \
  'DAGBRIDGE_TRY=1' \
  'EPOCHS=3' \
  'PATH=/bin' \
  '/bin/bash' '-c' '. "$0"; exec -- "$@"' '/JOB/attempt-2/prologue' 'python' 'train.py' 'it'\''s'
`, text)
}

// Whatever is in a task, a person who runs the text gets the program that a supervisor would run.
func TestRenderedTextRunsTheProgramByteForByte(t *testing.T) {
	t.Parallel()
	b := cluster(t, t.TempDir())
	// Any text without NUL, which no argument can hold, of what shells trip over and what they do not.
	word := rapid.StringMatching(`([ -~]|[\n\r\t'"$\\` + "`" + `!]|[^\x00])*`)
	rapid.Check(t, func(rt *rapid.T) {
		argv := rapid.SliceOfN(word, 0, 5).Draw(rt, "argv")
		value := word.Draw(rt, "value")
		text := render(t, b, backendtest.Submission(t, &dagbridgev1.Task{
			Command: &dagbridgev1.Command{Argv: append([]string{"sh", "-c", `printf '%s\0' "$VALUE" "$@"`, "sh"}, argv...)},
			Env:     map[string]string{"VALUE": value},
		}))
		require.Equal(rt, strings.Join(append([]string{value}, argv...), "\x00")+"\x00", bash(t, text))
	})
}

func TestRenderedTextHoldsTheScript(t *testing.T) {
	t.Parallel()
	b := cluster(t, t.TempDir())
	script := "#!/bin/cat\nDAGBRIDGE\nDAGBRIDGE_\n$x `y` \\ 'z'\n"
	sub := backendtest.Submission(t, &dagbridgev1.Task{Script: &dagbridgev1.Script{Text: script}})
	require.Equal(t, script, bash(t, render(t, b, sub)))
}

func render(t *testing.T, b *local.Backend, sub translators.Submission) string {
	t.Helper()
	rendering, faults := b.Render(sub)
	require.NoError(t, faults.OrNil())
	return rendering.Text
}

// bash is what a script prints.
func bash(t *testing.T, text string) string {
	t.Helper()
	cmd := exec.Command("bash")
	cmd.Stdin = strings.NewReader(text)
	printed, err := cmd.Output()
	require.NoError(t, err)
	return string(printed)
}

func TestWhatTheMachineCannotDoIsRefusedAllAtOnce(t *testing.T) {
	t.Parallel()
	b := cluster(t, t.TempDir(), small)
	sub := backendtest.Submission(t, &dagbridgev1.Task{
		Container: &dagbridgev1.Container{Image: "busybox"},
		Launch:    dagbridgev1.Task_PER_TASK,
		Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "5Gi", Nodes: 2, TasksPerNode: 3, Gpus: []*dagbridgev1.Gpu{{Type: "a100"}}},
	})
	_, faults := b.Render(sub)
	require.Equal(t, translators.Faults{
		{Field: "container", Description: "the local cluster here runs no containers, and what the image runs by itself is not known: give the task a command, or name another cluster"},
		{Field: "resources.cpu", Description: "3 CPUs are more than the 2 that the local cluster here has"},
		{Field: "resources.memory", Description: "5368709120 bytes are more than the 4294967296 that the local cluster here has"},
		{Field: "resources.nodes", Description: "the local cluster here is one node, and the task needs 2"},
		{Field: "resources.gpus", Description: "the local cluster here does not hand out GPUs: leave them out, or name another cluster"},
		{Field: "launch", Description: "the local cluster here starts a program once: PER_TASK needs tasksPerNode 1, or another cluster"},
	}, faults)
	result := b.Submit(t.Context(), []translators.Submission{sub})[0]
	require.Equal(t, backend.Refused, result.Outcome)
	require.Equal(t, faults.Error(), result.Message)
	require.NoError(t, b.Close())
}

func TestTokensThatAreNoFileNamesAreRefused(t *testing.T) {
	t.Parallel()
	b := cluster(t, t.TempDir())
	for _, token := range []string{"", ".1", "a", "a.", "a.b", "../x.1", "a/b.1", "a.1/..", "..1", "a\x00.1", strings.Repeat("a", 65) + ".1"} {
		sub := backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})
		sub.Token = token
		require.Equal(t, backend.Refused, b.Submit(t.Context(), []translators.Submission{sub})[0].Outcome, "%q", token)
		require.Equal(t, backend.Absent, b.Find(t.Context(), []backend.Want{{Token: token}})[0].Presence, "%q", token)
		known := backend.Known{Ref: backend.NativeRef{Token: token}, Job: sub.Job}
		require.Equal(t, []error{nil}, b.Cancel(t.Context(), []backend.Known{known}))
		require.True(t, firstNews(t, b, known).Observations[0].Gone)
		_, _, err := b.Log(t.Context(), known.Ref, sub.Job, -1, "stdout", 0)
		require.ErrorIs(t, err, backend.ErrNoFile)
	}
	require.NoError(t, b.Close())
}
