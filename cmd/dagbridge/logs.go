package main

import (
	"syscall"

	"github.com/spf13/cobra"

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
			client, err := g.connect()
			if err != nil {
				return err
			}
			defer client.Close()
			job, err := findJob(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			request.Id, request.Stream = job.GetId(), "stdout"
			if stderr {
				request.Stream = "stderr"
			}
			err = client.Logs(cmd.Context(), &request, cmd.OutOrStdout())
			if cmd.Context().Err() != nil {
				return &exitError{code: 128 + int(syscall.SIGINT)}
			}
			return err
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
