package local_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/local"
)

// TestMain makes this test's own binary the supervisor of the jobs that it submits.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(local.Supervise(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// cluster over a folder, of so many CPUs that side by side means what it says.
func cluster(t testing.TB, dir string, change ...func(*local.Options)) *local.Backend {
	t.Helper()
	o := local.Options{Name: "here", Dir: dir, CPUs: 64, Memory: 1 << 34, Supervisor: []string{os.Args[0], "supervise"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, f := range change {
		f(&o)
	}
	b, err := local.New(o)
	require.NoError(t, err)
	return b
}

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	backendtest.Run(t, backendtest.Fixture{
		Backend:   cluster(t, dir),
		Restart:   func(t *testing.T) backend.Backend { return cluster(t, dir) },
		Dir:       t.TempDir(),
		TimeLimit: time.Second,
		Patience:  30 * time.Second,
		Resources: &dagbridgev1.Resources{Cpu: "100m", Memory: "16Mi"},
	})
}
