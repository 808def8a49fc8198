package bridge

import (
	"context"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// GetRun answers with a run, its state and its counts.
func (b *Bridge) GetRun(_ context.Context, req *dagbridgev1.GetRunRequest) (*dagbridgev1.GetRunResponse, error) {
	run, err := b.engine.Run(req.GetId())
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.GetRunResponse{Run: run}, nil
}

// ListRuns answers with a page of runs, newest first.
func (b *Bridge) ListRuns(_ context.Context, req *dagbridgev1.ListRunsRequest) (*dagbridgev1.ListRunsResponse, error) {
	return b.engine.Runs(req)
}

// CancelRun cancels every job of a run that has not ended.
func (b *Bridge) CancelRun(ctx context.Context, req *dagbridgev1.CancelRunRequest) (*dagbridgev1.CancelRunResponse, error) {
	run, err := b.engine.CancelRun(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.CancelRunResponse{Run: run}, nil
}
