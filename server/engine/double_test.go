package engine

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// doubled submits an array of n instances whose native job "1" has a double "2": a request that came late.
func (b *bench) doubled(n int) (parent string, kids []string) {
	b.t.Helper()
	parent, kids = b.array(n, func(*dagbridgev1.Task) {})
	for _, j := range slices.Clone(b.hpc.jobs) {
		double := *j
		double.id = "2"
		b.hpc.jobs = append(b.hpc.jobs, &double)
	}
	b.hpc.nextID = 3
	return parent, kids
}

// element is one instance of a native array.
func (b *bench) element(id string, position int) *simJob {
	b.t.Helper()
	i := slices.IndexFunc(b.hpc.jobs, func(j *simJob) bool { return j.id == id && j.position == position })
	require.GreaterOrEqual(b.t, i, 0)
	return b.hpc.jobs[i]
}

// succeeds ends a running element.
func (b *bench) succeeds(j *simJob) {
	b.t.Helper()
	require.Equal(b.t, dagbridgev1.Job_RUNNING, j.state)
	j.run.running, j.state, j.ended = false, dagbridgev1.Job_SUCCEEDED, b.hpc.w.now
}

// Of two native arrays with one token each may have started some of the instances. Each instance's end is that of the one
// that started it, and none runs again.
func TestAnArrayAndItsDoubleShareTheInstances(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		// before anything is known of the double, then in this order.
		before, then []int
	}{
		"the array's ends first":  {nil, []int{0, 1}},
		"the double's ends first": {nil, []int{1, 0}},
		"the array's has ended":   {[]int{0}, []int{1}},
		"the double's has ended":  {[]int{1}, []int{0}},
		"both have ended":         {[]int{0, 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			parent, kids := b.doubled(2)
			owners := []*simJob{b.element("1", 0), b.element("2", 1)}
			for _, j := range owners {
				b.hpc.begin(j)
			}
			for _, j := range []*simJob{b.element("1", 1), b.element("2", 0)} {
				b.hpc.begin(j)
				require.Equal(t, reasonDuplicate, j.reason)
			}
			settle := func() {
				for range 8 {
					b.hpc.w.now = b.hpc.w.now.Add(3 * time.Second)
					b.look()
				}
			}
			for _, i := range ends.before {
				b.succeeds(owners[i])
			}
			settle()
			for _, i := range ends.then {
				b.succeeds(owners[i])
				settle()
			}
			for i, kid := range kids {
				require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(kid).GetState(), "instance %d: %v", i, b.job(kid))
				require.Equal(t, owners[i].id+"_"+strconv.Itoa(i), b.job(kid).GetNativeId())
				require.Len(t, b.job(kid).GetAttempts(), 1)
			}
			require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(parent).GetState())
			require.Equal(t, 3, b.hpc.nextID, "nothing is submitted again")
		})
	}
}
