package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/dagbridge/dagbridge/integration/examples"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// demoFile is the example that demo runs.
const demoFile = "ml-pipeline.yaml"

func newDemo() *cobra.Command {
	f := format{value: "table"}
	return &cobra.Command{
		Use:   "demo",
		Short: "Run a small pipeline through an embedded gateway, and show the mappings it leaves",
		Long: `Start a gateway on free ports with its data in a temporary folder, run a small pipeline on this machine, look one task up,
and print which native job carried each task. Nothing need be configured, and nothing is left.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			folder, err := os.MkdirTemp("", "dagbridge-demo-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			cfg := config.Default()
			cfg.Listen = config.Listen{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
			cfg.Data = folder
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			running, err := startInstance(cfg, log)
			if err != nil {
				return err
			}
			defer running.stop()
			fmt.Fprintf(cmd.OutOrStdout(), "a gateway for this demo: gRPC %s, REST http://%s\n", running.server.GRPCAddr(), running.server.HTTPAddr())
			return runDemo(cmd, &gateway{server: running.server.GRPCAddr()}, &f)
		},
	}
}

func runDemo(cmd *cobra.Command, g *gateway, f *format) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	text, err := examples.Files.ReadFile(demoFile)
	if err != nil {
		return err
	}
	in := &input{name: filepath.Join("integration", "examples", demoFile), text: text, content: workflowFile}
	workflow, err := in.workflow()
	if err != nil {
		return err
	}
	id := uuid.NewString()
	workflow.Run = &dagbridgev1.Run{Orchestrator: "cli", Workflow: workflow.GetName(), Run: id, Uid: id}
	fmt.Fprintf(cmd.OutOrStdout(), "dagbridge run -f %s --wait\n", in.name)
	ended, err := runAndWait(cmd, client, workflow, f)
	if err != nil {
		return err
	}
	key := &dagbridgev1.TaskKey{Orchestrator: "cli", Workflow: workflow.GetName(), Run: id, Task: "report"}
	fmt.Fprintf(cmd.OutOrStdout(), "\ndagbridge lookup %s\n", graph.FormatKey(key))
	job, err := lookup(cmd.Context(), client, key, 0)
	if err != nil {
		return err
	}
	if err := f.print(cmd.OutOrStdout(), nil, func(w io.Writer) { printJob(w, job) }); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "\nthe mappings")
	if err := f.print(cmd.OutOrStdout(), nil, func(w io.Writer) { printMapping(w, ended.GetJobs()) }); err != nil {
		return err
	}
	return runExit(ended.GetRun())
}
