package dagbridge_test

import (
	"context"
	"fmt"
	"log"
	"os"

	dagbridge "github.com/dagbridge/dagbridge/clients/go"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// A task is submitted, waited for, and looked up by the name its orchestrator gave it.
func Example() {
	dir, err := os.MkdirTemp("", "dagbridge")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	address, stop, err := startGateway(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	ctx := context.Background()
	client, err := dagbridge.Dial(address, dagbridge.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	key := &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "risk", Run: "manual__1", Task: "train"}
	job, err := client.Submit(ctx, &dagbridgev1.Task{
		Key:    key,
		Script: &dagbridgev1.Script{Text: `echo training; echo '{"auc": 0.91}' > $DAGBRIDGE_OUTPUT`},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Wait(ctx, job.GetId()); err != nil {
		log.Fatal(err)
	}
	if err := client.Logs(ctx, &dagbridgev1.ReadLogsRequest{Id: job.GetId()}, os.Stdout); err != nil {
		log.Fatal(err)
	}
	job, err = client.Lookup(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.GetState(), "on", job.GetCluster(), "auc", job.GetOutputs()["auc"].GetText())
	// Output:
	// training
	// SUCCEEDED on local auc 0.91
}
