package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/kubernetes"
	"github.com/dagbridge/dagbridge/server/backend/local"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/engine"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
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
		return local.New(local.Options{
			Name: c.Name, Dir: filepath.Join(cfg.Data, "jobs", url.PathEscape(c.Name)),
			CPUs: c.Local.CPUs, Memory: int64(c.Local.Memory), Images: folders(c.Local.Images), Prologue: c.Local.Prologue, Log: log,
		})
	case c.Slurm != nil:
		o := slurmOptions(c.Name, c.Slurm, log)
		o.AccountingLag = cfg.LostAfter
		return slurm.New(o)
	case c.Kubernetes != nil:
		o, err := kubernetesOptions(c.Name, c.Kubernetes, log)
		if err != nil {
			return nil, err
		}
		return kubernetes.New(o)
	}
	return nil, fmt.Errorf("cluster %s is of no kind", c.Name)
}

// folders are those that stand in for images, by the images' names.
func folders(images []config.Image) map[string]string {
	all := make(map[string]string, len(images))
	for _, image := range images {
		all[image.Name] = image.Folder
	}
	return all
}

func slurmOptions(name string, s *config.Slurm, log *slog.Logger) slurm.Options {
	o := slurm.Options{
		Name: name, WorkDir: s.WorkDir, Impersonate: s.Impersonate, PollInterval: s.PollInterval, Prologue: s.Prologue, LoginShell: s.LoginShell,
		Partition: s.Partition, Account: s.Account, QOS: s.QOS, Container: s.Container,
		Images: folders(s.Images), Pipelines: s.Pipelines,
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

func kubernetesOptions(name string, k *config.Kubernetes, log *slog.Logger) (kubernetes.Options, error) {
	o := kubernetes.Options{
		Name: name, Kubeconfig: k.Kubeconfig, Context: k.Context, Namespaces: append([]string{cmp.Or(k.Namespace, "default")}, k.Namespaces...), Kinds: k.Kinds,
		Site: translate.Site{Image: k.Image, Prologue: k.Prologue, Queue: k.Queue, URL: k.URL, Launcher: k.Launcher, Pipelines: k.Pipelines, PipelinesClaim: k.PipelinesClaim}, Rate: float32(k.CallRate), Keep: k.Keep, Log: log,
	}
	for _, gpu := range k.GPUs {
		if o.Site.GPUs == nil {
			o.Site.GPUs = map[string]translate.GPU{}
		}
		g := translate.GPU{Resource: gpu.Resource}
		for _, label := range gpu.NodeSelector {
			if g.NodeSelector == nil {
				g.NodeSelector = map[string]string{}
			}
			label, value, _ := strings.Cut(label, "=") // the configuration has been checked
			g.NodeSelector[label] = value
		}
		o.Site.GPUs[gpu.Type] = g
	}
	if k.PodTemplateFile != "" {
		text, err := os.ReadFile(k.PodTemplateFile)
		if err != nil {
			return o, fmt.Errorf("cluster %s: podTemplateFile: %w", name, err)
		}
		template, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return o, fmt.Errorf("cluster %s: podTemplateFile %s: %w", name, k.PodTemplateFile, err)
		}
		o.Site.PodTemplate = string(template)
	}
	return o, nil
}
