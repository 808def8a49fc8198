package slurmtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
)

// scattered is an array of so many positions apart from each other that slurmrestd does not list them all.
func scattered(t *testing.T, n int) translators.Submission {
	array := task("true")
	array.Array = &dagbridgev1.Array{Items: make([]*dagbridgev1.Array_Item, 2*n)}
	for i := range array.Array.Items {
		array.Array.Items[i] = &dagbridgev1.Array_Item{}
	}
	sub := backendtest.Submission(t, array)
	for i := range n {
		// every third pair of neighbours, so that Slurm cannot write them as a range with a step
		position := 2*i + i%2
		if position < 2*n {
			sub.Instances = append(sub.Instances, translators.Instance{Position: position, JobID: sub.Job.Id, MapIndex: []int32{int32(position)}, Item: array.Array.Items[position]})
		}
	}
	return sub
}

func TestAScatteredArrayIsToldElementByElement(t *testing.T) {
	t.Parallel()
	for _, release := range releases() {
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{Release: release})
			for _, name := range apart {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					elementByElement(t, newBench(t, c, ways[name], nil))
				})
			}
		})
	}
}

func elementByElement(t *testing.T, b *bench) {
	known := b.submit(t, held(scattered(t, 60)))
	for _, position := range known.Positions {
		b.watcher.Await(t, known.Ref, position, patience, "held", func(o backend.Observation) bool { return o.Held })
	}
	one := known
	one.Positions = known.Positions[30:31]
	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{one}))
	require.Equal(t, []error{nil}, b.backend.Alter(t.Context(), []backend.Change{{Ref: known.Ref, Job: known.Job, Release: true}}))
	for i, position := range known.Positions {
		wanted := dagbridgev1.Job_SUCCEEDED
		if i == 30 {
			wanted = dagbridgev1.Job_CANCELLED
		}
		b.watcher.Await(t, known.Ref, position, patience, wanted.String(), is(wanted))
	}
}
