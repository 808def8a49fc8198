package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func newList() *cobra.Command {
	var g gateway
	var f format
	var request dagbridgev1.ListJobsRequest
	var states []string
	var limit int
	var full, runs bool
	cmd := &cobra.Command{
		Use:   "list [filters]",
		Short: "List jobs, or with --runs runs, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit %d: at least 1", limit)
			}
			client, err := g.connect()
			if err != nil {
				return err
			}
			defer client.Close()
			if runs {
				return listRuns(cmd, client, &f, &request, states, limit)
			}
			for _, word := range states {
				state, ok := dagbridgev1.Job_State_value[strings.ToUpper(word)]
				if !ok || state == 0 {
					return fmt.Errorf("--state %s: there are %s", word, strings.Join(words(dagbridgev1.Job_State_name), ", "))
				}
				request.State = append(request.State, dagbridgev1.Job_State(state))
			}
			if full {
				request.View = dagbridgev1.View_FULL
			}
			answer := &dagbridgev1.ListJobsResponse{}
			for len(answer.GetJobs()) < limit {
				request.PageSize = int32(min(limit-len(answer.GetJobs()), 1000))
				page, err := client.ListJobs(cmd.Context(), &request)
				if err != nil {
					return err
				}
				page.Jobs = append(answer.GetJobs(), page.GetJobs()...)
				answer, request.PageToken = page, page.GetNextPageToken()
				if request.PageToken == "" {
					break
				}
			}
			return f.print(cmd.OutOrStdout(), answer, func(w io.Writer) { printJobs(w, answer.GetJobs()) })
		},
	}
	g.addFlags(cmd.Flags())
	f.addFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&runs, "runs", false, "list runs")
	flags.StringVar(&request.Deployment, "deployment", "", "of this deployment")
	flags.StringVar(&request.Orchestrator, "orchestrator", "", "of this orchestrator")
	flags.StringVar(&request.Workflow, "workflow", "", "of this workflow")
	flags.StringVar(&request.Run, "run", "", "of this run")
	flags.StringVar(&request.Task, "task", "", "of this task")
	flags.StringSliceVar(&states, "state", nil, "in any of these states")
	flags.StringVar(&request.Cluster, "cluster", "", "on this cluster")
	flags.StringVar(&request.NativeId, "native-id", "", "with this native id")
	flags.StringVar(&request.Parent, "parent", "", "the instances of this array, by its job id")
	flags.StringArrayVar(&request.Label, "label", nil, "with the label NAME=VALUE; repeatable")
	flags.BoolVar(&full, "full", false, "with outputs (json and yaml)")
	completeWith(cmd, "state", words(dagbridgev1.Job_State_name))
	flags.IntVar(&limit, "limit", 100, "at most so many")
	return cmd
}

func listRuns(cmd *cobra.Command, client *client, f *format, filter *dagbridgev1.ListJobsRequest, states []string, limit int) error {
	request := &dagbridgev1.ListRunsRequest{
		Deployment: filter.GetDeployment(), Orchestrator: filter.GetOrchestrator(), Workflow: filter.GetWorkflow(), Run: filter.GetRun(),
	}
	for _, word := range states {
		state, ok := dagbridgev1.Run_State_value[strings.ToUpper(word)]
		if !ok || state == 0 {
			return fmt.Errorf("--state %s: of runs there are %s", word, strings.Join(words(dagbridgev1.Run_State_name), ", "))
		}
		request.State = append(request.State, dagbridgev1.Run_State(state))
	}
	answer := &dagbridgev1.ListRunsResponse{}
	for len(answer.GetRuns()) < limit {
		request.PageSize = int32(min(limit-len(answer.GetRuns()), 1000))
		page, err := client.ListRuns(cmd.Context(), request)
		if err != nil {
			return err
		}
		page.Runs = append(answer.GetRuns(), page.GetRuns()...)
		answer, request.PageToken = page, page.GetNextPageToken()
		if request.PageToken == "" {
			break
		}
	}
	return f.print(cmd.OutOrStdout(), answer, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tORCHESTRATOR\tWORKFLOW\tRUN\tSTATE\tCREATED\tENDED")
		for _, run := range answer.GetRuns() {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", run.GetId(), run.GetOrchestrator(), run.GetWorkflow(), run.GetRun(), run.GetState(),
				when(run.GetCreateTime()), when(run.GetEndTime()))
		}
	})
}

// words are an enum's, without the one that says nothing.
func words(names map[int32]string) []string {
	var out []string
	for number, name := range names {
		if number != 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
