package slurm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

func options(pairs ...string) *dagbridgev1.Task {
	task := command("true")
	task.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		task.Slurm.Options[pairs[i]] = pairs[i+1]
	}
	return task
}

func with(task *dagbridgev1.Task, r *dagbridgev1.Resources) *dagbridgev1.Task {
	task.Resources = r
	return task
}

func TestWhatSlurmCannotSayIsRefusedWithASentence(t *testing.T) {
	t.Parallel()
	script := func(text string) *dagbridgev1.Task { return &dagbridgev1.Task{Script: &dagbridgev1.Script{Text: text}} }
	big := strings.Repeat("x", 4<<20)
	in := func(task *dagbridgev1.Task, runtime, image string) *dagbridgev1.Task {
		task.Slurm = &dagbridgev1.SlurmOptions{Container: runtime}
		if image != "" {
			task.Container = &dagbridgev1.Container{Image: image}
		}
		return task
	}
	oddEnv := func(name string) *dagbridgev1.Task {
		task := command("true")
		task.Env = map[string]string{name: "1"}
		return task
	}
	moved := command("true")
	moved.WorkingDirectory = "/data/a:b"
	for name, c := range map[string]struct {
		task *dagbridgev1.Task
		want []string
	}{
		"a script over 4 MiB":                       {script("#!/bin/sh\n#" + big), []string{"script.text: the job script has 42", "Slurm takes 4194303 at most"}},
		"a command over 4 MiB":                      {command("true", big), []string{"command: the job script has 42"}},
		"an empty script":                           {script("\n \n"), []string{"script.text: the script is empty"}},
		"DOS line ends at its head":                 {script("#!/bin/sh\r\ntrue\n"), []string{"script.text: the script has DOS line ends"}},
		"an image without a runtime":                {in(command("true"), "", "busybox"), []string{"slurm.container: the cluster's configuration names no container runtime: say which one its nodes have: apptainer, charliecloud, oci, pyxis"}},
		"a runtime without an image":                {in(command("true"), "oci", ""), []string{"slurm.container: it names what runs an image, and the task has no container.image"}},
		"an image's own program under charliecloud": {in(&dagbridgev1.Task{}, "charliecloud", "busybox"), []string{"container: charliecloud does not run an image's own program"}},
		"an image's own program under oci":          {in(&dagbridgev1.Task{}, "oci", "/bundle"), []string{"container: oci does not run an image's own program"}},
		"an image's own program under pyxis":        {in(&dagbridgev1.Task{}, "pyxis", "busybox"), []string{"container: srun needs a program"}},
		"an image that is an option":                {in(command("true"), "apptainer", "--fakeroot"), []string{`container.image: "--fakeroot" would be read as an option`}},
		"a bundle that is no path":                  {in(command("true"), "oci", "busybox"), []string{`container.image: "busybox" is not the absolute path of an OCI bundle`}},
		"a folder that cannot be mounted":           {in(moved, "charliecloud", "/i"), []string{`workingDirectory: "/data/a:b" has ':' or ','`}},
		"an environment that sh drops":              {in(oddEnv("with.dot"), "oci", "/b"), []string{`env: "with.dot" is no name that a shell hands on`}},
		"an environment that pyxis splits":          {in(oddEnv("a,b"), "pyxis", "i"), []string{`env: "a,b" has ','`}},
		"options that the container's fields say":   {options("container", "/b", "container-image", "i"), []string{`["container"]: use container.image, with oci in slurm.container`, `["container-image"]: use container.image, with pyxis`}},
		"quantities that are none":                  {with(command("true"), &dagbridgev1.Resources{Cpu: "many", Memory: "16 GB"}), []string{`resources.cpu: "many"`, `resources.memory: "16 GB"`}},
		"what a field says":                         {options("mem", "1G", "time", "5"), []string{`slurm.options["mem"]: use resources.memory`, `slurm.options["time"]: use resources.timeLimit`}},
		"what is the gateway's":                     {options("job-name", "x", "array", "1-2"), []string{`slurm.options["job-name"]: not for tasks: the gateway recognises`, "use array.items"}},
		"what one way in cannot say":                {options("switches", "1"), []string{`slurm.options["switches"]: slurmrestd cannot carry it`}},
		"a misspelt option":                         {options("constrain", "ib"), []string{`the nearest one is constraint`}},
		"a flag with a value":                       {options("spread-job", "yes"), []string{"it takes no value"}},
		"an option without its value":               {options("constraint", ""), []string{"it needs a value"}},
		"a number that is none":                     {options("nice", "very"), []string{`"very" is not a whole number`}},
		"a value slurmrestd refuses":                {options("signal", "B:USR9@60", "exclusive", "yes", "mem-per-cpu", "1GiB"), []string{`"B:USR9@60" is not a signal and seconds`, `"yes" is not "", "user" or "mcs"`, `"1GiB" is not a size`}},
		"a value only sbatch takes": {options("gres-flags", "allow-task-sharing", "mail-type", "END,NEVER", "profile", "disk", "priority", "TOP", "time-min", "soon"),
			[]string{`"allow-task-sharing" is not "disable-binding"`, `"END,NEVER" is not a list of ALL, ARRAY_TASKS`, `"disk" is not a list of ALL, ENERGY`, `"TOP" is not a number`, `"soon" is not a time as Slurm writes it`}},
		"a warning without a limit":     {options("signal", "B:USR1@60"), []string{`["signal"]: with "B:" it needs resources.timeLimit`}},
		"a warning before the start":    {with(options("signal", "B:USR1@60"), &dagbridgev1.Resources{TimeLimit: durationpb.New(time.Minute)}), []string{`["signal"]: 60 s before the end of 60 s the job has not started`}},
		"what the oldest release lacks": {options("tres-per-task", "gres/gpu:1"), []string{`["tres-per-task"]: Slurm 22.05 does not have it`}},
		"one thing said twice": {with(options("mem-per-cpu", "1G", "cpus-per-gpu", "2", "gpus", "1", "gres", "gpu:1", "ntasks", "4", "requeue", "", "no-requeue", ""),
			&dagbridgev1.Resources{Cpu: "1", Memory: "1Gi", Gpus: []*dagbridgev1.Gpu{{}}, TasksPerNode: 2}),
			[]string{`["mem-per-cpu"]: resources.memory says it`, `["cpus-per-gpu"]: resources.cpu`, `["gpus"]: resources.gpus`, `["gres"]: resources.gpus`, `["ntasks"]: the number`, `["requeue"]: no-requeue`}},
	} {
		job, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, submission(c.task))
		require.Nil(t, job, name)
		for _, want := range c.want {
			require.Contains(t, faults.Error(), want, name)
		}
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(strings.Split(faults.Error(), "\n")))), len(faults), "each fault is a line: %s", name)
	}
}

func TestAnArrayBeyondTheClustersIndicesIsRefused(t *testing.T) {
	t.Parallel()
	task := command("true")
	task.Array = &dagbridgev1.Array{}
	s := submission(task)
	for i := range 1002 {
		task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{})
		s.Instances = append(s.Instances, translators.Instance{Position: i, JobID: "j", MapIndex: []int32{int32(i)}, Item: task.Array.Items[i]})
	}
	_, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, s)
	require.Equal(t, translators.Faults{{
		Field: "array.items", Description: "item 1001 is beyond the array indices that the cluster takes, 0 to 1000 (MaxArraySize=1001)",
	}}, faults)
	job, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u", MaxArraySize: 1002}, s)
	require.Empty(t, faults)
	require.Equal(t, "0-1001", job.Array)
}

func TestCPUsAreRoundedUp(t *testing.T) {
	t.Parallel()
	for cpu, want := range map[string]int{"11m": 1, "250m": 1, "1500m": 2, "2": 2, "0": 0, "": 0, "2.5": 3, "1.0001": 2} {
		job, faults := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, submission(with(command("true"), &dagbridgev1.Resources{Cpu: cpu})))
		require.Empty(t, faults)
		require.Equal(t, want, job.CPUsPerTask, cpu)
	}
}

func TestTheSameSubmissionGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	task := options("constraint", "ib", "nice", "5", "wckey", "w")
	task.Env = map[string]string{"A": "1", "B": "2", "C": "3", "D": "4"}
	job, _ := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, submission(task))
	for range 20 {
		again, _ := slurm.Translate(slurm.Site{WorkDir: "/w", User: "u"}, submission(task))
		require.Equal(t, job, again)
		require.Equal(t, job.Text(), again.Text())
		require.Equal(t, job.Arguments(), again.Arguments())
	}
}
