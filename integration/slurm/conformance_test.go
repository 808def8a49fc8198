package slurmtest_test

import (
	"os"
	"os/exec"
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

func newBackend(t *testing.T, o slurm.Options) *slurm.Backend {
	t.Helper()
	b, err := slurm.New(o)
	require.NoError(t, err)
	return b
}

// cell is a Slurm that the backend must behave alike on.
type cell struct {
	slurmtest.Options
	// long: too much for every change; run with DAGBRIDGE_LONG=1.
	long bool
}

// cells of the matrix: what people have most, and, in the long run, every release with and without accounting.
var cells = map[string]cell{
	"oldest":                    {},
	"newest":                    {Options: slurmtest.Options{Release: slurmtest.Newest}},
	"oldest without accounting": {Options: slurmtest.Options{NoAccounting: true}, long: true},
	"newest without accounting": {Options: slurmtest.Options{Release: slurmtest.Newest, NoAccounting: true}, long: true},
	"middle":                    {Options: slurmtest.Options{Release: slurmtest.Middle}, long: true},
	"middle without accounting": {Options: slurmtest.Options{Release: slurmtest.Middle, NoAccounting: true}, long: true},
}

func TestConformance(t *testing.T) {
	long := os.Getenv("DAGBRIDGE_LONG") != ""
	for name, cell := range cells {
		if cell.long && !long {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for name, w := range ways {
				if w.ssh && cell.Release != "" && !long { // the same commands as those of the CLI
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					c := slurmtest.Start(t, cell.Options) // its own: one of the rules is of a node that fails
					t.Logf("Slurm %s", c.Version)
					conforms(t, c, w)
				})
			}
			if !long || cell.Release == "" || cell.NoAccounting {
				return
			}
			t.Run("REST in its older versions", func(t *testing.T) {
				t.Parallel()
				c := slurmtest.Start(t, cell.Options)
				for _, version := range served(t, c)[1:] {
					t.Run(version, func(t *testing.T) { conforms(t, c, ways["REST"], ofVersion(version)) })
				}
			})
		})
	}
}

func conforms(t *testing.T, c *slurmtest.Cluster, w way, changes ...func(*slurm.Options)) {
	o := w.options(t, c)
	for _, change := range changes {
		change(&o)
	}
	backendtest.Run(t, backendtest.Fixture{
		Backend:   newBackend(t, o),
		Restart:   func(t *testing.T) backend.Backend { return newBackend(t, o) },
		FailNode:  func(t *testing.T, node string) { failNode(t, c, node) },
		Dir:       filepath.Join(c.Prefix, "out"),
		TimeLimit: time.Minute,
		Patience:  3 * time.Minute,
		Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "50Mi"},
	})
}

// failNode sets a node down, which kills what runs on it, and waits at the test's end until it is back. Its slurmd may be
// faster to say that it lives than the test is to resume it.
func failNode(t *testing.T, c *slurmtest.Cluster, node string) {
	c.Run(t, "scontrol", "update", "NodeName="+node, "State=DOWN", "Reason=test")
	t.Cleanup(func() {
		require.Eventually(t, func() bool {
			if strings.HasPrefix(c.Run(t, "sinfo", "-h", "-n", node, "-o", "%T"), "down") {
				_ = exec.Command(filepath.Join(c.Bin(), "scontrol"), "update", "NodeName="+node, "State=RESUME").Run()
				return false
			}
			return true
		}, time.Minute, 100*time.Millisecond)
	})
}
