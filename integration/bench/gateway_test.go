package bench

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/server"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/kubernetes"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

func init() { roles["gateway"] = serveGateway }

// storeFile is a gateway's store in its folder.
func storeFile(dir string) string { return filepath.Join(dir, "dagbridge.db") }

// clusterOptions are the options of a gateway's only cluster: one of the two.
type clusterOptions struct {
	Slurm      *slurm.Options
	Kubernetes *kubernetes.Options
}

// open makes the cluster, and tells its name.
func (o clusterOptions) open(log *slog.Logger) (string, backend.Backend, error) {
	if o.Kubernetes != nil {
		o.Kubernetes.Log = log
		c, err := kubernetes.New(*o.Kubernetes)
		return o.Kubernetes.Name, c, err
	}
	o.Slurm.Log = log
	c, err := slurm.New(*o.Slurm)
	return o.Slurm.Name, c, err
}

// gatewayRole is what makes a process the gateway of a folder, in front of a cluster.
func gatewayRole(b *testing.B, dir string, o clusterOptions) []string {
	b.Helper()
	text, err := json.Marshal(o)
	require.NoError(b, err)
	return []string{"gateway", dir, string(text)}
}

// serveGateway is the gateway: it is handed its folder, and the options of its cluster in JSON.
func serveGateway(args []string) error {
	debug.SetGCPercent(50) // as dagbridge serve does
	s, err := store.Open(storeFile(args[0]), store.Options{})
	if err != nil {
		return err
	}
	var options clusterOptions
	if err := json.Unmarshal([]byte(args[1]), &options); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	name, cluster, err := options.open(log)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	metrics := telemetry.New(registry)
	e, err := engine.New(engine.Options{Store: s, Clusters: []engine.Cluster{{Name: name, Backend: cluster}}, Metrics: metrics, Log: log})
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
	return errors.Join(err, cluster.Close(), s.Close())
}
