package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	killsOfEach = flag.Int("kills", 0, "kills of the gateway, and as many of slurmctld, in TestEverythingKilled; left out: 3, and 200 with DAGBRIDGE_LONG=1")
	oneWay      = flag.String("way", "", "the way to Slurm of TestEverythingKilled, rest or cli; left out: both")
)

// campaign is so many kills of the gateway, and as many of slurmctld, at random moments while programs are submitted,
// released, run and cancelled.
type campaign struct {
	*workload
	c *slurmtest.Cluster
	g *gatewaytest.Gateway
	r *rand.Rand
	// done is to what a program appends when it has come to its end.
	done ledger
	// cancelled runs, by name.
	cancelled map[string]bool
	// mayRequeue: tasks that Slurm may start again by itself, by run and name.
	mayRequeue map[string]bool
	strangers  strangers
	kills      int
	began      time.Time
}

// TestEverythingKilled kills the gateway and slurmctld, which then forgets its last seconds and gives the ids of the jobs it
// forgot to others, while strangers take them. No program runs twice; those that were not cancelled succeed, or are LOST
// having started.
func TestEverythingKilled(t *testing.T) {
	kills, tasks := 3, 60
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		kills, tasks = 200, 2000
	}
	if *killsOfEach > 0 {
		kills, tasks = *killsOfEach, 10**killsOfEach
	}
	t.Parallel()
	for _, way := range []string{"rest", "cli"} {
		if *oneWay == "" || *oneWay == way {
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				everythingKilled(t, slurmtest.Start(t, slurmtest.Options{Set: forgetting}), way, kills, tasks)
			})
		}
	}
}

func everythingKilled(t *testing.T, c *slurmtest.Cluster, way string, kills, tasks int) {
	chance := *seed
	if chance == 0 {
		chance = rand.Uint64()
	}
	t.Logf("-seed %d", chance)
	x := &campaign{
		workload: &workload{ledger: newLedger(t, c), name: fmt.Sprintf("everything-%d", chance)},
		c:        c, g: gatewaytest.New(t, c, way), r: rand.New(rand.NewPCG(chance, 0)), done: newLedger(t, c),
		cancelled: map[string]bool{}, mayRequeue: map[string]bool{}, strangers: strangers{name: fmt.Sprintf("stranger-%d", chance)}, kills: kills, began: time.Now(),
	}
	x.mixture(tasks)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	callers, ctx := errgroup.WithContext(ctx)
	var killed atomic.Int64
	x.callers(ctx, callers, &killed)
	x.kill(t, ctx, &killed)
	lastKill := time.Since(x.began)
	require.NoError(t, callers.Wait())
	c.AwaitController(t)
	x.strangers.come(t, c)

	address, _ := x.g.Addresses()
	client, err := dagbridge.Dial(address, dagbridge.Options{})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	live := &dagbridgev1.ListJobsRequest{Workflow: x.name, State: []dagbridgev1.Job_State{dagbridgev1.Job_ACCEPTED, dagbridgev1.Job_SUBMITTED, dagbridgev1.Job_RUNNING}}
	if !poll(5*patience, func() bool { tend(t, x.c); return len(list(t, client, live)) == 0 }) {
		require.Empty(t, list(t, client, live), "these do not end")
	}
	ended := time.Since(x.began)
	jobs := x.jobs(t, client)
	once(t, jobs)
	sum := x.verdict(t, jobs)
	tend(t, x.c)
	t.Logf("%d kills each of the gateway and of slurmctld in %.0fs; all had ended by %.0fs. %d tasks in %d runs, %d of them cancelled: %v. "+
		"%d attempts were submitted anew, %d programs that Slurm had killed were started by it again; %d requests came "+
		"too late; %d of %d strangers' jobs had an id of ours",
		kills, lastKill.Seconds(), ended.Seconds(), x.tasks, len(x.runs), len(x.cancelled), sum.states, sum.again, sum.requeued, sum.late, sum.reused, len(x.strangers.ids))
}

// mixture is runs of the shapes that are submitted, held, released and rewritten differently, one in ten to be cancelled.
func (x *campaign) mixture(tasks int) {
	for x.tasks < tasks {
		var one *dagbridgev1.Workflow
		switch x.r.IntN(8) {
		case 0, 1:
			one = x.chain(2 + x.r.IntN(5))
		case 2:
			one = x.fan(2 + x.r.IntN(5))
		case 3:
			one = x.mapped(2 + x.r.IntN(8))
		case 4:
			one = x.add("held", x.task("a", nil), x.task("b", nil), x.task("either", []string{"a", "b"}, rule("one_success")))
		default:
			one = x.single()
		}
		for _, task := range one.GetTasks() {
			// what a node did not start is started again; nothing else that ends so has run
			retries(0, 3)(task)
			task.Command = x.program(fmt.Sprintf("sleep %.1f; %s", 3*x.r.Float64(), x.done.line()))
			if name := one.GetRun().GetRun() + "/" + task.GetKey().GetTask(); x.r.IntN(2) == 0 {
				x.mayRequeue[name] = true
			} else {
				task.Slurm.Options = map[string]string{"no-requeue": ""}
			}
		}
		if x.r.IntN(10) == 0 {
			x.cancelled[one.GetRun().GetRun()] = true
		}
	}
}

// callers send the runs, spread over the kills, and cancel some of them a while later.
func (x *campaign) callers(ctx context.Context, callers *errgroup.Group, killed *atomic.Int64) {
	requests := make(chan *request)
	waits := make([]time.Duration, len(x.runs))
	for i := range waits {
		waits[i] = time.Duration(x.r.Int64N(int64(5 * time.Second)))
	}
	waitFor := []dagbridgev1.WaitFor_Value{dagbridgev1.WaitFor_ACCEPTED, dagbridgev1.WaitFor_ACCEPTED, dagbridgev1.WaitFor_SUBMITTED}
	callers.Go(func() error {
		defer close(requests)
		for i, w := range x.runs {
			due := func() bool { return int(killed.Load())*len(x.runs) >= i*2*x.kills || ctx.Err() != nil }
			poll(time.Hour, due)
			select {
			case requests <- &request{workflow: w, rest: i%2 == 0, asTask: len(w.GetTasks()) == 1, waitFor: waitFor[i%3]}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range 16 {
		callers.Go(func() error {
			for one := range requests {
				if err := one.send(ctx, x.g); err != nil {
					return err
				}
				if run := one.workflow.GetRun(); x.cancelled[run.GetRun()] {
					select {
					case <-time.After(waits[killed.Load()%int64(len(waits))]):
					case <-ctx.Done():
					}
					if err := cancelRun(ctx, x.g, run); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// kill kills the gateway and slurmctld in any order, each at a random moment: one may die while the other is not back yet.
func (x *campaign) kill(t *testing.T, ctx context.Context, killed *atomic.Int64) {
	victims := make([]string, 2*x.kills)
	for i := range victims {
		victims[i] = []string{"gateway", "slurmctld"}[i%2]
	}
	x.r.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	dead := 0
	for _, victim := range victims {
		pause := time.Duration(x.r.Int64N(int64(time.Second)))
		if victim == "slurmctld" { // which comes to nothing when it never lives for long enough to save its state
			pause = time.Duration(x.r.Int64N(int64(8 * time.Second)))
			if dead++; dead%5 == 0 { // and now and then to miss what has ended
				x.c.AwaitController(t)
				time.Sleep(10 * time.Second)
				tend(t, x.c)
			}
		}
		select {
		case <-ctx.Done():
			return // a caller tells why
		case <-time.After(pause):
		}
		if victim == "gateway" {
			x.g.Kill()
			x.g.Launch(t)
		} else {
			x.c.AwaitController(t)
			x.c.Daemon(t, "kill", "slurmctld")
			x.c.Daemon(t, "start", "slurmctld")
			if x.r.IntN(2) == 0 {
				x.c.AwaitController(t)
				x.strangers.come(t, x.c)
			}
		}
		killed.Add(1)
	}
}

// tend is what an administrator does after slurmctld was killed. Nodes are drained where it has started a job for a second time
// while it still ran; nodes must tell which jobs they run, before those that ended and were forgotten are missed; and what is
// requeued then does not wait for two minutes.
func tend(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	// whatever fails here, since it is so no more, is done the next time
	try := func(arguments ...string) {
		_ = exec.Command(filepath.Join(c.Bin(), "scontrol"), arguments...).Run()
	}
	for _, node := range strings.Fields(c.Run(t, "sinfo", "-h", "-N", "-p", "main", "-t", "drain", "-o", "%N")) {
		try("update", "NodeName="+node, "State=RESUME")
	}
	try("reconfigure")
	try("update", "PartitionName="+closed, "State=UP") // as it was
	for line := range strings.Lines(c.Run(t, "squeue", "-h", "-a", "-r", "-t", "PENDING", "-o", "%i %r")) {
		if id, reason, _ := strings.Cut(strings.TrimSpace(line), " "); reason == "BeginTime" {
			try("update", "JobId="+id, "StartTime=now")
		}
	}
}

// jobs are all jobs of the workload, instances of arrays included.
func (x *campaign) jobs(t *testing.T, client *dagbridge.Client) []*dagbridgev1.Job {
	t.Helper()
	all := list(t, client, &dagbridgev1.ListJobsRequest{Workflow: x.name})
	for _, job := range all {
		if len(job.GetCounts()) > 0 {
			all = append(all, list(t, client, &dagbridgev1.ListJobsRequest{Parent: job.GetId()})...)
		}
	}
	return all
}
