package local

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// spec is all that a supervisor, or a gateway that starts again, must know of an attempt.
type spec struct {
	// Argv of the program; empty when Script is what runs.
	Argv []string
	// Script's text, with the line that names its interpreter.
	Script string
	// Prologue is lines of bash before the program.
	Prologue string
	// Env of the program, all of it, as NAME=value in ascending order.
	Env []string
	// Dir is where the program runs.
	Dir string
	// Inputs is the JSON text of DAGBRIDGE_INPUTS.
	Inputs string
	// TimeLimit of the program; 0: none.
	TimeLimit time.Duration
	// CPU in thousandths of one, Memory in bytes: what the queue keeps free for it.
	CPU, Memory int64
	// Hold: it does not start before it is released.
	Hold bool
}

// defaultCPU is what a task has that asks for none, in thousandths.
const defaultCPU = 1000

// spec translates a submission. Contacting nothing, it is Render's as well as Submit's.
func (b *Backend) spec(sub translators.Submission) (*spec, []string, translators.Faults) {
	var faults translators.Faults
	var notices []string
	f, ok := b.folder(sub.Token)
	if !ok {
		faults.Add("token", "%q is not a job id, a dot and an attempt number", sub.Token)
	}
	task := sub.Task
	if sub.Instances != nil {
		faults.Add("array", "a local cluster has no arrays: submit the instances one by one")
	}
	if len(sub.Depends.Terms) > 0 {
		faults.Add("upstream", "a local cluster keeps no dependencies: submit the task when its upstreams have ended")
	}
	b.image(task, &faults)
	s := &spec{
		Argv: task.GetCommand().GetArgv(), Prologue: joinLines(b.options.Prologue, task.GetPrologue()), Dir: task.GetWorkingDirectory(),
		Env: b.env(sub, f), Inputs: inputs(sub.Inputs), TimeLimit: task.GetResources().GetTimeLimit().AsDuration(), Hold: sub.Hold,
	}
	if s.Dir == "" {
		s.Dir = b.jobDir(sub.Job.GetId())
	}
	if task.GetScript() != nil {
		var err error
		if s.Script, err = translators.NormalizeScript(task.GetScript().GetText()); err != nil {
			faults.Add("script.text", "%v", err)
		}
	}
	if s.Script == "" && len(s.Argv) == 0 && len(faults) == 0 {
		faults.Add("command", "the task has neither a command nor a script")
	}
	notices = append(notices, b.resources(s, task, &faults)...)
	if task.GetSlurm() != nil {
		notices = append(notices, "slurm: means nothing on a local cluster")
	}
	if task.GetKubernetes() != nil {
		notices = append(notices, "kubernetes: means nothing on a local cluster")
	}
	return s, notices, faults
}

// image wants an environment that stands in for the task's image.
func (b *Backend) image(task *dagbridgev1.Task, faults *translators.Faults) {
	c := task.GetContainer()
	if c == nil {
		return
	}
	if task.GetCommand() == nil && task.GetScript() == nil {
		faults.Add("container", "the local cluster %s runs no containers, and what the image runs by itself is not known: give the task a command, or name another cluster", b.options.Name)
		return
	}
	if b.options.Images[c.GetImage()] == "" {
		faults.Add("container.image", "the local cluster %s runs no containers, and nothing stands in for %s: name a folder with its programs "+
			"(clusters[].local.images: [{name: %q, folder: /opt/venv}]), leave it out, or name another cluster", b.options.Name, c.GetImage(), c.GetImage())
	}
}

// resources reads what the task needs, all of which must fit on this machine.
func (b *Backend) resources(s *spec, task *dagbridgev1.Task, faults *translators.Faults) (notices []string) {
	r := task.GetResources()
	tasks := int64(max(r.GetTasksPerNode(), 1))
	cpu, err := graph.CPU(r.GetCpu())
	if err != nil {
		faults.Add("resources.cpu", "%q %v", r.GetCpu(), err)
	}
	if cpu == 0 {
		cpu = defaultCPU
	}
	s.CPU = cpu * tasks
	if s.CPU > int64(b.options.CPUs)*1000 {
		faults.Add("resources.cpu", "%s CPUs are more than the %d that the local cluster %s has", thousandths(s.CPU), b.options.CPUs, b.options.Name)
	}
	if s.Memory, err = graph.Memory(r.GetMemory()); err != nil {
		faults.Add("resources.memory", "%q %v", r.GetMemory(), err)
	}
	if s.Memory > b.options.Memory {
		faults.Add("resources.memory", "%d bytes are more than the %d that the local cluster %s has", s.Memory, b.options.Memory, b.options.Name)
	}
	if r.GetNodes() > 1 {
		faults.Add("resources.nodes", "the local cluster %s is one node, and the task needs %d", b.options.Name, r.GetNodes())
	}
	if len(r.GetGpus()) > 0 {
		faults.Add("resources.gpus", "the local cluster %s does not hand out GPUs: leave them out, or name another cluster", b.options.Name)
	}
	if tasks > 1 && task.GetLaunch() == dagbridgev1.Task_PER_TASK {
		faults.Add("launch", "the local cluster %s starts a program once: PER_TASK needs tasksPerNode 1, or another cluster", b.options.Name)
	}
	if s.Memory > 0 {
		notices = append(notices, "resources.memory: a local cluster keeps so much free for the program, and does not hold it to that")
	}
	return notices
}

// env is the program's whole environment.
func (b *Backend) env(sub translators.Submission, f folder) []string {
	key := sub.Task.GetKey()
	index := make([]string, len(key.GetMapIndex()))
	for i, n := range key.GetMapIndex() {
		index[i] = strconv.Itoa(int(n))
	}
	env := map[string]string{"PATH": b.path}
	maps.Copy(env, sub.Task.GetEnv())
	if folder := b.options.Images[sub.Task.GetContainer().GetImage()]; folder != "" {
		env["PATH"] = filepath.Join(folder, "bin") + ":" + env["PATH"]
	}
	if translators.Launches(sub.Task) {
		env[translators.LauncherVariable], env[translators.PipelinesVariable] = b.options.Launcher, filepath.Join(b.options.Dir, "pipelines")
	}
	maps.Copy(env, map[string]string{
		"DAGBRIDGE_JOB_ID":    sub.Job.GetId(),
		"DAGBRIDGE_TASK":      key.GetTask(),
		"DAGBRIDGE_RUN":       key.GetRun(),
		"DAGBRIDGE_MAP_INDEX": strings.Join(index, ","),
		"DAGBRIDGE_TRY":       strconv.Itoa(int(sub.Task.GetTryNumber())),
		"DAGBRIDGE_OUTPUT":    f.output(),
		"DAGBRIDGE_INPUTS":    f.inputs(),
	})
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// inputs is the JSON object that the program finds in DAGBRIDGE_INPUTS, each value as its upstream wrote it.
func inputs(list []translators.Input) string {
	var object strings.Builder
	object.WriteByte('{')
	for i, input := range list {
		if i > 0 {
			object.WriteByte(',')
		}
		name, _ := json.Marshal(input.Task) // a string always has a JSON form
		fmt.Fprintf(&object, "%s:%s", name, input.JSON)
	}
	object.WriteByte('}')
	return object.String()
}

func joinLines(parts ...string) string {
	var lines strings.Builder
	for _, part := range parts {
		if part != "" {
			lines.WriteString(strings.TrimSuffix(part, "\n") + "\n")
		}
	}
	return lines.String()
}

// thousandths writes 1500 as "1.5".
func thousandths(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }

// command is what is executed: the program, under a bash that has read the prologue where there is one.
func (s *spec) command(f folder) []string {
	program := s.Argv
	if s.Script != "" {
		program = append(translators.Interpreter(s.Script), f.script())
	}
	if s.Prologue == "" {
		return program
	}
	return append([]string{"/bin/bash", "-c", `. "$0"; exec -- "$@"`, f.prologue()}, program...)
}
