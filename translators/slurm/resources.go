package slurm

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// resources sets what the job asks for. Slurm counts in whole CPUs, MiB and minutes: all are rounded up, never to zero,
// which to Slurm would mean "all of the node" or "no limit".
func (t *translation) resources() {
	r, j := t.submission.Task.GetResources(), t.job
	if milli, err := graph.CPU(r.GetCpu()); err != nil {
		t.fault("resources.cpu", "%q %v", r.GetCpu(), err)
	} else if milli > 0 {
		j.CPUsPerTask = int(ceil(milli, 1000))
		if milli%1000 != 0 {
			t.notice("resources.cpu: Slurm takes whole CPUs; %s is rounded up to %d", r.GetCpu(), j.CPUsPerTask)
		}
	}
	if bytes, err := graph.Memory(r.GetMemory()); err != nil {
		t.fault("resources.memory", "%q %v", r.GetMemory(), err)
	} else if bytes > 0 {
		j.MemoryPerNodeMiB = ceil(bytes, 1<<20)
		if bytes%(1<<20) != 0 {
			t.notice("resources.memory: Slurm takes whole MiB; %s is rounded up to %d MiB", r.GetMemory(), j.MemoryPerNodeMiB)
		}
	}
	if limit := r.GetTimeLimit(); limit != nil {
		d := limit.AsDuration()
		j.TimeLimitMinutes = ceil(int64(d), int64(time.Minute))
		if d%time.Minute != 0 {
			t.notice("resources.timeLimit: Slurm takes whole minutes; %s is rounded up to %d min", d, j.TimeLimitMinutes)
		}
	}
	j.Gres = gres(r.GetGpus())
	t.shape(int(r.GetNodes()), int(r.GetTasksPerNode()))
}

// shape sets on how many nodes how many tasks are.
func (t *translation) shape(nodes, tasksPerNode int) {
	nodes, tasksPerNode = max(nodes, 1), max(tasksPerNode, 1)
	if _, ok := t.submission.Task.GetSlurm().GetOptions()["ntasks"]; ok {
		// So many tasks, on as many nodes as Slurm finds for them.
		if tasksPerNode > 1 {
			t.fault(`slurm.options["ntasks"]`, "the number of tasks is said by resources.tasksPerNode already; use one of the two")
		}
		if nodes > 1 {
			t.job.Nodes = nodes
		}
		return
	}
	t.job.Nodes = nodes
	if nodes*tasksPerNode > 1 {
		t.job.TasksPerNode = tasksPerNode
		// Said outright, because slurmrestd does not work it out as sbatch does.
		t.job.Tasks = nodes * tasksPerNode
	}
}

// ceil divides, rounding up.
func ceil(n, by int64) int64 {
	quotient := n / by
	if n%by > 0 {
		quotient++
	}
	return quotient
}

// gres is a list of generic resources, in the order in which the GPUs are asked for.
func gres(gpus []*dagbridgev1.Gpu) string {
	terms := make([]string, len(gpus))
	for i, gpu := range gpus {
		count := strconv.Itoa(int(cmp.Or(gpu.GetCount(), 1)))
		if gpu.GetType() == "" {
			terms[i] = "gpu:" + count
		} else {
			terms[i] = "gpu:" + gpu.GetType() + ":" + count
		}
	}
	return strings.Join(terms, ",")
}
