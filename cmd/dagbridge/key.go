package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

const keyForm = "orchestrator/workflow/run/task[/index], the parts percent-encoded"

// keyFlags name a task part by part; a KEY names all but the deployment at once.
type keyFlags struct {
	key   string
	parts dagbridgev1.TaskKey
	index []int32
	try   int32
}

func (k *keyFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&k.parts.Deployment, "deployment", "", "which installation of the orchestrator")
	flags.StringVar(&k.parts.Orchestrator, "orchestrator", "", `orchestrator ("airflow", "kfp", "cli")`)
	flags.StringVar(&k.parts.Workflow, "workflow", "", "workflow, dag_id, pipeline")
	flags.StringVar(&k.parts.Run, "run", "", "run, run_id")
	flags.StringVar(&k.parts.Task, "task", "", "task, task_id")
	flags.Int32SliceVar(&k.index, "map-index", nil, "index of a mapped task")
	flags.Int32Var(&k.try, "try", 0, "the caller's count of tries")
}

// taskKey is the key of a KEY, when there is one, with what flags say beside.
func (k *keyFlags) taskKey() (*dagbridgev1.TaskKey, error) {
	key := &dagbridgev1.TaskKey{}
	if k.key != "" {
		var err error
		if key, err = graph.ParseKey(k.key); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		flag, value string
		into        *string
	}{
		{"--deployment", k.parts.GetDeployment(), &key.Deployment},
		{"--orchestrator", k.parts.GetOrchestrator(), &key.Orchestrator},
		{"--workflow", k.parts.GetWorkflow(), &key.Workflow},
		{"--run", k.parts.GetRun(), &key.Run},
		{"--task", k.parts.GetTask(), &key.Task},
	} {
		if part.value == "" {
			continue
		}
		if *part.into != "" {
			return nil, fmt.Errorf("%s %s: the key %s says %s already", part.flag, part.value, k.key, *part.into)
		}
		*part.into = part.value
	}
	if len(k.index) > 0 {
		key.MapIndex = k.index
	}
	return key, nil
}

// findJob answers with the job that an argument names, by id or by KEY.
func findJob(ctx context.Context, client *client, name string) (*dagbridgev1.Job, error) {
	if !strings.Contains(name, "/") {
		answer, err := client.GetJob(ctx, &dagbridgev1.GetJobRequest{Id: name})
		return answer.GetJob(), err
	}
	key, err := graph.ParseKey(name)
	if err != nil {
		return nil, err
	}
	return lookup(ctx, client, key, 0)
}

func lookup(ctx context.Context, client *client, key *dagbridgev1.TaskKey, try int32) (*dagbridgev1.Job, error) {
	answer, err := client.LookupJob(ctx, &dagbridgev1.LookupJobRequest{
		Deployment: key.GetDeployment(), Orchestrator: key.GetOrchestrator(), Workflow: key.GetWorkflow(), Run: key.GetRun(),
		Task: key.GetTask(), MapIndex: key.GetMapIndex(), TryNumber: try,
	})
	return answer.GetJob(), err
}
