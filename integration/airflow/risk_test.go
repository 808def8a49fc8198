package airflowtest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// risk: 300 simulations and their report are one task in Airflow, and in Slurm one array and a job that waits for all of it.
func (r *rig) risk(t *testing.T) {
	run := r.Trigger(t, "risk", "risk", nil)
	run.Await(t, "success")
	require.Regexp(t, `^"300 simulations, the worst loss is \d`, run.Task(t, "publish").XCom(t, "return_value"))
	require.JSONEq(t, `300`, field(t, field(t, run.Task(t, "simulations").XCom(t, "return_value"), "report"), "simulations"))
	var elements map[string]string
	Eventually(t, func() bool {
		elements = r.elements(t, "simulate")
		return len(elements) == 300 && !slices.ContainsFunc(slices.Collect(maps.Values(elements)), func(state string) bool { return state != "COMPLETED" })
	}, "the accounting has no end of all simulations: %v", &elements)
	arrays := map[string]bool{}
	for id := range elements {
		array, _, _ := strings.Cut(id, "_")
		arrays[array] = true
	}
	require.Len(t, arrays, 1, "one submission")
	for i := range 300 {
		require.Contains(t, elements, slices.Collect(maps.Keys(arrays))[0]+"_"+strconv.Itoa(i))
	}
	require.Len(t, r.accounted(t, "report"), 1)
}
