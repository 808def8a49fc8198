package slurmtest_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

func TestMain(m *testing.M) { slurmtest.Main(m) }

// way is one way to configure the backend.
type way struct{ rest, cli bool }

var ways = map[string]way{"REST": {rest: true}, "CLI": {cli: true}, "REST and CLI": {true, true}}

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
	return o
}

func newBackend(t *testing.T, o slurm.Options) *slurm.Backend {
	t.Helper()
	b, err := slurm.New(o)
	require.NoError(t, err)
	return b
}

func TestConformance(t *testing.T) {
	for name, w := range ways {
		t.Run(name, func(t *testing.T) {
			c := slurmtest.Shared(t)
			o := w.options(t, c)
			backendtest.Run(t, backendtest.Fixture{
				Backend:   newBackend(t, o),
				Restart:   func(t *testing.T) backend.Backend { return newBackend(t, o) },
				FailNode:  func(t *testing.T, node string) { failNode(t, c, node) },
				Dir:       filepath.Join(c.Prefix, "out"),
				TimeLimit: time.Minute,
				Patience:  3 * time.Minute,
				Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "50Mi"},
			})
		})
	}
}

// failNode sets a node down, which kills what runs on it, and waits at the test's end until it is back. Its slurmd may be
// faster to say that it lives than the test is to resume it.
func failNode(t *testing.T, c *slurmtest.Cluster, node string) {
	c.Run(t, "scontrol", "update", "NodeName="+node, "State=DOWN", "Reason=test")
	t.Cleanup(func() {
		require.Eventually(t, func() bool {
			if strings.HasPrefix(c.Run(t, "sinfo", "-h", "-n", node, "-o", "%T"), "down") {
				c.Run(t, "scontrol", "update", "NodeName="+node, "State=RESUME")
				return false
			}
			return true
		}, time.Minute, 100*time.Millisecond)
	})
}
