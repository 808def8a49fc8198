package bridge

import (
	"google.golang.org/grpc"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// maxChunk is the most that one message of a log holds.
const maxChunk = 64 << 10

// ReadLogs sends what the program wrote, as it is, in pieces of bounded size. The reader stops when the caller is gone.
func (b *Bridge) ReadLogs(req *dagbridgev1.ReadLogsRequest, stream grpc.ServerStreamingServer[dagbridgev1.ReadLogsResponse]) error {
	if req.GetTail() > 0 && req.GetOffset() > 0 {
		return translators.Faults{{Field: "tail", Description: "excludes offset: give one of them"}}
	}
	return b.engine.ReadLogs(stream.Context(), req, func(data []byte, offset int64) error {
		for len(data) > 0 {
			n := min(len(data), maxChunk)
			if err := stream.Send(&dagbridgev1.ReadLogsResponse{Data: data[:n], Offset: offset}); err != nil {
				return err
			}
			data, offset = data[n:], offset+int64(n)
		}
		return nil
	})
}
