package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dagbridge "github.com/dagbridge/dagbridge/clients/go"
	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// request is a run on its way to the gateway.
type request struct {
	workflow *dagbridgev1.Workflow
	// rest: over REST, not gRPC. asTask: a run of one task, submitted as a task.
	rest, asTask bool
	waitFor      dagbridgev1.WaitFor_Value
}

// task is the request of a run of one task.
func (r *request) task() *dagbridgev1.SubmitTaskRequest {
	task, run := proto.CloneOf(r.workflow.GetTasks()[0]), r.workflow.GetRun()
	task.Key.Orchestrator, task.Key.Workflow, task.Key.Run = run.GetOrchestrator(), run.GetWorkflow(), run.GetRun()
	task.TryNumber, task.Uid, task.Cluster = run.GetTryNumber(), run.GetUid(), r.workflow.GetCluster()
	return &dagbridgev1.SubmitTaskRequest{Task: task, WaitFor: r.waitFor}
}

// send sends a request until it is answered, as a caller does whose gateway dies: it cannot know whether it was received.
func (r *request) send(ctx context.Context, g *gatewaytest.Gateway) error {
	for {
		grpc, rest := g.Addresses()
		again := grpc == "" // the gateway's process has ended before it was ready
		var err error
		switch {
		case again:
		case r.rest:
			again, err = r.post(ctx, rest)
		default:
			again, err = r.call(ctx, grpc)
		}
		if !again || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // the next process may not have been launched yet
	}
}

// call sends over gRPC, and says whether that may be repeated.
func (r *request) call(ctx context.Context, address string) (again bool, err error) {
	client, err := dagbridge.Dial(address, dagbridge.Options{})
	if err != nil {
		return false, err
	}
	defer func() { _ = client.Close() }()
	if r.asTask {
		_, err = client.SubmitTask(ctx, r.task())
	} else {
		_, err = client.SubmitWorkflow(ctx, r.withWait())
	}
	return status.Code(err) == codes.Unavailable, err
}

// post sends over REST, and says whether that may be repeated.
func (r *request) post(ctx context.Context, address string) (again bool, err error) {
	path, message := "/v1/runs", proto.Message(r.withWait())
	if r.asTask {
		path, message = "/v1/jobs", r.task()
	}
	body, err := jsoncodec.Marshal(message)
	if err != nil {
		return false, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	answer, err := http.DefaultClient.Do(post)
	if err != nil {
		return true, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil, answer.StatusCode == http.StatusServiceUnavailable:
		return true, fmt.Errorf("POST %s: %d: %s: %w", path, answer.StatusCode, text, err)
	case answer.StatusCode != http.StatusOK:
		return false, fmt.Errorf("POST %s: %d: %s", path, answer.StatusCode, text)
	}
	return false, nil
}

func (r *request) withWait() *dagbridgev1.Workflow {
	w := proto.CloneOf(r.workflow)
	w.WaitFor = r.waitFor
	return w
}

// cancelRun asks for the end of every job of a run, until that is answered.
func cancelRun(ctx context.Context, g *gatewaytest.Gateway, run *dagbridgev1.Run) error {
	for {
		err := tryCancelRun(ctx, g, run)
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // the next process may not have been launched yet
	}
}

func tryCancelRun(ctx context.Context, g *gatewaytest.Gateway, run *dagbridgev1.Run) error {
	address, _ := g.Addresses()
	if address == "" {
		return status.Error(codes.Unavailable, "the gateway's process has ended before it was ready")
	}
	client, err := dagbridge.Dial(address, dagbridge.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	page, err := client.ListJobs(ctx, &dagbridgev1.ListJobsRequest{Workflow: run.GetWorkflow(), Run: run.GetRun()})
	if err != nil {
		return err
	}
	var ids []string
	for _, job := range page.GetJobs() {
		ids = append(ids, job.GetId())
	}
	_, err = client.BatchCancelJobs(ctx, &dagbridgev1.BatchCancelJobsRequest{Ids: ids})
	return err
}
