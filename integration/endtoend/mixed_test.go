package endtoend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// mixed goes from Slurm to this machine and back: its first two edges are held, its last is native.
const mixed = `
name: mixed
cluster: hpc
tasks:
  - key: {task: count}
    script: {text: 'echo "{\"rows\": 9007199254740993}" > "$DAGBRIDGE_OUTPUT"'}
  - key: {task: check}
    cluster: here
    upstream: [{task: count}]
    script:
      text: |
        read -r inputs < "$DAGBRIDGE_INPUTS"
        printf 'seen=%s\n' "$inputs" > "$DAGBRIDGE_OUTPUT"
  - key: {task: sum}
    upstream: [{task: check}]
    script: {text: 'cat "$DAGBRIDGE_INPUTS"; sleep 2'}
  - key: {task: tell}
    upstream: [{task: sum}]
    command: {argv: ["true"]}
`

// A workflow over two clusters: each edge is kept by whoever can, and outputs flow over them byte for byte.
func TestAWorkflowOverTwoClusters(t *testing.T) {
	g := gatewaytest.New(t, slurmtest.Shared(t), "rest")
	file := write(t, "mixed.yaml", mixed)
	plan := &dagbridgev1.PlanWorkflowResponse{}
	require.NoError(t, jsoncodec.Unmarshal([]byte(g.Dagbridge(t, 0, "plan", "--config", g.Config, "-o", "json", "-f", file)), plan))
	native := map[string]bool{}
	for _, edge := range plan.GetPlan().GetEdges() {
		native[edge.GetFrom()+" "+edge.GetTo()] = edge.GetNative()
	}
	require.Equal(t, map[string]bool{"count check": false, "check sum": false, "sum tell": true}, native)

	g.Dagbridge(t, 0, "run", "--wait", "--run", "mixed", "-f", file)
	jobs := map[string]*dagbridgev1.Job{}
	for _, task := range []string{"count", "check", "sum", "tell"} {
		answer := &dagbridgev1.LookupJobResponse{}
		_, text := g.Get(t, "/v1/lookup?orchestrator=cli&workflow=mixed&run=mixed&task="+task)
		require.NoError(t, jsoncodec.Unmarshal([]byte(text), answer))
		jobs[task] = answer.GetJob()
	}
	require.Equal(t, `"{\"count\":{\"rows\":9007199254740993}}"`, jobs["check"].GetOutputs()["seen"].GetText())
	require.Contains(t, g.Dagbridge(t, 0, "logs", jobs["sum"].GetId()), `{"check":{"seen":"{\"count\":`)
	require.True(t, jobs["tell"].GetSubmitTime().AsTime().Before(jobs["sum"].GetEndTime().AsTime()), "what follows natively was in the queue already")
}
