package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/bridge"
	"github.com/dagbridge/dagbridge/server/config"
)

type planCommand struct {
	gateway  gateway
	format   format
	workflow workflowFlags
	config   string
	kind     string
	text     string
}

func newPlan() *cobra.Command {
	var c planCommand
	cmd := &cobra.Command{
		Use:   "plan [flags] -f WORKFLOW | plan [flags] WORKFLOW",
		Short: "Show what would be submitted: native texts, and which edges the scheduler keeps",
		Long: `Show what run would submit: the native text of each task, and of each edge whether the scheduler keeps it or the gateway
holds the task, and why. Nothing is submitted, and no gateway is needed: the clusters are those of --config, else this
machine, or with --kind slurm a Slurm cluster as it comes out of the box. Only with --server a gateway is asked.

dot and mermaid draw the graph: native edges solid, held ones dashed and labelled with the reason.`,
		Example: `  dagbridge plan -f ml-pipeline.yaml --kind slurm
  dagbridge plan -f ml-pipeline.yaml --kind slurm --text preprocess | sbatch
  dagbridge plan -f ml-pipeline.yaml -o dot | dot -Tsvg`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.gateway.addFlags(cmd.Flags())
	c.format.addFlag(cmd, "dot", "mermaid")
	c.workflow.addFlags(cmd)
	cmd.Flags().StringVar(&c.config, "config", "", "configuration whose clusters are meant")
	cmd.Flags().StringVar(&c.kind, "kind", "", "without a configuration: local, the default, slurm or kubernetes")
	cmd.Flags().StringVar(&c.text, "text", "", "print only the native text of this task")
	cmd.MarkFlagsMutuallyExclusive("server", "config", "kind")
	return cmd
}

func (c *planCommand) run(cmd *cobra.Command, args []string) error {
	workflow, err := c.workflow.read(cmd, args)
	if err != nil {
		return err
	}
	plan, err := c.plan(cmd, workflow)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch {
	case c.text != "":
		for _, task := range plan.GetTasks() {
			if task.GetTask() == c.text {
				if folder := folderOf(task); folder != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "dagbridge: by hand: mkdir -p %s first\n", folder)
				}
				_, err := io.WriteString(out, task.GetNativeText())
				return err
			}
		}
		return exitf(exitNotFound, "the workflow has no task %q", c.text)
	case c.format.value == "dot":
		return drawDot(out, plan)
	case c.format.value == "mermaid":
		return drawMermaid(out, plan)
	case c.format.value == "table":
		if err := c.format.print(out, plan, func(w io.Writer) { printEdges(w, plan) }); err != nil {
			return err
		}
		return printTasks(out, plan)
	}
	return c.format.print(out, &dagbridgev1.PlanWorkflowResponse{Plan: plan}, nil)
}

func (c *planCommand) plan(cmd *cobra.Command, workflow *dagbridgev1.Workflow) (*dagbridgev1.Plan, error) {
	if cmd.Flags().Changed("server") {
		client, err := c.gateway.connect()
		if err != nil {
			return nil, err
		}
		defer client.Close()
		answer, err := client.PlanWorkflow(cmd.Context(), workflow)
		return answer.GetPlan(), err
	}
	cfg, err := c.clusters(workflow)
	if err != nil {
		return nil, err
	}
	clusters, closeClusters, err := openClusters(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer closeClusters()
	return bridge.Plan(workflow, clusters)
}

// clusters is a configuration with those that are planned for.
func (c *planCommand) clusters(workflow *dagbridgev1.Workflow) (*config.Config, error) {
	switch {
	case c.config != "":
		return config.Load(c.config)
	case c.kind == "" || c.kind == "local":
		return config.Default(), nil
	case c.kind == "slurm":
		name := cmp.Or(workflow.GetCluster(), "slurm")
		text := fmt.Sprintf("clusters: [{name: %q, slurm: {cli: {}, workDir: /shared/dagbridge}}]", name)
		return config.Parse("a Slurm cluster out of the box", []byte(text))
	case c.kind == "kubernetes":
		text := fmt.Sprintf("clusters: [{name: %q, kubernetes: {}}]", cmp.Or(workflow.GetCluster(), "kubernetes"))
		return config.Parse("a Kubernetes cluster", []byte(text))
	}
	return nil, fmt.Errorf("--kind %s: there are local, slurm and kubernetes", c.kind)
}

// printEdges writes one row an edge.
func printEdges(w io.Writer, plan *dagbridgev1.Plan) {
	for _, notice := range plan.GetNotices() {
		fmt.Fprintf(w, "notice: %s\n", notice)
	}
	if len(plan.GetEdges()) == 0 {
		return
	}
	fmt.Fprintln(w, "FROM\tTO\tKEPT BY\tWHY")
	for _, edge := range plan.GetEdges() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", edge.GetFrom(), edge.GetTo(), keeper(edge), edge.GetWhy())
	}
}

// printTasks writes the native texts, byte for byte, each below a line that says whose it is.
func printTasks(w io.Writer, plan *dagbridgev1.Plan) error {
	var b strings.Builder
	for _, task := range plan.GetTasks() {
		fmt.Fprintf(&b, "\n## %s\n", strings.Join(describe(task), "; "))
		for _, notice := range task.GetNotices() {
			fmt.Fprintf(&b, "## notice: %s\n", notice)
		}
		if folder := folderOf(task); folder != "" {
			fmt.Fprintf(&b, "## by hand: mkdir -p %s first\n", folder)
		}
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(task.GetNativeText(), "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// chdir is the directive that names the folder of a job for sbatch.
var chdir = regexp.MustCompile(`(?m)^#SBATCH --chdir=(.+)$`)

// folderOf is the folder that sbatch wants to find, which the gateway would make; empty where the text needs none.
func folderOf(task *dagbridgev1.Plan_PlannedTask) string {
	if found := chdir.FindStringSubmatch(task.GetNativeText()); found != nil {
		return found[1]
	}
	return ""
}

func keeper(edge *dagbridgev1.Plan_PlannedEdge) string {
	if edge.GetNative() {
		return "scheduler"
	}
	return "gateway"
}

// describe says of a planned task what its native text does not.
func describe(task *dagbridgev1.Plan_PlannedTask) []string {
	parts := []string{fmt.Sprintf("%s on %s", taskName(&dagbridgev1.TaskKey{Task: task.GetTask(), MapIndex: task.GetMapIndex()}), task.GetCluster())}
	if n := task.GetInstances(); n > 0 {
		parts = append(parts, fmt.Sprintf("an array of %d", n))
	}
	if task.GetHeld() {
		parts = append(parts, "held by the gateway: "+task.GetWhy())
	}
	return parts
}
