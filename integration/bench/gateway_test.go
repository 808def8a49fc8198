package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dagbridge/dagbridge/server"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

func init() { roles["gateway"] = serveGateway }

// storeFile is a gateway's store in its folder.
func storeFile(dir string) string { return filepath.Join(dir, "dagbridge.db") }

// serveGateway is the gateway in front of a Slurm cluster "hpc", reached over REST: it is handed its folder, and slurmrestd's
// address, user, token file, work folder and MinJobAge in seconds.
func serveGateway(args []string) error {
	s, err := store.Open(storeFile(args[0]), store.Options{})
	if err != nil {
		return err
	}
	age, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	hpc, err := slurm.New(slurm.Options{
		Name: "hpc", REST: &slurm.REST{URL: args[1], User: args[2], TokenFile: args[3]}, WorkDir: args[4],
		Limits: slurm.Limits{MinJobAge: time.Duration(age) * time.Second}, Log: log,
	})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	metrics := telemetry.New(registry)
	e, err := engine.New(engine.Options{Store: s, Clusters: []engine.Cluster{{Name: "hpc", Backend: hpc}}, Metrics: metrics, Log: log})
	if err != nil {
		return err
	}
	e.Start()
	doors, err := server.New(server.Options{Listen: config.Listen{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}, Engine: e, Store: s, Metrics: metrics, Registry: registry, Log: log})
	if err != nil {
		return err
	}
	if err := doors.Start(); err != nil {
		return err
	}
	err = announce(doors.GRPCAddr(), doors.HTTPAddr())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = errors.Join(err, doors.Stop(ctx))
	e.Stop()
	return errors.Join(err, hpc.Close(), s.Close())
}
