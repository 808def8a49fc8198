package dagbridge

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// outage is a time in which the gateway is away from a stream.
type outage struct {
	away  func(err error, since time.Duration) error
	pause *backoff.ExponentialBackOff
	start time.Time
}

func (c *Client) newOutage() *outage {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 200*time.Millisecond, 10*time.Second
	return &outage{away: c.away, pause: pause}
}

// over: the stream tells something.
func (o *outage) over() {
	o.pause.Reset()
	o.start = time.Time{}
}

// sitOut waits a while when a stream has ended because the gateway is away; any other end is returned.
func (o *outage) sitOut(ctx context.Context, end error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status.Code(end) != codes.Unavailable && !errors.Is(end, io.EOF):
		return end
	}
	now := time.Now()
	if o.start.IsZero() {
		o.start = now
	}
	if o.away != nil {
		if err := o.away(end, now.Sub(o.start)); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(o.pause.NextBackOff()):
		return nil
	}
}
