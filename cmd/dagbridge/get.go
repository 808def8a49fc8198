package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func newGet() *cobra.Command {
	var g gateway
	var f format
	cmd := &cobra.Command{
		Use:   "get JOB|RUN",
		Short: "Show a job, and why it waits, in the scheduler's words; or a run",
		Long:  "Show a job, by its id or its KEY (" + keyForm + "), or a run by its id.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := g.connect()
			if err != nil {
				return err
			}
			defer client.Close()
			job, err := findJob(cmd.Context(), client, args[0])
			if status.Code(err) == codes.NotFound {
				answer, runErr := client.GetRun(cmd.Context(), &dagbridgev1.GetRunRequest{Id: args[0]})
				if runErr != nil {
					return err
				}
				return f.print(cmd.OutOrStdout(), answer, func(w io.Writer) { printRun(w, answer.GetRun()) })
			}
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), &dagbridgev1.GetJobResponse{Job: job}, func(w io.Writer) { printJob(w, job) })
		},
	}
	g.addFlags(cmd.Flags())
	f.addFlag(cmd)
	return cmd
}

func printRun(w io.Writer, run *dagbridgev1.Run) {
	fmt.Fprintf(w, "Run:\t%s\n", run.GetId())
	fmt.Fprintf(w, "Key:\t%s / %s / %s\n", run.GetOrchestrator(), run.GetWorkflow(), run.GetRun())
	fmt.Fprintf(w, "State:\t%s\n", run.GetState())
	for _, state := range slices.Sorted(maps.Keys(run.GetCounts())) {
		fmt.Fprintf(w, "  %s:\t%d\n", state, run.GetCounts()[state])
	}
	fmt.Fprintf(w, "Owner:\t%s\nCreated:\t%s\nEnded:\t%s\n", run.GetOwner(), when(run.GetCreateTime()), when(run.GetEndTime()))
}
