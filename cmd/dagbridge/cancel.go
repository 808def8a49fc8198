package main

import (
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func newCancel() *cobra.Command {
	var g gateway
	var f format
	cmd := &cobra.Command{
		Use:   "cancel JOB|RUN",
		Short: "Cancel a job, or every job of a run that has not ended",
		Long: `Cancel a job, by its id or its KEY, or a run by its id. What is answered is that it was asked for: a job is CANCELLED once
its scheduler says so.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := g.connect()
			if err != nil {
				return err
			}
			defer client.Close()
			job, err := findJob(cmd.Context(), client, args[0])
			if status.Code(err) == codes.NotFound {
				answer, runErr := client.CancelRun(cmd.Context(), &dagbridgev1.CancelRunRequest{Id: args[0]})
				if status.Code(runErr) == codes.NotFound {
					return exitf(exitNotFound, "there is neither a job nor a run %s", args[0])
				}
				if runErr != nil {
					return runErr
				}
				return f.print(cmd.OutOrStdout(), answer, func(w io.Writer) { printRun(w, answer.GetRun()) })
			}
			if err != nil {
				return err
			}
			answer, err := client.CancelJob(cmd.Context(), &dagbridgev1.CancelJobRequest{Id: job.GetId()})
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), answer, func(w io.Writer) { printJobs(w, []*dagbridgev1.Job{answer.GetJob()}) })
		},
	}
	g.addFlags(cmd.Flags())
	f.addFlag(cmd)
	return cmd
}
