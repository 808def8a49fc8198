package kubernetes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/kubernetes"
)

// podOf is the pod template of a submission's Job, read back from its YAML.
func podOf(t require.TestingT, s translators.Submission) corev1.PodTemplateSpec {
	w, faults := kubernetes.Translate(site, s)
	require.NoError(t, faults.OrNil())
	var job struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	require.NoError(t, yaml.Unmarshal([]byte(w.Text()), &job))
	return job.Spec.Template
}

// kubelet does with a container's command and environment what Kubernetes documents: "$$" is "$", "$(NAME)" the variable of that
// name, if it was defined before, else itself.
func kubelet(c corev1.Container) (argv []string, env map[string]string) {
	env = map[string]string{}
	expand := func(s string) string {
		var b strings.Builder
		for s != "" {
			name, rest, closed := strings.Cut(strings.TrimPrefix(s, "$("), ")")
			value, defined := env[name]
			switch {
			case strings.HasPrefix(s, "$$"):
				b.WriteByte('$')
				s = s[2:]
			case strings.HasPrefix(s, "$(") && closed && defined:
				b.WriteString(value)
				s = rest
			default:
				b.WriteByte(s[0])
				s = s[1:]
			}
		}
		return b.String()
	}
	for _, v := range c.Env {
		env[v.Name] = expand(v.Value)
	}
	for _, word := range append(c.Command, c.Args...) {
		argv = append(argv, expand(word))
	}
	return argv, env
}

// text is what an argument or a value can be; what means something to Kubernetes or a shell comes often.
func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.OneOf(
			rapid.SampledFrom([]string{"$", "$", "(", ")", "$(A)", "$$(B)", "$(DAGBRIDGE_TASK)", "A", "'", `"`, `\`, "`", "\n", "\r\n", "*", " ", "{{x}}", "é", "\u2028", "%s", "~", "!"}),
			rapid.StringN(0, 4, -1),
		)
		whole := rapid.SampledFrom([]string{"yes", "3", "null", "~", "1:30", "0o17", "012", "1_000", "<<", "=", "1e3", ".inf", "2026-01-01", "- a", "# a", "a: b", "---"})
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			return whole.Draw(t, "whole")
		}
		return strings.ReplaceAll(strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), ""), "\x00", "")
	})
}

func TestWhatKubernetesWouldExpandReachesTheProcess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		task := command(append([]string{"program"}, rapid.SliceOfN(text(), 0, 4).Draw(t, "argv")...)...)
		task.Env = map[string]string{"A": text().Draw(t, "A"), "B": text().Draw(t, "B")}
		argv, env := kubelet(podOf(t, submission(task)).Spec.Containers[0])
		require.Equal(t, task.Command.Argv, argv)
		require.Equal(t, task.Env["A"], env["A"])
		require.Equal(t, task.Env["B"], env["B"])
	})
}

func FuzzProgram(f *testing.F) {
	for _, seed := range []string{"$(A)", "$$(A)", "$$", "$", "a\r\nb", "- x: 'y'", "\u0085", "\ufeff#"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, word, value string) {
		if !utf8.ValidString(word) || !utf8.ValidString(value) || strings.Contains(word+value, "\x00") {
			return // the door takes none of these
		}
		task := command("program", word)
		task.Env = map[string]string{"A": value}
		argv, env := kubelet(podOf(t, submission(task)).Spec.Containers[0])
		require.Equal(t, []string{"program", word}, argv)
		require.Equal(t, value, env["A"])
	})
}

// start runs a pod's program with a shell of this machine in the place of the image's sh.
func start(t require.TestingT, dir, shell, index string, pod corev1.PodTemplateSpec) (string, error) {
	for _, item := range pod.Spec.Volumes[0].DownwardAPI.Items {
		name := strings.TrimSuffix(strings.TrimPrefix(item.FieldRef.FieldPath, "metadata.annotations['"), "']")
		require.NoError(t, os.WriteFile(filepath.Join(dir, item.Path), []byte(pod.Annotations[name]), 0o600))
	}
	argv, env := kubelet(pod.Spec.Containers[0])
	require.Equal(t, []string{"sh", "-c"}, argv[:2])
	argv[2] = strings.ReplaceAll(argv[2], "/dagbridge/", dir+"/")
	cmd := exec.Command("busybox", append([]string{"sh"}, argv[1:]...)...)
	if shell != "busybox" {
		cmd = exec.Command(shell, argv[1:]...)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "JOB_COMPLETION_INDEX=" + index}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

// shells that images have as their sh.
var shells = []string{"bash", "dash", "busybox"}

func TestAnArraysItemsReachTheProcess(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			rapid.Check(t, func(t *rapid.T) {
				first, more, value := text().Draw(t, "first"), rapid.SliceOfN(text(), 0, 3).Draw(t, "more"), text().Draw(t, "value")
				// The value has an end of its own: $(...) of a shell's would take line ends away, and so would this test.
				s := submission(command("sh", "-c", `printf '%s\0' "$ITEM" "$DAGBRIDGE_JOB_ID" "$DAGBRIDGE_MAP_INDEX" "$@"`, "sh", first))
				s.Task.Env = map[string]string{"ITEM": "the task's own"}
				s.Instances = []translators.Instance{
					{Position: 4, JobID: "j-4", MapIndex: []int32{4}, Item: &dagbridgev1.Array_Item{Argv: []string{"not this"}}},
					{Position: 9, JobID: "j-9", MapIndex: []int32{9, 1}, Item: &dagbridgev1.Array_Item{Env: map[string]string{"ITEM": value}, Argv: more}},
				}
				out, err := start(t, dir, shell, "1", podOf(t, s))
				require.NoError(t, err)
				require.Equal(t, strings.Join(append([]string{value, "j-9", "9,1", first}, more...), "\x00")+"\x00", out)
			})
		})
	}
}

func TestAPrologueIsReadAndSpoilsNothing(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			task := command("sh", "-c", `printf '%s|' "$FROM" "$ENVIRONMENT" "$@"; exit 3`, "sh", "a b", "")
			task.Env = map[string]string{"ENVIRONMENT": "seen", "SEEN": "x"}
			task.Prologue = "set -- lost\nexport FROM=\"prologue $ENVIRONMENT\""
			out, err := start(t, t.TempDir(), shell, "", podOf(t, submission(task)))
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 3, exit.ExitCode(), "the program's own exit code")
			require.Equal(t, "prologue seen|seen|a b||", out)
		})
	}
}

func TestTheImageNeedsNoShellForAScript(t *testing.T) {
	t.Parallel()
	pod := podOf(t, submission(&dagbridgev1.Task{Script: &dagbridgev1.Script{Text: "\ufeff\n#!/opt/tool -x -y\n$(A) $$ 'é'\n"}}))
	require.Equal(t, []string{"/opt/tool", "-x -y", "/dagbridge/script"}, pod.Spec.Containers[0].Command)
	require.Equal(t, "#!/opt/tool -x -y\n$(A) $$ 'é'\n", pod.Annotations["dagbridge.io/script"], "no file is expanded")
}

func TestAProgramRunsInAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	template := &dagbridgev1.KubernetesOptions{Template: &dagbridgev1.Json{Text: `{"spec": {"containers": [{"name": "main", "workingDir": "/template"}]}}`}}
	for name, c := range map[string]struct {
		task *dagbridgev1.Task
		want string
	}{
		"a command":                          {command("true"), "/dagbridge-work"},
		"a script":                           {&dagbridgev1.Task{Script: &dagbridgev1.Script{Text: "true"}}, "/dagbridge-work"},
		"a command that says where":          {&dagbridgev1.Task{Command: command("true").Command, WorkingDirectory: "/data"}, "/data"},
		"a command whose template says":      {&dagbridgev1.Task{Command: command("true").Command, Kubernetes: template}, "/template"},
		"an image's own program":             {&dagbridgev1.Task{Container: &dagbridgev1.Container{Image: "x"}}, ""},
		"an image's own, by another command": {&dagbridgev1.Task{Container: &dagbridgev1.Container{Image: "x", Command: []string{"y"}}}, ""},
	} {
		pod := podOf(t, submission(c.task))
		require.Equal(t, c.want, pod.Spec.Containers[0].WorkingDir, name)
		require.Equal(t, c.want == "/dagbridge-work", len(pod.Spec.Volumes) == 2, name)
		require.Equal(t, c.want == "/dagbridge-work", len(pod.Spec.Containers[0].VolumeMounts) == 2, name)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	pod := func(message string, exit int32, containers int) *corev1.Pod {
		p := &corev1.Pod{}
		p.Spec.Containers = make([]corev1.Container, containers)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
		p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: exit, Message: message}
		return p
	}
	for _, c := range []struct {
		pod        *corev1.Pod
		want, err_ string
	}{
		{pod("", 0, 1), "", ""},
		{pod(`{"auc": 3.0, "id": 9007199254740993}`+"\n", 0, 1), `{"auc": 3.0, "id": 9007199254740993}`, ""},
		{pod("auc=3.0\n", 0, 1), `{"auc":"3.0"}`, ""},
		{pod(`{"half": 1}`, 3, 1), "", ""},
		{pod(`{"cut`, 0, 1), "", "cut off"},
		{pod(`{"a":"`+strings.Repeat("x", 4087)+`"}`, 0, 1), `{"a":"` + strings.Repeat("x", 4087) + `"}`, ""},
		{pod("a="+strings.Repeat("x", 4094), 0, 1), "", "the outputs are 4096 bytes or more"},
		{pod("a="+strings.Repeat("x", 2046), 0, 6), "", "the outputs are 2048 bytes or more"},
		{&corev1.Pod{}, "", ""},
	} {
		got, err := kubernetes.Outputs(c.pod)
		if c.err_ != "" {
			require.ErrorContains(t, err, c.err_)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, string(got))
	}
}
