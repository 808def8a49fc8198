package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func TestFlagsGoOverTheFile(t *testing.T) {
	task := &dagbridgev1.Task{
		Cluster: "here", Env: map[string]string{"A": "1", "B": "2"},
		Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "1Gi", Gpus: []*dagbridgev1.Gpu{{Type: "v100"}}},
		Slurm:     &dagbridgev1.SlurmOptions{Partition: "short", Options: map[string]string{"constraint": "ib"}},
	}
	t.Setenv("FROM_HERE", "x=y")
	flags := taskFlags{
		cluster: "hpc", cpu: "4", gpus: []string{"2", "a100", "h100:8"}, time: 90 * time.Second, env: []string{"B=3", "FROM_HERE", "EMPTY="},
		after: []string{"before", "airflow/w/r/t%2Fu/3"}, rule: "all_done", options: []string{"exclusive", "nice=5"}, qos: "high", maxRetries: 2, perTask: true,
	}
	require.NoError(t, flags.apply(task))
	want := &dagbridgev1.Task{
		Cluster: "hpc", Env: map[string]string{"A": "1", "B": "3", "FROM_HERE": "x=y", "EMPTY": ""},
		Resources: &dagbridgev1.Resources{
			Cpu: "4", Memory: "1Gi", TimeLimit: durationpb.New(90 * time.Second),
			Gpus: []*dagbridgev1.Gpu{{Count: new(int32(2))}, {Type: "a100", Count: new(int32(1))}, {Type: "h100", Count: new(int32(8))}},
		},
		Slurm: &dagbridgev1.SlurmOptions{Partition: "short", Qos: "high", Options: map[string]string{"constraint": "ib", "exclusive": "", "nice": "5"}},
		Upstream: []*dagbridgev1.Edge{{Task: "before"}, {Key: &dagbridgev1.TaskKey{
			Orchestrator: "airflow", Workflow: "w", Run: "r", Task: "t/u", MapIndex: []int32{3},
		}}},
		TriggerRule: "all_done", Retry: &dagbridgev1.Retry{MaxRetries: 2}, Launch: dagbridgev1.Task_PER_TASK,
	}
	require.True(t, proto.Equal(want, task), "%v\n%v", want, task)
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for fault, flags := range map[string]taskFlags{
		"--env =x":              {env: []string{"=x"}},
		"--env NOT_SET_ANYWERE": {env: []string{"NOT_SET_ANYWERE"}},
		"--label team":          {labels: []string{"team"}},
		"--gpu a100:many":       {gpus: []string{"a100:many"}},
		"--gpu 0":               {gpus: []string{"0"}},
		"--after":               {after: []string{"a/b"}},
	} {
		require.ErrorContains(t, flags.apply(&dagbridgev1.Task{}), fault)
	}
}
