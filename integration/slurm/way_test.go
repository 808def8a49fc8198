package slurmtest_test

import (
	"log/slog"
	"testing"
	"time"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// way is one way to configure the backend.
type way struct{ rest, cli, ssh bool }

var ways = map[string]way{"REST": {rest: true}, "CLI": {cli: true}, "REST and CLI": {rest: true, cli: true}, "SSH": {ssh: true}}

// options for a backend over the cluster, looking often.
func (w way) options(t *testing.T, c *slurmtest.Cluster) slurm.Options {
	o := slurm.Options{
		Name: "test", WorkDir: c.WorkDir(t), PollInterval: 500 * time.Millisecond,
		Limits: slurm.Limits{MaxArraySize: 10001}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if w.rest {
		o.REST = &slurm.REST{URL: c.URL, User: slurmtest.User, TokenFile: c.TokenFile(t)}
	}
	if w.cli {
		o.CLI = &slurm.CLI{Path: c.Bin()}
	}
	if w.ssh {
		o.SSH = login(c, c.LogIn(t, "SetEnv SBATCH_PARTITION=nowhere SQUEUE_STATES=nothing"))
	}
	return o
}
