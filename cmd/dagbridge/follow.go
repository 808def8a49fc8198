package main

import (
	"context"
	"syscall"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// patience is for how long a gateway that is away is waited for.
const patience = 5 * time.Minute

// follow watches the view's jobs until all have ended. A gateway that goes away meanwhile is waited for: the jobs go on
// without it.
func follow(ctx context.Context, client *client, v *view) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := &dagbridgev1.WatchJobsRequest{}
	for _, job := range v.jobs {
		request.Ids = append(request.Ids, job.GetId())
	}
	news := make(chan *dagbridgev1.Job)
	end := make(chan error, 1)
	go func() {
		for job, err := range client.Watch(ctx, request) {
			if err != nil {
				end <- err
				return
			}
			select {
			case news <- job:
			case <-ctx.Done():
				return
			}
		}
	}()
	clock := time.NewTicker(time.Second / 2) // running times go on
	defer clock.Stop()
	for v.live() {
		select {
		case job := <-news:
			v.update(job)
		case <-client.away:
			v.note("the gateway does not answer; trying again")
		case <-clock.C:
			v.draw()
		case err := <-end:
			return err
		case <-ctx.Done():
			return exitf(128+int(syscall.SIGINT), "no longer waiting; what was submitted goes on")
		}
	}
	return nil
}
