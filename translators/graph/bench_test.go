package graph

import (
	"fmt"
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// layers is a DAG of layers, each task of which waits for the whole layer before it.
func layers(width, depth int) []*dagbridgev1.Task {
	var lines []string
	before := ""
	for d := range depth {
		names := ""
		for i := range width {
			lines = append(lines, fmt.Sprintf("t%d_%d < %s", d, i, before))
			names += fmt.Sprintf(" t%d_%d", d, i)
		}
		before = names
	}
	return dag(lines...)
}

func benchmarks(b *testing.B, run func(b *testing.B, tasks []*dagbridgev1.Task)) {
	chain := []string{"t0"}
	for i := 1; i < 5000; i++ {
		chain = append(chain, fmt.Sprintf("t%d < t%d", i, i-1))
	}
	fan := []string{"root"}
	join := ""
	for i := range 5000 {
		fan = append(fan, fmt.Sprintf("t%d < root", i))
		join += fmt.Sprintf(" t%d", i)
	}
	for _, bench := range []struct {
		name  string
		tasks []*dagbridgev1.Task
	}{
		{"chain of 5000", dag(chain...)},
		{"fan of 5000 and join", dag(append(fan, "join <"+join)...)},
		{"3 layers of 1000, 2000000 edges", layers(1000, 3)},
	} {
		b.Run(bench.name, func(b *testing.B) { run(b, bench.tasks) })
	}
}

func BenchmarkNatives(b *testing.B) {
	benchmarks(b, func(b *testing.B, tasks []*dagbridgev1.Task) {
		nodes := onSlurm(tasks)
		for b.Loop() {
			Natives(nodes)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	benchmarks(b, func(b *testing.B, tasks []*dagbridgev1.Task) {
		w := &dagbridgev1.Workflow{Run: &dagbridgev1.Run{Orchestrator: "o", Workflow: "w", Run: "r"}, Tasks: tasks}
		w = Normalize(w)
		for b.Loop() {
			if faults := Check(w, func(*dagbridgev1.TaskKey) bool { return false }); len(faults) > 0 {
				b.Fatal(faults)
			}
		}
	})
}
