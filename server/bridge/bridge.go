// Package bridge answers the RPCs: one thin handler each, over the engine for what changes something and over the store for
// look-ups.
//
// A handler checks nothing that Check has checked, decides nothing that the engine decides, and returns errors as they come:
// Status, the one table of errors, turns them into gRPC codes. The package knows no listener and no HTTP; who calls is known
// from auth.Owner.
//
// What is refused, and where users might expect otherwise: an empty workflow is an error, not a run with nothing to do; of a
// quantity that Kubernetes cannot read ("100K") the right spelling is told, and nothing is rewritten; outputs above 48 KiB are
// refused whole, never cut; a request has at most 64 MiB and 2,000,000 list items and map entries, while an answer may be larger.
package bridge

import (
	"context"
	"log/slog"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
)

// heartbeat is how long a watch may be quiet before a bookmark is sent.
const heartbeat = 5 * time.Second

// Bridge is the service. Its methods may be called concurrently.
type Bridge struct {
	dagbridgev1.UnimplementedBridgeServiceServer

	engine    *engine.Engine
	store     *store.Store
	log       *slog.Logger
	validator protovalidate.Validator
	heartbeat time.Duration
}

// New makes the service over a running engine and its store.
func New(e *engine.Engine, s *store.Store, log *slog.Logger) (*Bridge, error) {
	validator, err := newValidator()
	if err != nil {
		return nil, err
	}
	return &Bridge{engine: e, store: s, log: log, validator: validator, heartbeat: heartbeat}, nil
}

// SubmitTask submits one task.
func (b *Bridge) SubmitTask(ctx context.Context, req *dagbridgev1.SubmitTaskRequest) (*dagbridgev1.SubmitTaskResponse, error) {
	return b.engine.SubmitTask(ctx, auth.Owner(ctx), req)
}

// CancelJob asks for the end of a job; that it is over is told by a later look at it.
func (b *Bridge) CancelJob(ctx context.Context, req *dagbridgev1.CancelJobRequest) (*dagbridgev1.CancelJobResponse, error) {
	if _, err := b.store.Job(req.GetId()); err != nil {
		return nil, err
	}
	results, err := b.engine.Cancel(ctx, []string{req.GetId()})
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.CancelJobResponse{Job: results[0].GetJob()}, nil
}

// BatchCancelJobs cancels many jobs; what is unknown is told one by one.
func (b *Bridge) BatchCancelJobs(ctx context.Context, req *dagbridgev1.BatchCancelJobsRequest) (*dagbridgev1.BatchCancelJobsResponse, error) {
	results, err := b.engine.Cancel(ctx, req.GetIds())
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		result.Job = basic(result.GetJob())
	}
	return &dagbridgev1.BatchCancelJobsResponse{Results: results}, nil
}

// RetryJob starts another attempt of a job that has ended without success.
func (b *Bridge) RetryJob(ctx context.Context, req *dagbridgev1.RetryJobRequest) (*dagbridgev1.RetryJobResponse, error) {
	job, err := b.engine.Retry(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.RetryJobResponse{Job: job}, nil
}

// PutOutputs stages outputs of a running job.
func (b *Bridge) PutOutputs(ctx context.Context, req *dagbridgev1.PutOutputsRequest) (*dagbridgev1.PutOutputsResponse, error) {
	if own := auth.Job(ctx); own != "" && own != req.GetId() {
		return nil, status.Errorf(codes.PermissionDenied, "this token is that of job %s: with it no outputs but its own may be put", own)
	}
	job, err := b.engine.PutOutputs(ctx, req.GetId(), req.GetOutputs())
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.PutOutputsResponse{Job: job}, nil
}

// ListClusters tells how each cluster is.
func (b *Bridge) ListClusters(context.Context, *dagbridgev1.ListClustersRequest) (*dagbridgev1.ListClustersResponse, error) {
	return &dagbridgev1.ListClustersResponse{Clusters: b.engine.Clusters()}, nil
}
