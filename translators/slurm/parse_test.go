package slurm_test

import (
	"strings"
	"testing"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func TestParseScript(t *testing.T) {
	t.Parallel()
	for directives, want := range map[string]string{
		"":                                   `{}`,
		"-J train":                           `{"key": {"task": "train"}}`,
		"--job-name='a b' # why":             `{"key": {"task": "a b"}}`,
		"-pgpu -A proj --qos=high":           `{"slurm": {"partition": "gpu", "account": "proj", "qos": "high"}}`,
		"-N2 --ntasks-per-node 4":            `{"resources": {"nodes": 2, "tasksPerNode": 4}}`,
		"-N 2 -n 8":                          `{"resources": {"nodes": 2, "tasksPerNode": 4}}`,
		"-N 1-1 -n 4":                        `{"resources": {"nodes": 1, "tasksPerNode": 4}}`,
		"-n 8 --ntasks-per-node=4":           `{"resources": {"nodes": 2, "tasksPerNode": 4}}`,
		"-N 2 -n 8 --ntasks-per-node=4 -c 3": `{"resources": {"nodes": 2, "tasksPerNode": 4, "cpu": "3"}}`,
		"-n 64":                              `{"slurm": {"options": {"ntasks": "64"}}}`,
		"-n 1":                               `{}`,
		"--mem=16G":                          `{"resources": {"memory": "16Gi"}}`,
		"--mem 500":                          `{"resources": {"memory": "500Mi"}}`,
		"--mem=1024K --mem=2T":               `{"resources": {"memory": "2Ti"}}`,
		"--mem-per-cpu=2G":                   `{"slurm": {"options": {"mem-per-cpu": "2G"}}}`,
		"--gres=gpu:a100:2,lustre:1,gpu":     `{"resources": {"gpus": [{"type": "a100", "count": 2}, {"count": 1}]}, "slurm": {"options": {"gres": "lustre:1"}}}`,
		"--gres=gpu:2":                       `{"resources": {"gpus": [{"count": 2}]}}`,
		"--gpus-per-node=a100_3g.20gb:3":     `{"resources": {"gpus": [{"type": "a100_3g.20gb", "count": 3}]}}`,
		"-G 4":                               `{"slurm": {"options": {"gpus": "4"}}}`,
		"-a 0-2%2":                           `{"array": {"items": [{}, {}, {}], "maxParallel": 2}}`,
		"--array=0,1":                        `{"array": {"items": [{}, {}]}}`,
		"-D /shared/x":                       `{"workingDirectory": "/shared/x"}`,
		"--export=NONE":                      `{}`,
		"--export=NONE,A=1,B=x=y":            `{"env": {"A": "1", "B": "x=y"}}`,
		"--exclusive --nice -s":              `{"slurm": {"options": {"exclusive": "", "nice": "", "oversubscribe": ""}}}`,
		"--exclusive=user -C 'ib&avx' -sn2":  `{"slurm": {"options": {"exclusive": "user", "constraint": "ib&avx", "oversubscribe": "", "ntasks": "2"}}}`,
		"--const=ib":                         `{"slurm": {"options": {"constraint": "ib"}}}`,
		"--no-requeue --requeue":             `{"slurm": {"options": {"requeue": ""}}}`,
		"--requeue --no-requeue":             `{"slurm": {"options": {"no-requeue": ""}}}`,
		"-C \"a\\\"b\\\\c\\d\"":              `{"slurm": {"options": {"constraint": "a\"b\\cd"}}}`,
		"-C a#b":                             `{"slurm": {"options": {"constraint": "a"}}}`,
	} {
		text := "#!/bin/bash\n#SBATCH " + directives + "\n\n# a comment\n#SBATCH --mail-user=me\necho hi\n"
		task, notices, faults := slurm.ParseScript(text)
		require.Empty(t, faults, directives)
		require.Empty(t, notices, directives)
		require.Equal(t, strings.ReplaceAll(text, "#SBATCH", "##SBATCH"), task.GetScript().GetText())
		wanted := &dagbridgev1.Task{}
		require.NoError(t, protojson.Unmarshal([]byte(want), wanted))
		wanted.Script = task.Script
		proto.Merge(wanted, &dagbridgev1.Task{
			Key: &dagbridgev1.TaskKey{}, Resources: &dagbridgev1.Resources{},
			Slurm: &dagbridgev1.SlurmOptions{Options: map[string]string{"mail-user": "me"}},
		})
		require.True(t, proto.Equal(wanted, task), "%s\nwant %s\ngot  %s", directives, protojson.Format(wanted), protojson.Format(task))
	}
}

func TestAllFormsOfATimeLimit(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]time.Duration{
		"90": 90 * time.Minute, "90:30": 90*time.Minute + 30*time.Second, "1:2:3": time.Hour + 2*time.Minute + 3*time.Second,
		"1-2": 26 * time.Hour, "1-2:3": 26*time.Hour + 3*time.Minute, "1-2:3:4": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"0:30": 30 * time.Second, "0-1": time.Hour,
	} {
		task, _, faults := slurm.ParseScript("#!/bin/sh\n#SBATCH -t " + form + "\ntrue\n")
		require.Empty(t, faults, form)
		require.Equal(t, want, task.GetResources().GetTimeLimit().AsDuration(), form)
	}
	for _, form := range []string{"0", "UNLIMITED", "-1", "5m", "1:2:3:4", "400-0", "9999-999999:999999:999999", "99999999999"} {
		_, _, faults := slurm.ParseScript("#!/bin/sh\n#SBATCH --time=" + form + "\ntrue\n")
		require.Len(t, faults, 1, form)
		require.Equal(t, "line 2", faults[0].Field)
	}
}

func TestWhatASlurmScriptCannotSayHereIsToldLineByLine(t *testing.T) {
	t.Parallel()
	_, _, faults := slurm.ParseScript(`#!/bin/bash
#SBATCH -d afterok:1?afterok:2
#SBATCH --jobname=x
#SBATCH foo -q
#SBATCH --comment "a
#SBATCH --mem=0 -N 1-4
#SBATCH -a 1-10
#SBATCH --gres=gpu:a:b:c -D relative
#SBATCH --hold -n 0 --signal=X:USR1@60
#SBATCH hetjob
#SBATCH --time-mi=5 --no=1 -Y --parsable=1 --constraint
#SBATCH --switches=1 --uid=5

true
#SBATCH --more
`)
	want := []string{
		"line 2: --dependency: any one of several jobs cannot be waited for",
		"line 3: sbatch has no option --jobname that is known here; the nearest one is --job-name",
		`line 4: "foo" is not an option`,
		"line 4: --qos needs a value",
		`line 5: a quote (") is not closed`,
		"line 6: --mem: a task cannot ask for all memory",
		`line 6: --nodes: "1-4" is a range`,
		`line 7: --array: "1-10" is not 0 to 9`,
		`line 8: --chdir: "relative" is not absolute`,
		"line 8: --gres:",
		"line 9: --hold: not for tasks",
		"line 9: --signal:",
		`line 9: --ntasks: "0" is not a whole number`,
		"line 10: heterogeneous jobs are not supported yet",
		"line 11: --no may be any of --no-kill, --no-requeue, --nodefile, --nodelist, --nodes",
		"line 11: sbatch has no option -Y",
		"line 11: --parsable takes no value",
		"line 11: --constraint needs a value",
		"line 12: --switches: slurmrestd cannot carry it",
		"line 12: --uid: not for tasks",
	}
	require.Len(t, faults, len(want), faults.Error())
	for i, line := range strings.Split(faults.Error(), "\n") {
		require.Contains(t, line, want[i])
	}
	for text, fault := range map[string]string{
		"#!/bin/sh\r\ntrue\r\n": "DOS line ends", "": "is empty", "\n \n": "is empty",
	} {
		_, _, faults := slurm.ParseScript(text)
		require.ErrorContains(t, faults, fault)
	}
}

func TestWhatASlurmScriptSaysInVainIsTold(t *testing.T) {
	t.Parallel()
	_, notices, faults := slurm.ParseScript("#!/bin/sh\n#SBATCH -o x.out --export=ALL,A=1\n#PBS -l x\ntrue\n#SBATCH -n 4\n")
	require.Empty(t, faults)
	require.Equal(t, []string{
		"line 3: not read: only #SBATCH lines are",
		"line 5: not read, as sbatch does not: it is after the first command",
		"line 2: --export=ALL: nothing of the submitter's environment travels; say what the program needs in env",
		"line 2: --output: dagbridge keeps the job's output itself; see dagbridge logs",
	}, notices)
}

func FuzzParseScript(f *testing.F) {
	f.Add("#!/bin/sh\n#SBATCH -J x --mem=1G -a 0-3%2 -t 1-2:3\ntrue\n")
	f.Add("#SBATCH --time=9999-999999:999999:999999 -a 0-4000000 -n 2147483648\n")
	f.Add("#SBATCH \"'\\\n#SBATCH -\n#SBATCH --\n#SBATCH --=\n")
	f.Fuzz(func(t *testing.T, text string) {
		task, _, faults := slurm.ParseScript(text)
		require.Equal(t, task == nil, len(faults) > 0)
		if task == nil || strings.Contains(text, "\x00") {
			return
		}
		// What was read can be said.
		s := submission(task)
		_, _ = slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, s)
	})
}

func TestWhatASlurmScriptWaitsFor(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"afterok:1:2_3,singleton": `{"upstream": [{"native": {"id": "1"}}, {"native": {"id": "2_3"}}, {"condition": "SINGLETON"}], "triggerRule": "all_success"}`,
		"afterany:7":              `{"upstream": [{"native": {"id": "7"}}], "triggerRule": "all_done"}`,
		"after:7+2":               `{"upstream": [{"native": {"id": "7"}, "condition": "STARTED", "delay": "120s"}]}`,
	} {
		task, _, faults := slurm.ParseScript("#!/bin/sh\n#SBATCH --dependency=" + expression + "\ntrue\n")
		require.Empty(t, faults, expression)
		wanted := &dagbridgev1.Task{}
		require.NoError(t, protojson.Unmarshal([]byte(want), wanted))
		require.True(t, proto.Equal(wanted, &dagbridgev1.Task{Upstream: task.Upstream, TriggerRule: task.TriggerRule}), "%s: %v", expression, task)
	}
	for _, expression := range []string{"afterok:1,afterany:2", "afternotok:1", "afterok:x", "afterok", "afterok:1+2", "expand:1", "afterok:1?afterok:2", "singleton:1"} {
		_, _, faults := slurm.ParseScript("#!/bin/sh\n#SBATCH --dependency=" + expression + "\ntrue\n")
		require.Len(t, faults, 1, expression)
	}
}

func TestTheContainerOfASlurmScript(t *testing.T) {
	t.Parallel()
	for directive, runtime := range map[string]string{"--container=/bundles/b": "oci", "--container-image=/bundles/b": "pyxis"} {
		task, _, faults := slurm.ParseScript("#!/bin/sh\n#SBATCH " + directive + "\ntrue\n")
		require.Empty(t, faults)
		require.Equal(t, "/bundles/b", task.GetContainer().GetImage())
		require.Equal(t, runtime, task.GetSlurm().GetContainer())
	}
}
