package main

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// patience is for how long a gateway that does not answer is waited for.
const patience = 5 * time.Minute

// follow watches the view's jobs until all have ended. A gateway that goes away meanwhile is waited for: the jobs go on
// without it, and the watch begins with their present state when it is back.
func follow(ctx context.Context, client dagbridgev1.BridgeServiceClient, v *view) error {
	pause := &backoff.ExponentialBackOff{InitialInterval: 200 * time.Millisecond, RandomizationFactor: 0.2, Multiplier: 2, MaxInterval: 5 * time.Second}
	pause.Reset()
	lastNews, told := time.Now(), false
	for v.live() {
		news, err := watch(ctx, client, v)
		switch {
		case ctx.Err() != nil:
			return exitf(128+int(syscall.SIGINT), "no longer waiting; what was submitted goes on")
		case err != nil && status.Code(err) != codes.Unavailable && !errors.Is(err, io.EOF):
			return err
		case err == nil:
			continue
		}
		if news {
			lastNews, told = time.Now(), false
			pause.Reset()
		}
		if time.Since(lastNews) > patience {
			return exitf(exitGateway, "the gateway has not answered for %s; what was submitted goes on", patience)
		}
		if !told {
			told = true
			v.note("the gateway does not answer; trying again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause.NextBackOff()):
		}
	}
	return nil
}

// watch keeps one stream until it ends or all jobs have, and says whether there was any news on it.
func watch(ctx context.Context, client dagbridgev1.BridgeServiceClient, v *view) (news bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.WatchJobs(ctx)
	if err != nil {
		return false, err
	}
	request := &dagbridgev1.WatchJobsRequest{}
	for _, job := range v.jobs {
		request.Ids = append(request.Ids, job.GetId())
	}
	if err := stream.Send(request); err != nil {
		_, err = stream.Recv() // the reason is there
		return false, err
	}
	answers := make(chan *dagbridgev1.WatchJobsResponse)
	failed := make(chan error, 1)
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	clock := time.NewTicker(time.Second / 2) // running times go on
	defer clock.Stop()
	for v.live() {
		select {
		case err := <-failed:
			return news, err
		case answer := <-answers:
			news = true
			if answer.GetJob() != nil {
				v.update(answer.GetJob())
			}
		case <-clock.C:
			v.draw()
		}
	}
	return true, nil
}
