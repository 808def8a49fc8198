package graph

import (
	"fmt"
	"strings"
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
)

// check is what is wrong with the tasks of a run, one fault a line. Keys with run "earlier" have been submitted, and of the
// present run "before", and "mapped", an array of three.
func check(w *dagbridgev1.Workflow) []string {
	known := func(k *dagbridgev1.TaskKey) bool {
		index := k.GetMapIndex()
		return k.GetRun() == "earlier" || k.GetTask() == "before" ||
			k.GetTask() == "mapped" && (len(index) == 0 || len(index) == 1 && index[0] < 3)
	}
	faults := Check(Normalize(w), known)
	lines := []string{}
	for _, f := range faults {
		lines = append(lines, f.Field+": "+f.Description)
	}
	return lines
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const key = `"key": {"task": "t"}, `
	const command = `"command": {"argv": ["true"]}`
	tasks := func(tasks ...string) string {
		return `{"run": {"orchestrator": "o", "workflow": "w", "run": "r"}, "tasks": [{` + strings.Join(tasks, "}, {") + `}]}`
	}
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"nothing wrong", tasks(key + command), nil},
		{"edges that lead somewhere", tasks(key+command+`, "upstream": [{"task": "u"}, {"task": "before"}, {"task": "never", "optional": true},
			{"key": {"orchestrator": "o", "workflow": "w", "run": "earlier", "task": "x"}}, {"task": "u", "condition": "STARTED", "delay": "60s"}]`,
			`"key": {"task": "u"}, `+command), nil},
		{"arrays that pair off", tasks(`"key": {"task": "a"}, "array": {"items": [{}, {}, {}]}, `+command,
			`"key": {"task": "b"}, "array": {"items": [{}, {"argv": ["x"]}, {}]}, "upstream": [{"task": "a", "instances": "SAME_INDEX"},
			  {"task": "mapped", "instances": "SAME_INDEX"}, {"task": "never", "instances": "SAME_INDEX", "optional": true}], `+command,
			`"key": {"task": "c", "mapIndex": [2]}, "upstream": [{"task": "a", "instances": "SAME_INDEX"}], `+command), nil},
		{"every rule", tasks(rules(command)...), nil},

		{"an empty workflow", `{"name": "x", "run": {"orchestrator": "o", "workflow": "w", "run": "r"}}`,
			[]string{`tasks: is empty: a workflow needs at least one task`}},
		{"nothing selected", `{"run": {"orchestrator": "o", "workflow": "w", "run": "r"}, "tasksSelected": ["zz"], "tasks": [{"key": {"task": "a"}}]}`,
			[]string{`tasks: is empty once only tasksSelected are taken: a workflow needs at least one task`, `tasksSelected[0]: there is no task "zz"`}},
		{"selected by a wrong name", `{"run": {"orchestrator": "o", "workflow": "w", "run": "r"}, "tasksSelected": ["train", "trian"],
			"tasks": [{"key": {"task": "train"}, ` + command + `}]}`, []string{`tasksSelected[1]: there is no task "trian": did you mean "train"?`}},

		{"a key without parts", `{"run": {}, "tasks": [{` + command + `}]}`, []string{
			`tasks[0].key.orchestrator: is missing`, `tasks[0].key.workflow: is missing`, `tasks[0].key.run: is missing`, `tasks[0].key.task: is missing`}},
		{"a run without parts", `{"run": {"orchestrator": "o"}, "tasks": [{"key": {"task": "a"}, ` + command + `}, {"key": {"task": "b"}, ` + command + `}]}`,
			[]string{`run.workflow: is missing`, `run.run: is missing`}},
		{"a parent without parts", `{"run": {"orchestrator": "o", "workflow": "w", "run": "r", "parent": {"task": "p"}}, "tasks": [{` + key + command + `}]}`,
			[]string{`run.parent.orchestrator: is missing`, `run.parent.workflow: is missing`, `run.parent.run: is missing`}},
		{"another run's task", tasks(`"key": {"task": "t", "run": "r2"}, ` + command),
			[]string{`tasks[0].key.run: is "r2", but the run's is "r": a task belongs to the run it is submitted with`}},

		// The cases of AP-05 at once: nothing hides anything.
		{"cycle, unknown, doubled, self edge", tasks(
			`"key": {"task": "a"}, "upstream": [{"task": "c"}], `+command, `"key": {"task": "b"}, "upstream": [{"task": "a"}], `+command,
			`"key": {"task": "c"}, "upstream": [{"task": "d"}, {"task": "b"}], `+command, `"key": {"task": "d"}, `+command,
			`"key": {"task": "x"}, "upstream": [{"task": "y_typo"}], `+command, `"key": {"task": "y_type"}, `+command,
			key+command, key+command, `"key": {"task": "s"}, "upstream": [{"task": "s"}], `+command),
			[]string{
				`tasks[4].upstream[0].task: task "x" waits for "y_typo", and there is no such task: did you mean "y_type"?`,
				`tasks[7].key.task: task "t" is there already, as tasks[6]: every task of a run has its own name`,
				`tasks[8].upstream[0].task: task "s" waits for itself`,
				`tasks[0].upstream[0]: these tasks wait for each other in a circle: a -> b -> c -> a`,
			}},
		{"two knots, by their shortest cycles", tasks(
			`"key": {"task": "a"}, "upstream": [{"task": "b"}, {"task": "c"}], `+command, `"key": {"task": "b"}, "upstream": [{"task": "c"}], `+command,
			`"key": {"task": "c"}, "upstream": [{"task": "a"}], `+command,
			`"key": {"task": "p"}, "upstream": [{"task": "q"}, {"task": "c"}], `+command, `"key": {"task": "q"}, "upstream": [{"task": "p"}], `+command),
			[]string{
				`tasks[0].upstream[1]: these tasks wait for each other in a circle: a -> c -> a`,
				`tasks[3].upstream[0]: these tasks wait for each other in a circle: p -> q -> p`,
			}},

		{"a doubled instance", tasks(`"key": {"task": "a"}, "array": {"items": [{}, {}]}, `+command, `"key": {"task": "a", "mapIndex": [1]}, `+command),
			[]string{`tasks[1].key.mapIndex: task "a[1]" is there already, as an instance of the array tasks[0]`}},
		{"an array that is an instance", tasks(`"key": {"task": "a", "mapIndex": [1]}, "array": {"items": [{}]}, ` + command),
			[]string{`tasks[0].array: task "a[1]" has a mapIndex, so it is an instance already and cannot be an array`}},
		{"an array of nothing", tasks(key + `"array": {"maxParallel": 2}, ` + command),
			[]string{`tasks[0].array.items: is empty: an array needs at least one item`}},
		{"an array of both", tasks(key + `"array": {"items": [{}], "from": {"task": "before", "output": "o"}}, "upstream": [{"task": "before"}], ` + command),
			[]string{`tasks[0].array: items and from exclude each other: set one of them`}},
		{"an array over an output", tasks(key + `"array": {"from": {"task": "before", "output": "o"}}, "upstream": [{"task": "before"}], ` + command), nil},
		{"an array over an output that it does not wait for", tasks(key + `"array": {"from": {"task": "before", "output": "o"}}, "upstream": [{"task": "before", "condition": "STARTED"}], ` + command),
			[]string{`tasks[0].array.from.task: task "before" is not in upstream: the array has to wait for what says how many instances it has`}},
		{"an array over an array", `{"run": {"orchestrator": "o", "workflow": "w", "run": "r"}, "tasks": [
			{"key": {"task": "a"}, "array": {"items": [{}, {}]}, ` + command + `},
			{"key": {"task": "b"}, "array": {"from": {"task": "a", "output": "o"}}, "upstream": [{"task": "a"}], ` + command + `}]}`,
			[]string{`tasks[1].array.from.task: task "a" is an array itself, whose instances have outputs of their own: take the output of one task`}},
		{"arguments for a script", tasks(key + `"array": {"items": [{}, {"argv": ["x"]}]}, "script": {"text": "true"}`),
			[]string{`tasks[0].array.items[1].argv: is appended to a command, and the task has a script: use env`}},

		{"an edge to nowhere and to two places", tasks(key + command + `, "upstream": [{}, {"task": "before", "key": {"task": "x"}}]`),
			[]string{`tasks[0].upstream[0]: needs exactly one of task, key and native, and has 0`,
				`tasks[0].upstream[1]: needs exactly one of task, key and native, and has 2`}},
		{"an edge with half a key", tasks(key + command + `, "upstream": [{"key": {"orchestrator": "o", "workflow": "w", "task": "x"}}]`),
			[]string{`tasks[0].upstream[0].key.run: is missing`}},
		{"an edge to what was never submitted", tasks(key + command + `, "upstream": [{"key": {"orchestrator": "o", "workflow": "w", "run": "r2", "task": "x"}}]`),
			[]string{`tasks[0].upstream[0].key: task "t" waits for "o/w/r2/x", which was never submitted: submit it first, or make the edge optional`}},
		{"an edge to single instances", tasks(key+command+`, "upstream": [{"task": "m"}]`, `"key": {"task": "m", "mapIndex": [0]}, `+command),
			[]string{`tasks[0].upstream[0].task: task "t" waits for "m", which is there only under a map index: give each instance as a key with its mapIndex, or submit them as one array`}},
		{"edges to what is not the gateway's", tasks(key + command + `, "upstream": [{"native": {"cluster": "c", "id": "1"}}, {"condition": "SINGLETON"}]`), nil},
		{"a singleton of something", tasks(key + command + `, "upstream": [{"task": "before", "condition": "SINGLETON"}]`),
			[]string{`tasks[0].upstream[0]: SINGLETON waits for all other jobs of the task's own name: leave task, key and native out`}},
		{"a delay after an end", tasks(key + command + `, "upstream": [{"task": "before", "delay": "60s"}]`),
			[]string{`tasks[0].upstream[0].delay: means something only with condition STARTED`}},
		{"same index of unlike arrays", tasks(`"key": {"task": "a"}, "array": {"items": [{}, {}]}, `+command,
			`"key": {"task": "b"}, "array": {"items": [{}]}, "upstream": [{"task": "a", "instances": "SAME_INDEX"}, {"task": "mapped", "instances": "SAME_INDEX"},
			  {"task": "c", "instances": "SAME_INDEX"}], `+command,
			`"key": {"task": "c"}, "upstream": [{"task": "a", "instances": "SAME_INDEX"}], `+command),
			[]string{
				`tasks[1].upstream[0].task: SAME_INDEX needs arrays of equal length: task "b" has 1 instances, its upstream "a" has 2`,
				`tasks[1].upstream[1].task: SAME_INDEX needs arrays of equal length: there is no array "mapped" of 1 instances`,
				`tasks[1].upstream[2].task: SAME_INDEX needs arrays of equal length: task "b" has 1 instances, its upstream "c" has 0`,
				`tasks[2].upstream[0].task: SAME_INDEX needs a task with instances: task "c" is no array and has no mapIndex`,
			}},

		{"no program", tasks(`"key": {"task": "t"}`), []string{`tasks[0]: has no program: set command or script, or a container whose image has one`}},
		{"nothing to run", tasks(key + `"empty": true`), nil},
		{"nothing to run, and a program", tasks(key + `"empty": true, ` + command),
			[]string{`tasks[0].empty: says that there is nothing to run: leave command, script, container and array out, or empty`}},
		{"a program beside the image's", tasks(key + `"container": {"image": "i", "args": ["x"]}, ` + command),
			[]string{`tasks[0].container: command and args say what the image runs by itself, and the task has a program: set one of them`}},
		{"an image alone, and one beside a program", tasks(key+`"container": {"image": "i", "command": ["x"]}, "array": {"items": [{"argv": ["y"]}]}`, `"key": {"task": "b"}, "container": {"image": "i"}, `+command), nil},
		{"two programs", tasks(key + command + `, "script": {"text": "true"}`), []string{`tasks[0].script: command and script exclude each other: set one of them`}},
		{"a program without a name", tasks(key + `"command": {"argv": ["", "x"]}`), []string{`tasks[0].command.argv[0]: is empty: it is the program's name`}},
		{"a script too large", tasks(key + `"script": {"text": "` + strings.Repeat("x", 4<<20) + `"}`),
			[]string{`tasks[0].script.text: has 4194304 bytes, at most 4128768 are allowed: put what is large into a file`}},
		{"reserved names", tasks(key + `"env": {"SLURM_JOB_ID": "1", "DAGBRIDGE_TRY": "2", "MY_SLURM_": "3"}, "array": {"items": [{}, {"env": {"SLURM_X": ""}}]}, ` + command),
			[]string{
				`tasks[0].env["DAGBRIDGE_TRY"]: names beginning with DAGBRIDGE_ are set for the program, not by its author: choose another name`,
				`tasks[0].env["SLURM_JOB_ID"]: names beginning with SLURM_ are set for the program, not by its author: choose another name`,
				`tasks[0].array.items[1].env["SLURM_X"]: names beginning with SLURM_ are set for the program, not by its author: choose another name`,
			}},
		{"quantities", tasks(key + `"resources": {"cpu": "-1", "memory": "16 GB"}, ` + command),
			[]string{`tasks[0].resources.cpu: "-1" is negative`, `tasks[0].resources.memory: "16 GB" is no amount of memory: write 16G or 16Gi`}},

		{"requests that grow", tasks(key + `"resources": {"memory": "1Gi", "timeLimit": "60s"}, "skipExitCodes": [99], "retry": {"maxRetries": 2,
			"finalExitCodes": [2], "memoryGrowth": {"factor": 1.5, "max": "4Gi"}, "timeLimitGrowth": {"factor": 2, "max": "1h"}}, ` + command), nil},
		{"requests that grow without an end", tasks(key + `"resources": {"memory": "1Gi", "timeLimit": "60s"},
			"retry": {"maxRetries": 2, "memoryGrowth": {"factor": 1.5}, "timeLimitGrowth": {}}, ` + command), nil},
		{"nothing to grow from", tasks(key + `"resources": {"memory": "0"}, "retry": {"maxRetries": 2, "memoryGrowth": {"factor": 2}, "timeLimitGrowth": {"factor": 2}}, ` + command),
			[]string{`tasks[0].retry.memoryGrowth: there is nothing to grow from: set resources.memory`,
				`tasks[0].retry.timeLimitGrowth: there is nothing to grow from: set resources.timeLimit`}},
		{"requests that shrink", tasks(key + `"resources": {"memory": "1Gi", "timeLimit": "60s"}, "skipExitCodes": [2, 99],
			"retry": {"maxRetries": 2, "backoff": "60s", "maxBackoff": "30s", "finalExitCodes": [1, 2],
			"memoryGrowth": {"factor": 0.5, "max": "1Mi"}, "timeLimitGrowth": {"factor": 0.9, "max": "30s"}}, ` + command),
			[]string{
				`tasks[0].retry.maxBackoff: is 30s, and the first pause, backoff, is 1m0s already: make it at least as long`,
				`tasks[0].retry.finalExitCodes[1]: exit code 2 is among skipExitCodes: it means that the task is skipped or that it has failed for good, not both`,
				`tasks[0].retry.memoryGrowth.factor: is 0.5, by which a request shrinks: give 1 or more`,
				`tasks[0].retry.memoryGrowth.max: "1Mi" is less than what is asked for at first, resources.memory of "1Gi"`,
				`tasks[0].retry.timeLimitGrowth.factor: is 0.9, by which a request shrinks: give 1 or more`,
				`tasks[0].retry.timeLimitGrowth.max: "30s" is less than what is asked for at first, resources.timeLimit of 1m0s`,
			}},
		{"limits that are none", tasks(key + `"resources": {"memory": "1Gi", "timeLimit": "60s"},
			"retry": {"memoryGrowth": {"factor": 2, "max": "4 GB"}, "timeLimitGrowth": {"factor": 2, "max": "1-00:00:00"}}, ` + command),
			[]string{
				`tasks[0].retry.memoryGrowth.max: "4 GB" is no amount of memory: write 4G or 4Gi`,
				`tasks[0].retry.timeLimitGrowth.max: "1-00:00:00" is no duration: write "86400s" or "24h"`,
			}},
		{"a limit beyond all", tasks(key + `"resources": {"timeLimit": "60s"}, "retry": {"timeLimitGrowth": {"factor": 2, "max": "9000h"}}, ` + command),
			[]string{`tasks[0].retry.timeLimitGrowth.max: "9000h" is more than a year, 31622400s`}},

		{"a tear-down of what is none", tasks(key+`"setup": true, "teardown": {"of": ["w", "make", "t", "before"]}, `+command,
			`"key": {"task": "w"}, `+command, `"key": {"task": "maker"}, "setup": true, `+command),
			[]string{
				`tasks[0].upstream[1].task: task "t" waits for itself`,
				`tasks[0].teardown: a task is a set-up or a tear-down, not both`,
				`tasks[0].teardown.of[0]: task "w" is no set-up: mark it with setup: true`,
				`tasks[0].teardown.of[1]: there is no task "make": did you mean "maker"?`,
				`tasks[0].teardown.of[2]: task "t" cannot be the tear-down of itself`,
				`tasks[0].teardown.of[3]: there is no task "before"`,
			}},
		{"a tear-down of an earlier set-up", tasks(key + `"teardown": {"of": ["before"]}, "upstream": [{"task": "before"}], ` + command), nil},
		{"a branch that is not waited for", tasks(key + `"skipUnless": {"task": "before", "output": "o", "contains": "t"}, ` + command),
			[]string{`tasks[0].skipUnless.task: "before" is not among the task's upstreams: add it there, so that its output is waited for`}},
		{"a branch", tasks(key + `"skipUnless": {"task": "before", "output": "o", "contains": "t"}, "upstream": [{"task": "before"}], ` + command), nil},

		{"what this release does not do", `{"run": {"orchestrator": "o", "workflow": "w", "run": "r"}, "airflowDag": {"text": "{}"}, "kfpPipeline": "x", "parameters": {"rate": {"text": "1"}}, "conf": {"text": "{}"}, "logicalDate": "2026-01-01T00:00:00Z", "tasks": [{` +
			key + `"fallbacks": ["k8s"], "container": {"image": "x"}, "when": {"cel": "true"}, "slurm": {"container": "oci"}, "kubernetes": {"queue": "q"},
			"array": {"from": {"task": "before", "output": "o"}},
			"upstream": [{"task": "before"}]}]}`,
			[]string{
				`airflowDag: is not supported yet`, `kfpPipeline: is not supported yet`, `parameters: is not supported yet`,
				`conf: is not supported yet`, `logicalDate: is not supported yet`, `tasks[0].fallbacks: is not supported yet`,
				`tasks[0].when: is not supported yet`,
			}},
		{"options that say nothing", tasks(key + `"kubernetes": {}, ` + command), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := test.want
			if want == nil {
				want = []string{}
			}
			require.Equal(t, want, check(workflow(t, test.in)))
		})
	}
}

func rules(command string) []string {
	tasks := []string{`"key": {"task": "t"}, ` + command}
	for _, rule := range Rules() {
		tasks = append(tasks, fmt.Sprintf(`"key": {"task": "%[1]s"}, "triggerRule": "%[1]s", "upstream": [{"task": "t"}], %[2]s`, rule, command))
	}
	return tasks
}

func TestCheckRefusesWhatIsNotUTF8(t *testing.T) {
	t.Parallel()
	tasks := dag("a\xff < b\xff", "b\xff")
	require.Equal(t, []string{`tasks[0].key.task: is not UTF-8: "a\xff"`, `tasks[1].key.task: is not UTF-8: "b\xff"`},
		check(&dagbridgev1.Workflow{Run: &dagbridgev1.Run{}, Tasks: tasks}))
}

func TestCheckShortensALongCycle(t *testing.T) {
	t.Parallel()
	const n = 5000
	lines := make([]string, n)
	for i := range n {
		lines[i] = fmt.Sprintf("t%d < t%d", i, (i+n-1)%n)
	}
	faults := check(&dagbridgev1.Workflow{Run: &dagbridgev1.Run{}, Tasks: dag(lines...)})
	require.Len(t, faults, 1)
	require.Contains(t, faults[0], "circle: t0 -> t1 -> ")
	require.Contains(t, faults[0], "t49 -> (4901 more) -> t4951")
	require.True(t, strings.HasSuffix(faults[0], "t4999 -> t0"))
}

// Whatever is wrong, the answer comes: here everything is, thousands of times.
func TestCheckOfNothingButFaults(t *testing.T) {
	t.Parallel()
	lines := make([]string, 3000)
	for i := range lines {
		lines[i] = fmt.Sprintf("same < same nowhere%d same", i)
	}
	faults := check(&dagbridgev1.Workflow{Run: &dagbridgev1.Run{}, Tasks: dag(lines...)})
	require.Greater(t, len(faults), len(lines))
}
