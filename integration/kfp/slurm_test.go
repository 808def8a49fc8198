package kfp

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// endToEnd is a pipeline that runs on each kind of cluster.
type endToEnd struct {
	name    string
	fails   bool
	outputs map[string]string
	ends    map[string]dagbridgev1.Job_State
}

// everywhere are the pipelines that run on each kind of cluster, and the outputs of theirs that tell whether all went well.
var everywhere = []endToEnd{
	{name: "linear-ml", outputs: map[string]string{"evaluate": `{"accuracy": 0.9375}`, "deploy": `{"endpoint": "model at 0.9375"}`}},
	{name: "conditions-oneof", outputs: map[string]string{"say-4": `{"Output": "T"}`, "condition-5/condition-6/say-5": `{"Output": "nested"}`}, ends: map[string]dagbridgev1.Job_State{
		"condition-branches-1/condition-2/say": dagbridgev1.Job_SKIPPED,
	}},
	{name: "parallelfor-static", outputs: map[string]string{"agg": `{"Output": 4}`}},
	{name: "parallelfor-dynamic", outputs: map[string]string{"agg": `{"Output": 4.5}`}},
	{name: "nested-loops", outputs: map[string]string{"agg": `{"Output": 7.5}`}},
	{name: "dynamic-nested", outputs: map[string]string{"agg": `{"Output": 2.5}`, "agg-2": `{"Output": 0}`, "agg-3": `{"Output": 2.5}`}},
	{name: "loops", outputs: map[string]string{"join": `{"Output": "11,22,33"}`}},
	{name: "exit-handler", fails: true, outputs: map[string]string{"cleanup": `{"Output": "me FAILED exit-handler-1"}`}},
}

// Pipelines run on a real Slurm, whose nodes have folders in the place of images.
func TestOnSlurm(t *testing.T) {
	t.Parallel()
	slurm := slurmtest.Start(t, slurmtest.Options{Set: []string{"DefMemPerCPU=250"}}) // Python and the launcher take more than 100
	images := fmt.Sprintf(`images: [{name: "busybox:1", folder: /usr}, {name: "python:3.11-slim", folder: %q}]`, python(t))
	g := gateway{gatewaytest.NewOver(t, gatewaytest.OverSlurm(t, slurm, "cli", slurm.WorkDir(t), images))}
	g.runEverywhere(t)
	array := g.job(t, "parallelfor-dynamic", "for-loop-1/sim")
	require.Equal(t, map[string]int32{"SUCCEEDED": 3}, array.GetCounts())
	require.NotEmpty(t, array.GetNativeId(), "a loop is one array")
}

// runEverywhere runs the pipelines, or only some of them, all at once.
func (g gateway) runEverywhere(t *testing.T, names ...string) {
	t.Helper()
	chosen := slices.Clone(everywhere)
	if len(names) > 0 {
		chosen = slices.DeleteFunc(chosen, func(p endToEnd) bool { return !slices.Contains(names, p.name) })
	}
	for _, p := range chosen {
		g.Dagbridge(t, 0, "run", "--run", "monday", filepath.Join(pipelines, p.name, "in.yaml"))
	}
	for _, p := range chosen {
		g.run(t, !p.fails, p.name) // the same run, whose end is waited for
		for task, want := range p.outputs {
			require.JSONEq(t, want, g.output(t, p.name, task), "%s: %s", p.name, task)
		}
		for task, want := range p.ends {
			require.Equal(t, want, g.job(t, p.name, task).GetState(), "%s: %s", p.name, task)
		}
	}
}
