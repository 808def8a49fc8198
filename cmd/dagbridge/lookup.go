package main

import (
	"cmp"
	"io"

	"github.com/spf13/cobra"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func newLookup() *cobra.Command {
	var g gateway
	var f format
	var k keyFlags
	cmd := &cobra.Command{
		Use:   "lookup KEY | lookup --workflow W --run R --task T",
		Short: "Find the newest job of a task",
		Long:  "Find the newest job of a task, by its KEY (" + keyForm + ") or by flags.",
		Example: `  dagbridge lookup airflow/risk/manual__2026-01-01T00%3A00%3A00/train
  dagbridge lookup --orchestrator airflow --workflow risk --run manual__1 --task train --map-index 3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				k.key = args[0]
			}
			key, err := k.taskKey()
			if err != nil {
				return err
			}
			key.Orchestrator = cmp.Or(key.GetOrchestrator(), "cli")
			client, err := g.connect()
			if err != nil {
				return err
			}
			defer client.Close()
			job, err := lookup(cmd.Context(), client, key, k.try)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), &dagbridgev1.LookupJobResponse{Job: job}, func(w io.Writer) { printJob(w, job) })
		},
	}
	g.addFlags(cmd.Flags())
	f.addFlag(cmd)
	k.addFlags(cmd.Flags())
	return cmd
}
