package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	dagbridge "github.com/dagbridge/dagbridge/clients/go"
	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

var (
	rounds = flag.Int("rounds", 0, "rounds of kills; left out: 1, and 20 with DAGBRIDGE_LONG=1")
	seed   = flag.Uint64("seed", 0, "seed of the moments of kills; left out: another each time")
)

func TestMain(m *testing.M) {
	slurmtest.MainWith(m, slurmtest.Options{Set: []string{
		// what has ended is soon told by the accounting alone
		"MinJobAge=20",
	}})
}

// kills of the gateway in one round.
const kills = 25

// TestGatewayKilled kills the gateway again and again while some hundred programs are submitted and run. Each runs once.
func TestGatewayKilled(t *testing.T) {
	n := *rounds
	if n == 0 {
		n = 1
		if os.Getenv("DAGBRIDGE_LONG") != "" {
			n = 20
		}
	}
	c := slurmtest.Shared(t)
	for _, way := range []string{"rest", "cli"} {
		for i := range n {
			t.Run(fmt.Sprintf("%s/%d", way, i), func(t *testing.T) { killed(t, c, way) })
		}
	}
}

// tasks of one round at least, each of an array's instances counted.
const tasks = 500

// mixture is runs of all shapes, filled up with single tasks.
func mixture(name string, l ledger) *workload {
	w := &workload{ledger: l, name: name}
	for range 7 {
		w.chain(6)
		w.fan(8)
		w.rules()
	}
	for range 4 {
		w.mapped(10)
		w.mapped(4, w.flaky)
	}
	for range 30 {
		w.retried()
	}
	for w.tasks < tasks {
		w.single()
	}
	return w
}

func killed(t *testing.T, c *slurmtest.Cluster, way string) {
	chance := *seed
	if chance == 0 {
		chance = rand.Uint64()
	}
	t.Logf("-seed %d", chance)
	r := rand.New(rand.NewPCG(chance, 0))
	g := gatewaytest.New(t, c, way)
	w := mixture(fmt.Sprintf("killed-%d", chance), newLedger(t, c))
	began := time.Now()

	// Several callers send the runs, in any order. Some wait for an answer that takes a while, so that kills meet them.
	requests := make(chan *request, len(w.runs))
	for _, i := range r.Perm(len(w.runs)) {
		requests <- &request{
			workflow: w.runs[i], rest: r.IntN(2) == 0, asTask: len(w.runs[i].GetTasks()) == 1,
			waitFor: []dagbridgev1.WaitFor_Value{dagbridgev1.WaitFor_ACCEPTED, dagbridgev1.WaitFor_SUBMITTED, dagbridgev1.WaitFor_SUBMITTED, dagbridgev1.WaitFor_TERMINAL}[r.IntN(4)],
		}
	}
	close(requests)
	var answered atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	callers, ctx := errgroup.WithContext(ctx)
	for range 8 {
		callers.Go(func() error {
			for one := range requests {
				if err := one.send(ctx, g); err != nil {
					return err
				}
				answered.Add(1)
			}
			return nil
		})
	}

	// The kills are spread over all that happens, each at a random moment after some of it.
	progress := func() int { return int(answered.Load()) + len(w.entries(t)) }
	var after []int
	for range kills {
		after = append(after, r.IntN((len(w.runs)+w.programs)*9/10))
	}
	slices.Sort(after)
	for _, so := range after {
		if !poll(patience, func() bool { return progress() >= so || ctx.Err() != nil }) {
			t.Errorf("nothing goes on: %d of %d runs are answered, %d of %d programs have run", answered.Load(), len(w.runs), len(w.entries(t)), w.programs)
			cancel()
			break
		}
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		g.Kill()
		g.Launch(t)
	}
	lastKill := time.Since(began)
	require.NoError(t, callers.Wait())

	address, _ := g.Addresses()
	client, err := dagbridge.Dial(address, dagbridge.Options{})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	live := &dagbridgev1.ListJobsRequest{Workflow: w.name, State: []dagbridgev1.Job_State{dagbridgev1.Job_ACCEPTED, dagbridgev1.Job_SUBMITTED, dagbridgev1.Job_RUNNING}}
	if !poll(patience, func() bool { return len(list(t, client, live)) == 0 }) {
		require.Empty(t, list(t, client, live), "these do not end")
	}
	ended := time.Since(began)
	jobs := list(t, client, &dagbridgev1.ListJobsRequest{Workflow: w.name})
	var all []*dagbridgev1.Job
	arrays := 0 // a job stands for each, beside its instances
	for _, job := range jobs {
		all = append(all, job)
		if len(job.GetCounts()) > 0 {
			arrays++
			all = append(all, list(t, client, &dagbridgev1.ListJobsRequest{Parent: job.GetId()})...)
		}
	}
	once(t, all)
	require.Len(t, all, w.tasks+arrays, "what was answered is there")
	sum := verdict(t, c, w.ledger, all)
	inOrder(t, w.ledger, w.runs, all)
	require.Equal(t, w.programs, sum.programs)
	require.Equal(t, w.programs+w.never, sum.attempts, "one attempt a program, and one each of those that never start")
	t.Logf("%d kills until %.1fs; %d programs of %d tasks in %d runs had run by %.1fs; %d native jobs ran none, %d were requeued",
		kills, lastKill.Seconds(), sum.programs, w.tasks, len(w.runs), ended.Seconds(), sum.doubles, sum.requeued)
}

// list is everything that a list has.
func list(t *testing.T, client *dagbridge.Client, req *dagbridgev1.ListJobsRequest) []*dagbridgev1.Job {
	t.Helper()
	req.PageSize, req.PageToken = 1000, ""
	var all []*dagbridgev1.Job
	for {
		page, err := client.ListJobs(t.Context(), req)
		require.NoError(t, err)
		all = append(all, page.GetJobs()...)
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return all
		}
	}
}
