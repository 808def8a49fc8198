package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagbridge/dagbridge/server/config"
)

func newServe() *cobra.Command {
	var path string
	var level slog.Level
	cmd := &cobra.Command{
		Use:   "serve [--config FILE]",
		Short: "Run the gateway",
		Long: `Run the gateway until SIGTERM or SIGINT; jobs go on without it. Without a configuration: this machine as the cluster
"local", loopback, and ./dagbridge-data. One line on the standard output says that it is ready; the log goes to the
standard error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				// What it keeps are its live jobs: 10,000 take some 60 MB. Collecting twice as often as Go does by itself leaves
				// half as much garbage beside them, for some per cent more of processor time.
				debug.SetGCPercent(50)
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			running, err := startInstance(cfg, log)
			if err != nil {
				return err
			}
			var names []string
			for _, c := range cfg.Clusters {
				names = append(names, c.Name)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "dagbridge is ready: gRPC %s, REST %s, data %s, clusters %s\n",
				running.server.GRPCAddr(), running.server.HTTPAddr(), cfg.Data, strings.Join(names, ", "))
			<-cmd.Context().Done()
			log.Info("stopping; jobs go on")
			if err := running.stop(); err != nil {
				return exitf(exitFailed, "stopping: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "configuration file (YAML)")
	cmd.Flags().TextVar(&level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	return cmd
}

// loadConfig is the file's configuration, the default without one.
func loadConfig(path string) (*config.Config, error) {
	if path == "" {
		return config.Default(), nil
	}
	return config.Load(path)
}
