package dagbridge

import (
	"context"
	"errors"
	"io"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Logs writes what a job's program wrote to w, a piece at a time; with follow until the job has ended.
func (c *Client) Logs(ctx context.Context, req *dagbridgev1.ReadLogsRequest, w io.Writer) error {
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
		if _, err := w.Write(resp.GetData()); err != nil {
			return err
		}
	}
}
