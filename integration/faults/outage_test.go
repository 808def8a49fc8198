package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridge "github.com/dagbridge/dagbridge/clients/go"
	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// TestAnOutageOfOneCluster has slurmctld take calls and never answer, or be dead, in the long form, under a gateway that knows
// another cluster too. Whatever needs no word of slurmctld's goes on as ever; the rest is taken, and done when it is back.
func TestAnOutageOfOneCluster(t *testing.T) {
	// how long Slurm's own commands wait
	onReleases(t, slurmtest.Options{Set: []string{"MessageTimeout=5"}}, outages)
}

func outages(t *testing.T, c *slurmtest.Cluster) {
	faults := map[string]string{"hang": "wake"}
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		faults["kill"] = "start"
	}
	for do, undo := range faults {
		t.Run(do, func(t *testing.T) {
			var all []*outage
			for _, way := range []string{"rest", "cli"} {
				all = append(all, newOutage(t, c, way))
			}
			c.Daemon(t, do, "slurmctld")
			for _, o := range all {
				o.goesOn(t)
			}
			for _, o := range all {
				o.isTold(t)
			}
			c.Daemon(t, undo, "slurmctld")
			c.AwaitController(t)
			for _, o := range all {
				o.catchesUp(t)
			}
		})
	}
}

// outage is a gateway over two clusters, one of which fails.
type outage struct {
	*dagbridge.Client
	way string
	// ended before it, waits in the queue when it begins, comes meanwhile.
	ended, waits, comes *dagbridgev1.Job
}

func newOutage(t *testing.T, c *slurmtest.Cluster, way string) *outage {
	t.Helper()
	address, _ := gatewaytest.New(t, c, way).Addresses()
	client, err := dagbridge.Dial(address, dagbridge.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	o := &outage{Client: client, way: way}
	o.ended = o.send(t, "hpc", "ended", dagbridgev1.WaitFor_TERMINAL)
	o.waits = o.send(t, "hpc", "waits", dagbridgev1.WaitFor_SUBMITTED, func(task *dagbridgev1.Task) {
		task.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{"begin": "now+1hour"}}
	})
	return o
}

func (o *outage) send(t *testing.T, cluster, name string, wait dagbridgev1.WaitFor_Value, edits ...edit) *dagbridgev1.Job {
	t.Helper()
	task := &dagbridgev1.Task{
		Key:       &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "outage", Run: o.way, Task: name},
		TryNumber: 1, Cluster: cluster, Command: &dagbridgev1.Command{Argv: []string{"echo", "here I am"}},
		Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "20Mi"},
	}
	for _, e := range edits {
		e(task)
	}
	answer, err := o.SubmitTask(t.Context(), &dagbridgev1.SubmitTaskRequest{Task: task, WaitFor: wait})
	require.NoError(t, err)
	return answer.GetJob()
}

// goesOn asks for all that needs no word of slurmctld's.
func (o *outage) goesOn(t *testing.T) {
	t.Helper()
	o.comes = o.send(t, "hpc", "comes", dagbridgev1.WaitFor_ACCEPTED)
	_, err := o.CancelJob(t.Context(), &dagbridgev1.CancelJobRequest{Id: o.waits.GetId()})
	require.NoError(t, err)
	elsewhere := o.send(t, "here", "elsewhere", dagbridgev1.WaitFor_TERMINAL)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, elsewhere.GetState())
	var log bytes.Buffer
	require.NoError(t, o.Logs(t.Context(), &dagbridgev1.ReadLogsRequest{Id: o.ended.GetId()}, &log))
	require.Equal(t, "here I am\n", log.String())

	var took []time.Duration
	for range 300 {
		for _, look := range []func(context.Context) error{
			func(ctx context.Context) error {
				_, err := o.GetJob(ctx, &dagbridgev1.GetJobRequest{Id: o.comes.GetId()})
				return err
			},
			func(ctx context.Context) error {
				job, err := o.Lookup(ctx, o.ended.GetKey())
				if err == nil && job.GetState() != dagbridgev1.Job_SUCCEEDED {
					err = fmt.Errorf("it has become %v", job)
				}
				return err
			},
			func(ctx context.Context) error {
				_, err := o.ListJobs(ctx, &dagbridgev1.ListJobsRequest{Workflow: "outage"})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			began := time.Now()
			require.NoError(t, look(ctx))
			took = append(took, time.Since(began))
			cancel()
		}
	}
	slices.Sort(took)
	t.Logf("%s: look-ups take %v (median), %v (the slowest in a hundred)", o.way, took[len(took)/2], took[len(took)*99/100])
}

// isTold waits until people are told which cluster is out of reach, and which is not.
func (o *outage) isTold(t *testing.T) {
	t.Helper()
	require.True(t, poll(patience, func() bool {
		answer, err := o.ListClusters(t.Context(), &dagbridgev1.ListClustersRequest{})
		require.NoError(t, err)
		hpc, here := answer.GetClusters()[0], answer.GetClusters()[1]
		require.True(t, here.GetReachable())
		return !hpc.GetReachable() && hpc.GetMessage() != ""
	}), "nobody notices")
	job, err := o.GetJob(t.Context(), &dagbridgev1.GetJobRequest{Id: o.waits.GetId()})
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_SUBMITTED, job.GetJob().GetState(), "nobody has said that it is cancelled")
	require.NotNil(t, job.GetJob().GetCancelRequestTime())
}

func (o *outage) catchesUp(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	jobs, err := o.Wait(ctx, o.waits.GetId(), o.comes.GetId())
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_CANCELLED, jobs[0].GetState())
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, jobs[1].GetState())
	require.Len(t, jobs[1].GetAttempts(), 1)
}
