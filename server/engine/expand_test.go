package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// overFiles is a run in which an array goes over what is found, and a report follows it.
func overFiles() *dagbridgev1.Workflow {
	w := chain("find", "read", "report")
	w.Tasks[1].Array = &dagbridgev1.Array{From: &dagbridgev1.Array_From{Task: "find", Output: "files"}}
	w.Tasks[2].TriggerRule = "all_done"
	return w
}

// An array over an output has an instance for each of its elements; what says nothing of instances is told by a sentence.
func TestAnArrayOverAnOutput(t *testing.T) {
	t.Parallel()
	const submitted, skipped, upstreamFailed = dagbridgev1.Job_SUBMITTED, dagbridgev1.Job_SKIPPED, dagbridgev1.Job_UPSTREAM_FAILED
	for files, want := range map[string]struct {
		state     dagbridgev1.Job_State
		instances int
		message   string
	}{
		`["a", {"b": 1}, null]`:                {submitted, 3, ""},
		`[1]`:                                  {submitted, 1, ""},
		`[` + strings.Repeat("0,", 199) + `0]`: {submitted, 200, ""},
		`[]`:                                   {skipped, 0, "output files of find is an empty list: there is nothing to run"},
		`"[1, 2]"`:                             {upstreamFailed, 0, "output files of find is neither a list nor a number: nothing says how many instances there are"},
		`{"a": 1}`:                             {upstreamFailed, 0, "output files of find is neither a list nor a number: nothing says how many instances there are"},
		`3`:                                    {submitted, 3, ""},
		`0`:                                    {skipped, 0, "output files of find is 0: there is nothing to run"},
		`100001`:                               {upstreamFailed, 0, "output files of find is 100001, and an array has 100000 instances at most"},
		`-1`:                                   {upstreamFailed, 0, "output files of find is neither a list nor a number: nothing says how many instances there are"},
		`2.5`:                                  {upstreamFailed, 0, "output files of find is neither a list nor a number: nothing says how many instances there are"},
		`null`:                                 {upstreamFailed, 0, "output files of find is neither a list nor a number: nothing says how many instances there are"},
		``:                                     {upstreamFailed, 0, "output files of find is not there: nothing says how many instances there are"},
	} {
		t.Run(files, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := overFiles()
			resp, err := b.SubmitWorkflow(context.Background(), "somebody", w)
			require.NoError(t, err)
			find, read, report := resp.GetJobs()[0].GetId(), resp.GetJobs()[1].GetId(), resp.GetJobs()[2].GetId()
			require.Empty(t, b.job(read).GetCounts())
			b.look()
			require.Equal(t, dagbridgev1.Job_ACCEPTED, b.job(read).GetState())
			if files != "" {
				_, err = b.PutOutputs(context.Background(), find, map[string]*dagbridgev1.Json{"files": {Text: files}})
				require.NoError(t, err)
			}
			b.end(find, 0)
			b.look()
			job := b.job(read)
			require.Equal(t, want.state, job.GetState())
			require.Equal(t, want.message, job.GetMessage())
			again, err := b.SubmitWorkflow(context.Background(), "somebody", overFiles())
			require.NoError(t, err, "the same request is no other one because the array has its items now")
			require.Equal(t, read, again.GetJobs()[1].GetId())
			if want.instances == 0 {
				_, err = b.Retry(context.Background(), read)
				require.ErrorContains(t, err, want.message)
				require.Equal(t, submitted, b.job(report).GetState())
				return
			}
			require.Equal(t, map[string]int32{"SUBMITTED": int32(want.instances)}, job.GetCounts())
			require.Equal(t, dagbridgev1.Job_ACCEPTED, b.job(report).GetState())
			instances, _, _, err := b.store.List(&dagbridgev1.JobFilter{Parent: read}, 1000, "")
			require.NoError(t, err)
			seen := map[string]bool{}
			for _, instance := range instances {
				seen[fmt.Sprint(instance.GetKey().GetMapIndex())] = true
				b.end(instance.GetId(), 0)
			}
			require.Len(t, seen, want.instances)
			b.look()
			require.Equal(t, dagbridgev1.Job_SUCCEEDED, b.job(read).GetState())
			require.Equal(t, submitted, b.job(report).GetState())
		})
	}
}
