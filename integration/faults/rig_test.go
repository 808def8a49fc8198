package faults

import (
	"log/slog"
	"path/filepath"
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
}

// newRig starts an engine in front of a Slurm, with the cluster's defaults where the options leave something out.
func newRig(t *testing.T, c *slurmtest.Cluster, o slurm.Options) *rig {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	o.Name, o.WorkDir, o.PollInterval, o.AccountingLag, o.Log = "hpc", c.WorkDir(t), 500*time.Millisecond, 2*time.Second, log
	b, err := slurm.New(o)
	require.NoError(t, err)
	s, err := store.Open(filepath.Join(t.TempDir(), "dagbridge.db"), store.Options{Log: log})
	require.NoError(t, err)
	e, err := engine.New(engine.Options{Store: s, Clusters: []engine.Cluster{{Name: "hpc", Backend: b}}, Log: log, Grace: 2 * time.Second})
	require.NoError(t, err)
	e.Start()
	t.Cleanup(func() {
		e.Stop()
		require.NoError(t, b.Close())
		require.NoError(t, s.Close())
	})
	return &rig{workload: &workload{ledger: newLedger(t, c), name: "faults"}, engine: e, store: s}
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
