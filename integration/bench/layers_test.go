package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// A DAG of layers: each task waits for all tasks of the layer before, 90,000 edges in all.
const (
	layers = 10
	wide   = 100
)

// kinds of resources that a layer's tasks ask for, in turn.
var kinds = []struct{ cpus, mebibytes, minutes int }{{1, 50, 5}, {2, 50, 10}, {1, 100, 5}, {4, 200, 20}, {1, 50, 60}}

// BenchmarkLayers compares a DAG of a thousand unlike tasks, each with a program of its own, with a loop of sbatch: from the
// start until all of it is in Slurm.
func BenchmarkLayers(b *testing.B) {
	r := newRival(b, slurmtest.Oldest, slurmtest.User)
	gateway := r.startGateway(b.TempDir(), r.overREST())
	var folded, apart, loop, spent []float64
	for range *rounds {
		seconds, used := r.throughGateway(gateway, layered("auto"))
		folded, spent = append(folded, seconds), append(spent, used)
		seconds, _ = r.throughGateway(gateway, layered("off"))
		apart = append(apart, seconds)
		seconds, _ = r.measure(os.Getpid(), r.layerLoop)
		loop = append(loop, seconds)
	}
	times("1,000 unlike tasks in 10 layers into Slurm, folded", "sbatch loop", "s", folded, loop, aim{atLeast: 20})
	figure("  processor time of the gateway, slurmrestd and slurmctld", "s", spent, aim{})
	times("1,000 unlike tasks in 10 layers into Slurm as single jobs", "sbatch loop", "s", apart, loop, aim{})
}

func layered(fold string) *dagbridgev1.Workflow {
	w := &dagbridgev1.Workflow{Fold: fold}
	var before []string
	for layer := range layers {
		var names []string
		for i := range wide {
			name := fmt.Sprintf("layer_%d_task_%02d", layer, i)
			task := fan(name, before...)
			kind := kinds[i%len(kinds)]
			task.Command.Argv = []string{"echo", name}
			task.Resources = &dagbridgev1.Resources{
				Cpu: fmt.Sprint(kind.cpus), Memory: fmt.Sprintf("%dMi", kind.mebibytes), TimeLimit: durationpb.New(time.Duration(kind.minutes) * time.Minute),
			}
			w.Tasks, names = append(w.Tasks, task), append(names, name)
		}
		before = names
	}
	return w
}

// layerLoop is what a shell script would do.
func (r *rival) layerLoop() {
	var before []string
	for layer := range layers {
		var ids []string
		for i := range wide {
			kind := kinds[i%len(kinds)]
			arguments := []string{
				fmt.Sprintf("--job-name=layer_%d_task_%02d", layer, i),
				fmt.Sprintf("--cpus-per-task=%d", kind.cpus), fmt.Sprintf("--mem=%dM", kind.mebibytes), fmt.Sprintf("--time=%d", kind.minutes),
			}
			if len(before) > 0 {
				arguments = append(arguments, "--dependency=afterok:"+strings.Join(before, ":"))
			}
			ids = append(ids, r.sbatch(arguments...))
		}
		before = ids
	}
}
