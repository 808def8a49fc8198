package faults

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// rig is the gateway's inside, in this process, so that its patience can be short.
type rig struct {
	*workload
	engine *engine.Engine
	store  *store.Store
	ids    []string

	options slurm.Options
	file    string
	// stop ends the engine, as a gateway that is stopped does.
	stop func()
}

// newRig starts an engine in front of a Slurm, with the cluster's defaults where the options leave something out.
func newRig(t *testing.T, c *slurmtest.Cluster, o slurm.Options) *rig {
	t.Helper()
	if o.WorkDir == "" {
		o.WorkDir = c.WorkDir(t)
	}
	o.Name, o.PollInterval, o.AccountingLag, o.Log = "hpc", 500*time.Millisecond, 2*time.Second, slog.New(slog.NewTextHandler(t.Output(), nil))
	r := &rig{
		workload: &workload{ledger: newLedger(t, c), name: "faults"}, options: o, file: filepath.Join(t.TempDir(), "dagbridge.db"),
	}
	r.start(t)
	t.Cleanup(func() { r.stop() })
	return r
}

// start starts the engine on what the last one has left.
func (r *rig) start(t *testing.T) {
	t.Helper()
	b, err := slurm.New(r.options)
	require.NoError(t, err)
	r.store, err = store.Open(r.file, store.Options{Log: r.options.Log})
	require.NoError(t, err)
	r.engine, err = engine.New(engine.Options{
		Store: r.store, Clusters: []engine.Cluster{{Name: "hpc", Backend: b}}, Log: r.options.Log, Grace: grace,
	})
	require.NoError(t, err)
	r.engine.Start()
	r.stop = sync.OnceFunc(func() {
		r.engine.Stop()
		require.NoError(t, b.Close())
		require.NoError(t, r.store.Close())
	})
}

// grace of the engine in these tests.
const grace = 2 * time.Second

// awaitReleased waits until nothing of the workload is held in Slurm any more.
func (r *rig) awaitReleased(t *testing.T, c *slurmtest.Cluster) {
	t.Helper()
	require.True(t, poll(patience, func() bool {
		for line := range strings.Lines(c.Run(t, "squeue", "-h", "-a", "-o", "%r %j")) {
			if strings.HasPrefix(line, "JobHeld") && slices.ContainsFunc(r.ids, func(id string) bool { return strings.Contains(line, id) }) {
				return false
			}
		}
		return true
	}), "something stays held")
}

// runUnseen has all of some workloads, which wait in the closed partition, run and be forgotten by slurmctld while their engines
// are stopped.
func runUnseen(t *testing.T, c *slurmtest.Cluster, rigs ...*rig) {
	t.Helper()
	c.Run(t, "scontrol", "update", "PartitionName="+closed, "State=UP")
	for _, r := range rigs {
		require.True(t, poll(patience, func() bool { return len(r.entries(t)) == r.programs }), "not all have run")
	}
	require.True(t, poll(patience, func() bool { return c.Run(t, "squeue", "-h", "-a", "-t", "all", "-o", "%i") == "" }), "slurmctld does not forget")
}

// awaitLooks waits until the cluster has been looked at for longer than anything is given to turn up.
func (r *rig) awaitLooks(t *testing.T) {
	t.Helper()
	until := time.Now().Add(4 * grace)
	require.True(t, poll(patience, func() bool { return r.engine.Clusters()[0].GetLastLookTime().AsTime().After(until) }), "nobody looks")
}

// onReleases runs a test on a cluster of its own of the oldest release of Slurm and, in the long run, of the newest.
func onReleases(t *testing.T, o slurmtest.Options, test func(*testing.T, *slurmtest.Cluster)) {
	t.Helper()
	t.Parallel()
	releases := []slurmtest.Release{slurmtest.Oldest}
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		releases = append(releases, slurmtest.Newest)
	}
	for _, release := range releases {
		o := o
		o.Release = release
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			test(t, slurmtest.Start(t, o))
		})
	}
}

// reach is a way to Slurm, with the deadline of these tests.
func reach(t *testing.T, c *slurmtest.Cluster, way string) slurm.Options {
	t.Helper()
	o := slurm.Options{Timeout: deadline}
	if way == "rest" {
		o.REST = &slurm.REST{URL: c.URL, User: slurmtest.User, TokenFile: c.TokenFile(t)}
	} else {
		o.CLI = &slurm.CLI{Path: c.Bin()}
	}
	return o
}

// submit hands over all runs of the workload that have not been.
func (r *rig) submit(t *testing.T) {
	t.Helper()
	r.ids = nil
	for _, w := range r.runs {
		resp, err := r.engine.SubmitWorkflow(t.Context(), "somebody", w)
		require.NoError(t, err)
		for _, job := range resp.GetJobs() {
			r.ids = append(r.ids, job.GetId())
		}
	}
}

// jobs are all jobs of the workload, instances of arrays included.
func (r *rig) jobs(t *testing.T) []*dagbridgev1.Job {
	t.Helper()
	var all []*dagbridgev1.Job
	require.NoError(t, r.store.View(func(tx *store.Tx) error {
		for _, id := range r.ids {
			all = append(all, tx.Record(id).GetJob())
			tx.Children(id, func(kid string) bool {
				all = append(all, tx.Record(kid).GetJob())
				return true
			})
		}
		return nil
	}))
	return all
}

// await waits until all jobs are as wanted.
func (r *rig) await(t *testing.T, what string, wanted func(*dagbridgev1.Job) bool) {
	t.Helper()
	var not *dagbridgev1.Job
	is := func() bool {
		not = nil
		for _, job := range r.jobs(t) {
			if !wanted(job) {
				not = job
			}
		}
		return not == nil
	}
	if !poll(patience, is) {
		require.Nil(t, not, "it is not %s", what)
	}
}

func (r *rig) awaitEnd(t *testing.T) {
	t.Helper()
	r.await(t, "at its end", func(job *dagbridgev1.Job) bool { return graph.IsTerminal(job.GetState()) })
}

// finish waits for the end of everything, and holds it to what it is designed to become.
func (r *rig) finish(t *testing.T, c *slurmtest.Cluster) tally {
	t.Helper()
	r.awaitEnd(t)
	jobs := r.jobs(t)
	sum := verdict(t, c, r.ledger, jobs)
	inOrder(t, r.ledger, r.runs, jobs)
	return sum
}
