package dagbridge

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Watch yields the jobs that a request chooses, as they are, and again whenever they change, until the context ends or the
// loop is left. When the stream breaks it goes on where it was, for as long as it takes; where that can no longer be known, it
// begins again with the jobs as they are, so that a state may be yielded twice but none is missed for good. An error other
// than that the gateway is away is yielded last.
func (c *Client) Watch(ctx context.Context, req *dagbridgev1.WatchJobsRequest) iter.Seq2[*dagbridgev1.Job, error] {
	return func(yield func(*dagbridgev1.Job, error) bool) {
		err := c.watch(ctx, req, func(resp *dagbridgev1.WatchJobsResponse) bool {
			return resp.GetJob() == nil || yield(resp.GetJob(), nil)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// Wait waits until jobs have ended, and answers with them in the order of their ids; NOT_FOUND when one is unknown.
func (c *Client) Wait(ctx context.Context, ids ...string) ([]*dagbridgev1.Job, error) {
	ended := make(map[string]*dagbridgev1.Job)
	seen := make(map[string]bool)
	open := make(map[string]bool)
	for _, id := range ids {
		open[id] = true
	}
	var unknown []string
	if len(ids) > 0 {
		err := c.watch(ctx, &dagbridgev1.WatchJobsRequest{Ids: slices.Collect(maps.Keys(open))}, func(resp *dagbridgev1.WatchJobsResponse) bool {
			job := resp.GetJob()
			if job == nil { // A bookmark: by now every job that there is has been told.
				unknown = slices.DeleteFunc(slices.Collect(maps.Keys(open)), func(id string) bool { return seen[id] })
				return len(unknown) == 0
			}
			seen[job.GetId()] = true
			if terminal(job.GetState()) {
				ended[job.GetId()] = job
				delete(open, job.GetId())
			}
			return len(open) > 0
		})
		if err != nil {
			return nil, err
		}
	}
	if len(unknown) > 0 {
		return nil, status.Errorf(codes.NotFound, "there is no such job: %s", strings.Join(unknown, ", "))
	}
	jobs := make([]*dagbridgev1.Job, len(ids))
	for i, id := range ids {
		jobs[i] = ended[id]
	}
	return jobs, nil
}

func terminal(state dagbridgev1.Job_State) bool { return state >= dagbridgev1.Job_SUCCEEDED }

// watch calls take with everything a watch tells until it says no, over as many streams as it takes.
func (c *Client) watch(ctx context.Context, req *dagbridgev1.WatchJobsRequest, take func(*dagbridgev1.WatchJobsResponse) bool) error {
	req = proto.CloneOf(req)
	o := c.newOutage()
	for {
		err := c.watchOnce(ctx, req, func(resp *dagbridgev1.WatchJobsResponse) bool {
			o.over()
			// Present states have no token: before the bookmark after them, a new stream begins anew.
			if resp.GetResumeToken() != "" {
				req.ResumeToken = resp.GetResumeToken()
			}
			return take(resp)
		})
		if err == nil {
			return nil
		}
		if status.Code(err) == codes.OutOfRange && req.GetResumeToken() != "" {
			req.ResumeToken = ""
			continue
		}
		if err := o.sitOut(ctx, err); err != nil {
			return err
		}
	}
}

// watchOnce is one stream: nil when take has said no, else why it ended.
func (c *Client) watchOnce(ctx context.Context, req *dagbridgev1.WatchJobsRequest, take func(*dagbridgev1.WatchJobsResponse) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.WatchJobs(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(req); err != nil && !errors.Is(err, io.EOF) { // io.EOF: Recv says why.
		return err
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		if !take(resp) {
			return nil
		}
	}
}
