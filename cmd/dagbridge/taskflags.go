package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// taskFlags say of one task what a file may say, too.
type taskFlags struct {
	name, uid, cluster, directory, prologue string
	cpu, memory                             string
	gpus, env, labels, options, after       []string
	nodes, tasksPerNode, maxRetries         int32
	time                                    time.Duration
	perTask                                 bool
	partition, account, qos, rule           string
}

func (t *taskFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.name, "name", "", "name of the task; left out: the program's, or the script's --job-name")
	flags.StringVar(&t.uid, "uid", "", "the caller's id of this try")
	flags.StringVar(&t.cluster, "cluster", "", "where to run; left out: the gateway's first cluster")
	flags.StringVar(&t.cpu, "cpu", "", "CPUs per task: 4, 500m")
	flags.StringVar(&t.memory, "memory", "", "memory per node: 512Mi, 16Gi")
	flags.StringArrayVar(&t.gpus, "gpu", nil, "GPUs per node: 2, a100, a100:2; repeatable")
	flags.Int32Var(&t.nodes, "nodes", 0, "nodes")
	flags.Int32Var(&t.tasksPerNode, "tasks-per-node", 0, "tasks per node")
	flags.BoolVar(&t.perTask, "per-task", false, "start the program once per task instead of once")
	flags.DurationVar(&t.time, "time", 0, "time limit: 90s, 30m, 2h")
	flags.StringArrayVar(&t.env, "env", nil, "NAME=VALUE, or NAME for the value it has here; repeatable")
	flags.StringVar(&t.directory, "working-directory", "", "absolute path; left out: the job's own folder")
	flags.StringVar(&t.prologue, "prologue", "", `shell lines before the program ("module load cuda")`)
	flags.StringArrayVar(&t.labels, "label", nil, "NAME=VALUE; repeatable")
	flags.Int32Var(&t.maxRetries, "max-retries", 0, "how often the gateway runs the program again after it failed")
	flags.StringArrayVar(&t.after, "after", nil, "a task of the same run, or a KEY, that must end first; repeatable")
	flags.StringVar(&t.rule, "trigger-rule", "", "which ends of those before let it run: "+strings.Join(graph.Rules(), ", "))
	flags.StringVar(&t.partition, "partition", "", "Slurm partition")
	flags.StringVar(&t.account, "account", "", "Slurm account")
	flags.StringVar(&t.qos, "qos", "", "Slurm QOS")
	flags.StringArrayVar(&t.options, "slurm-option", nil, "sbatch's long name, NAME=VALUE or NAME: constraint=ib, exclusive; repeatable")
}

// apply puts the flags that were given over what the task says.
func (t *taskFlags) apply(task *dagbridgev1.Task) error {
	override(&task.Uid, t.uid)
	override(&task.Cluster, t.cluster)
	override(&task.WorkingDirectory, t.directory)
	override(&task.Prologue, t.prologue)
	override(&task.TriggerRule, t.rule)
	if t.perTask {
		task.Launch = dagbridgev1.Task_PER_TASK
	}
	if t.maxRetries > 0 {
		if task.Retry == nil {
			task.Retry = &dagbridgev1.Retry{}
		}
		task.Retry.MaxRetries = t.maxRetries
	}
	for _, name := range t.after {
		edge := &dagbridgev1.Edge{Task: name}
		if strings.Contains(name, "/") {
			key, err := graph.ParseKey(name)
			if err != nil {
				return fmt.Errorf("--after: %w", err)
			}
			edge = &dagbridgev1.Edge{Key: key}
		}
		task.Upstream = append(task.Upstream, edge)
	}
	env, err := pairs("--env", t.env, os.LookupEnv)
	if err != nil {
		return err
	}
	labels, err := pairs("--label", t.labels, nil)
	if err != nil {
		return err
	}
	task.Env = merged(task.GetEnv(), env)
	task.Labels = merged(task.GetLabels(), labels)
	if err := t.applyResources(task); err != nil {
		return err
	}
	return t.applySlurm(task)
}

func (t *taskFlags) applyResources(task *dagbridgev1.Task) error {
	if t.cpu == "" && t.memory == "" && len(t.gpus) == 0 && t.nodes == 0 && t.tasksPerNode == 0 && t.time == 0 {
		return nil
	}
	if task.Resources == nil {
		task.Resources = &dagbridgev1.Resources{}
	}
	r := task.GetResources()
	override(&r.Cpu, t.cpu)
	override(&r.Memory, t.memory)
	override(&r.Nodes, t.nodes)
	override(&r.TasksPerNode, t.tasksPerNode)
	if t.time != 0 {
		r.TimeLimit = durationpb.New(t.time)
	}
	if len(t.gpus) > 0 {
		r.Gpus = nil
	}
	for _, word := range t.gpus {
		gpu, err := parseGPU(word)
		if err != nil {
			return err
		}
		r.Gpus = append(r.Gpus, gpu)
	}
	return nil
}

func (t *taskFlags) applySlurm(task *dagbridgev1.Task) error {
	options, err := pairs("--slurm-option", t.options, func(string) (string, bool) { return "", true })
	if err != nil {
		return err
	}
	if t.partition == "" && t.account == "" && t.qos == "" && len(options) == 0 {
		return nil
	}
	if task.Slurm == nil {
		task.Slurm = &dagbridgev1.SlurmOptions{}
	}
	override(&task.Slurm.Partition, t.partition)
	override(&task.Slurm.Account, t.account)
	override(&task.Slurm.Qos, t.qos)
	task.Slurm.Options = merged(task.Slurm.GetOptions(), options)
	return nil
}

// parseGPU reads "2", "a100" or "a100:2".
func parseGPU(word string) (*dagbridgev1.Gpu, error) {
	kind, number, both := strings.Cut(word, ":")
	if !both {
		if _, err := strconv.Atoi(word); err == nil {
			kind, number = "", word
		} else {
			number = "1"
		}
	}
	count, err := strconv.ParseInt(number, 10, 32)
	if err != nil || count < 1 {
		return nil, fmt.Errorf("--gpu %s: write a number, a type, or type:number", word)
	}
	n := int32(count)
	return &dagbridgev1.Gpu{Type: kind, Count: &n}, nil
}

// pairs reads NAME=VALUE words; otherwise gives the value of a NAME alone, nil when it must have one.
func pairs(flag string, words []string, otherwise func(string) (string, bool)) (map[string]string, error) {
	out := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok && otherwise != nil {
			value, ok = otherwise(name)
		}
		if !ok || name == "" {
			return nil, fmt.Errorf("%s %s: NAME=VALUE is wanted", flag, word)
		}
		out[name] = value
	}
	return out, nil
}

func merged(base, over map[string]string) map[string]string {
	if base == nil {
		return over
	}
	maps.Copy(base, over)
	return base
}

func override[T comparable](into *T, value T) {
	var none T
	if value != none {
		*into = value
	}
}

// defaultName is what a task without a name is called.
func defaultName(task *dagbridgev1.Task) string {
	if argv := task.GetCommand().GetArgv(); len(argv) > 0 {
		if name := path.Base(argv[0]); name != "." && name != "/" {
			return name
		}
	}
	return "task"
}
