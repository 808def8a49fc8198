package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/local"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
)

// openClusters makes the configured clusters, contacting none, and what closes them.
func openClusters(cfg *config.Config, log *slog.Logger) ([]engine.Cluster, func() error, error) {
	var clusters []engine.Cluster
	closeAll := func() error {
		var errs []error
		for _, c := range clusters {
			errs = append(errs, c.Backend.Close())
		}
		return errors.Join(errs...)
	}
	for _, c := range cfg.Clusters {
		b, err := openCluster(cfg, c, log.With("cluster", c.Name))
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		clusters = append(clusters, engine.Cluster{Name: c.Name, Backend: b})
	}
	return clusters, closeAll, nil
}

func openCluster(cfg *config.Config, c config.Cluster, log *slog.Logger) (backend.Backend, error) {
	switch {
	case c.Local != nil:
		images := map[string]string{}
		for _, image := range c.Local.Images {
			images[image.Name] = image.Folder
		}
		return local.New(local.Options{
			Name: c.Name, Dir: filepath.Join(cfg.Data, "jobs", url.PathEscape(c.Name)),
			CPUs: c.Local.CPUs, Memory: int64(c.Local.Memory), Images: images, Prologue: c.Local.Prologue, Log: log,
		})
	case c.Slurm != nil:
		o := slurmOptions(c.Name, c.Slurm, log)
		o.AccountingLag = cfg.LostAfter
		return slurm.New(o)
	}
	return nil, fmt.Errorf("cluster %s is of no kind", c.Name)
}

func slurmOptions(name string, s *config.Slurm, log *slog.Logger) slurm.Options {
	o := slurm.Options{
		Name: name, WorkDir: s.WorkDir, Impersonate: s.Impersonate, PollInterval: s.PollInterval, Prologue: s.Prologue, LoginShell: s.LoginShell,
		Partition: s.Partition, Account: s.Account, QOS: s.QOS, Container: s.Container,
		Limits: slurm.Limits{MaxArraySize: s.Limits.MaxArraySize, MinJobAge: s.Limits.MinJobAge, SubmitRate: s.Limits.SubmitRate}, Log: log,
	}
	if s.REST != nil {
		o.REST = &slurm.REST{URL: s.REST.URL, User: s.REST.User, TokenFile: s.REST.TokenFile, Version: s.REST.Version}
	}
	if s.CLI != nil {
		o.CLI = &slurm.CLI{Path: s.CLI.Path}
	}
	if s.SSH != nil {
		o.SSH = &slurm.SSH{
			Host: s.SSH.Host, Port: s.SSH.Port, User: s.SSH.User, KeyFile: s.SSH.KeyFile, CertFile: s.SSH.CertFile,
			Agent: s.SSH.Agent, KnownHostsFile: s.SSH.KnownHostsFile, Path: s.SSH.Path,
		}
	}
	return o
}
