package main

import (
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func newLogs() *cobra.Command {
	var g gateway
	var request dagbridgev1.ReadLogsRequest
	var stderr bool
	cmd := &cobra.Command{
		Use:   "logs JOB [-f]",
		Short: "Print what a job's program wrote",
		Long:  "Print what a job's program wrote, byte for byte. JOB is an id or a KEY (" + keyForm + ").",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, closeClient, err := g.connect()
			if err != nil {
				return err
			}
			defer closeClient()
			job, err := findJob(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			request.Id, request.Stream = job.GetId(), "stdout"
			if stderr {
				request.Stream = "stderr"
			}
			return copyLogs(cmd, client, &request)
		},
	}
	g.addFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&request.Follow, "follow", "f", false, "go on until the job has ended")
	cmd.Flags().BoolVar(&stderr, "stderr", false, "what it wrote to standard error")
	cmd.Flags().Int64Var(&request.Offset, "offset", 0, "start at this byte")
	cmd.Flags().Int64Var(&request.Tail, "tail", 0, "only the last so many bytes")
	cmd.MarkFlagsMutuallyExclusive("offset", "tail")
	return cmd
}

// copyLogs writes the log to the output. While it follows one, a gateway that goes away is waited for, and the log goes on
// where it stopped.
func copyLogs(cmd *cobra.Command, client dagbridgev1.BridgeServiceClient, request *dagbridgev1.ReadLogsRequest) error {
	lastNews := time.Now()
	for {
		stream, err := client.ReadLogs(cmd.Context(), request)
		for err == nil {
			var answer *dagbridgev1.ReadLogsResponse
			if answer, err = stream.Recv(); err != nil {
				break
			}
			if _, err := cmd.OutOrStdout().Write(answer.GetData()); err != nil {
				return exitf(exitFailed, "%w", err)
			}
			request.Tail, request.Offset = 0, answer.GetOffset()+int64(len(answer.GetData()))
			lastNews = time.Now()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case cmd.Context().Err() != nil:
			return &exitError{code: 130}
		case !request.GetFollow() || status.Code(err) != codes.Unavailable || time.Since(lastNews) > patience || request.GetOffset() == 0:
			return err
		}
		select {
		case <-cmd.Context().Done():
		case <-time.After(time.Second):
		}
	}
}
