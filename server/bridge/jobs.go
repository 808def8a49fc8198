package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// GetJob answers with a job, outputs included.
func (b *Bridge) GetJob(_ context.Context, req *dagbridgev1.GetJobRequest) (*dagbridgev1.GetJobResponse, error) {
	job, err := b.store.Job(req.GetId())
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.GetJobResponse{Job: job}, nil
}

// BatchGetJobs answers for many ids and keys at once, ids first, without outputs. What is unknown is left out.
func (b *Bridge) BatchGetJobs(_ context.Context, req *dagbridgev1.BatchGetJobsRequest) (*dagbridgev1.BatchGetJobsResponse, error) {
	resp := &dagbridgev1.BatchGetJobsResponse{}
	add := func(job *dagbridgev1.Job, err error) error {
		if err == nil && req.GetView() != dagbridgev1.View_FULL {
			job = basic(job)
		}
		if err == nil {
			resp.Jobs = append(resp.Jobs, job)
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}
	for _, id := range req.GetIds() {
		if err := add(b.store.Job(id)); err != nil {
			return nil, err
		}
	}
	for _, key := range req.GetKeys() {
		if err := add(b.store.Lookup(withDeployment(key), 0)); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// ListJobs answers with a page of jobs, newest first, without outputs unless asked.
func (b *Bridge) ListJobs(_ context.Context, req *dagbridgev1.ListJobsRequest) (*dagbridgev1.ListJobsResponse, error) {
	filter := &dagbridgev1.JobFilter{
		Deployment: req.GetDeployment(), Orchestrator: req.GetOrchestrator(), Workflow: req.GetWorkflow(), Run: req.GetRun(), Task: req.GetTask(),
		State: req.GetState(), Cluster: req.GetCluster(), NativeId: req.GetNativeId(), Parent: req.GetParent(), Label: req.GetLabel(),
	}
	jobs, next, resume, err := b.store.List(filter, int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if req.GetView() != dagbridgev1.View_FULL {
		for i := range jobs {
			jobs[i] = basic(jobs[i])
		}
	}
	return &dagbridgev1.ListJobsResponse{Jobs: jobs, NextPageToken: next, ResumeToken: resume}, nil
}

// LookupJob answers with the newest job of a task.
func (b *Bridge) LookupJob(_ context.Context, req *dagbridgev1.LookupJobRequest) (*dagbridgev1.LookupJobResponse, error) {
	job, err := b.store.Lookup(withDeployment(&dagbridgev1.TaskKey{
		Deployment: req.GetDeployment(), Orchestrator: req.GetOrchestrator(), Workflow: req.GetWorkflow(), Run: req.GetRun(), Task: req.GetTask(), MapIndex: req.GetMapIndex(),
	}), req.GetTryNumber())
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.LookupJobResponse{Job: job}, nil
}

// GetOutput answers with one output of the newest job of a task.
func (b *Bridge) GetOutput(_ context.Context, req *dagbridgev1.GetOutputRequest) (*dagbridgev1.GetOutputResponse, error) {
	job, err := b.store.Lookup(withDeployment(&dagbridgev1.TaskKey{
		Deployment: req.GetDeployment(), Orchestrator: req.GetOrchestrator(), Workflow: req.GetWorkflow(), Run: req.GetRun(), Task: req.GetTask(), MapIndex: req.GetMapIndex(),
	}), req.GetTryNumber())
	if err != nil {
		return nil, err
	}
	value, ok := job.GetOutputs()[req.GetOutput()]
	switch {
	case ok:
		return &dagbridgev1.GetOutputResponse{Value: value}, nil
	case !graph.IsTerminal(job.GetState()):
		return nil, status.Errorf(codes.NotFound, "job %s is %s: its outputs are there when it has ended", job.GetId(), job.GetState())
	}
	return nil, status.Errorf(codes.NotFound, "job %s left no output %q; %s", job.GetId(), req.GetOutput(), outputNames(job))
}

func outputNames(job *dagbridgev1.Job) string {
	if len(job.GetOutputs()) == 0 {
		return "it left none"
	}
	names := slices.Sorted(maps.Keys(job.GetOutputs()))
	const most = 20
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return "it left " + strings.Join(names, ", ")
}

// defaultDeployment is the deployment of a caller that names none.
const defaultDeployment = "default"

// withDeployment fills in the deployment that a caller may leave out.
func withDeployment(key *dagbridgev1.TaskKey) *dagbridgev1.TaskKey {
	if key.GetDeployment() != "" {
		return key
	}
	return &dagbridgev1.TaskKey{
		Deployment: defaultDeployment, Orchestrator: key.GetOrchestrator(), Workflow: key.GetWorkflow(), Run: key.GetRun(), Task: key.GetTask(), MapIndex: key.GetMapIndex(),
	}
}

var outputsField = (*dagbridgev1.Job)(nil).ProtoReflect().Descriptor().Fields().ByName("outputs")

// basic is a job without its outputs. Jobs are shared and immutable, so it is another message with the same parts.
func basic(job *dagbridgev1.Job) *dagbridgev1.Job {
	if len(job.GetOutputs()) == 0 {
		return job
	}
	view := &dagbridgev1.Job{}
	job.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd != outputsField {
			view.ProtoReflect().Set(fd, v)
		}
		return true
	})
	return view
}
