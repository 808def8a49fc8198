package dagbridge

import (
	"context"
	"errors"
	"io"

	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Logs writes what a job's program wrote to w, a piece at a time; with follow until the job has ended, and then it goes on
// where it was when the gateway was away.
func (c *Client) Logs(ctx context.Context, req *dagbridgev1.ReadLogsRequest, w io.Writer) error {
	req = proto.CloneOf(req)
	o := c.newOutage()
	for {
		err := c.logsOnce(ctx, req, w, o)
		if err == nil || !req.GetFollow() {
			return err
		}
		if err := o.sitOut(ctx, err); err != nil {
			return err
		}
	}
}

// logsOnce is one stream: nil when all was told. What has been written is no longer asked for.
func (c *Client) logsOnce(ctx context.Context, req *dagbridgev1.ReadLogsRequest, w io.Writer, o *outage) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.ReadLogs(ctx, req)
	if err != nil {
		return err
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		o.over()
		if _, err := w.Write(resp.GetData()); err != nil {
			return err
		}
		req.Tail, req.Offset = 0, resp.GetOffset()+int64(len(resp.GetData()))
	}
}
