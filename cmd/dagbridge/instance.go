package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/dagbridge/dagbridge/server"
	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

// storeFile is the store's name in the data folder.
const storeFile = "dagbridge.db"

// shutdown is how long calls in progress may take when the gateway stops.
const shutdown = 10 * time.Second

// instance is a gateway that runs in this process.
type instance struct {
	server        *server.Server
	engine        *engine.Engine
	store         *store.Store
	closeClusters func() error
	stopExpiry    context.CancelFunc
	expiry        sync.WaitGroup
}

// startInstance starts a gateway; it returns once both listeners serve. What is already there when something fails is
// stopped again.
func startInstance(cfg *config.Config, log *slog.Logger) (_ *instance, err error) {
	i := &instance{}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.stop())
		}
	}()
	if i.store, err = store.Open(filepath.Join(cfg.Data, storeFile), store.Options{Log: log}); err != nil {
		return nil, err
	}
	clusters, closeClusters, err := openClusters(cfg, log)
	if err != nil {
		return nil, err
	}
	i.closeClusters = closeClusters
	guard, err := auth.New(cfg.Auth)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	metrics := telemetry.New(registry, names...)
	running, err := engine.New(engine.Options{
		Store: i.store, Clusters: clusters, Log: log, Metrics: metrics, Grace: cfg.LostAfter, UserOf: guard.UserOf,
	})
	if err != nil {
		return nil, err
	}
	running.Start()
	i.engine = running
	doors, err := server.New(server.Options{
		Listen: cfg.Listen, Guard: guard, Engine: running, Store: i.store, Metrics: metrics, Registry: registry, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if err := doors.Start(); err != nil {
		return nil, err
	}
	i.server = doors
	ctx, cancel := context.WithCancel(context.Background())
	i.stopExpiry = cancel
	i.expiry.Go(func() { i.expire(ctx, cfg.Retention, log) })
	return i, nil
}

// expire forgets old jobs, at the start and then every hour.
func (i *instance) expire(ctx context.Context, r config.Retention, log *slog.Logger) {
	clock := time.NewTicker(time.Hour)
	defer clock.Stop()
	for {
		switch n, err := i.store.Expire(time.Now(), r.Age, r.Jobs); {
		case err != nil:
			log.Error("old jobs are not forgotten", "error", err)
		case n > 0:
			log.Info("old jobs are forgotten", "jobs", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
	}
}

// stop ends the gateway, from the doors inwards. It ends no job.
func (i *instance) stop() error {
	var errs []error
	if i.stopExpiry != nil {
		i.stopExpiry()
		i.expiry.Wait()
	}
	if i.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdown)
		defer cancel()
		errs = append(errs, i.server.Stop(ctx))
	}
	if i.engine != nil {
		i.engine.Stop()
	}
	if i.closeClusters != nil {
		errs = append(errs, i.closeClusters())
	}
	if i.store != nil {
		errs = append(errs, i.store.Close())
	}
	return errors.Join(errs...)
}
