package dagbridge_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/dagbridge/dagbridge/server"
	"github.com/dagbridge/dagbridge/server/backend/local"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
)

// TestMain makes this test's own binary the supervisor of the jobs that it submits.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(local.Supervise(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// startGateway starts a gateway with this machine as its cluster, and answers with its address.
func startGateway(dir string) (address string, stop func() error, err error) {
	s, err := store.Open(filepath.Join(dir, "store.db"), store.Options{})
	if err != nil {
		return "", nil, err
	}
	here, err := local.New(local.Options{Name: "local", Dir: filepath.Join(dir, "local")})
	if err != nil {
		return "", nil, err
	}
	e, err := engine.New(engine.Options{Store: s, Clusters: []engine.Cluster{{Name: "local", Backend: here}}})
	if err != nil {
		return "", nil, err
	}
	doors, err := server.New(server.Options{Listen: config.Listen{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}, Engine: e, Store: s})
	if err != nil {
		return "", nil, err
	}
	e.Start()
	if err := doors.Start(); err != nil {
		return "", nil, err
	}
	return doors.GRPCAddr(), func() error {
		err := doors.Stop(context.Background())
		e.Stop()
		return errors.Join(err, here.Close(), s.Close())
	}, nil
}
