package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

type runCommand struct {
	gateway  gateway
	format   format
	meeting  meeting
	workflow workflowFlags
	key      dagbridgev1.Run
	mode     string
	wait     bool
}

func newRun() *cobra.Command {
	var c runCommand
	cmd := &cobra.Command{
		Use:   "run [flags] -f WORKFLOW | run [flags] WORKFLOW",
		Short: "Submit a whole DAG",
		Long: `Submit a whole DAG: all of it or, when anything is wrong with it, nothing. The file is the body of POST /v1/runs as YAML or
JSON, a serialized Airflow DAG, or a pipeline as the SDK of Kubeflow Pipelines compiles it. Where it names no run, one is made: orchestrator "cli", workflow the file's name, run and
uid a UUID; of an Airflow DAG, orchestrator "airflow", workflow the DAG's id, and the logical date is now; of a pipeline, orchestrator "kfp", workflow the pipeline's name.`,
		Example: `  dagbridge run -f ml-pipeline.yaml --cluster hpc --wait`,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.gateway.addFlags(cmd.Flags())
	c.format.addFlag(cmd)
	c.meeting.addFlags(cmd.Flags())
	c.workflow.addFlags(cmd)
	cmd.Flags().StringVar(&c.key.Deployment, "deployment", "", "which installation of the orchestrator")
	cmd.Flags().StringVar(&c.key.Orchestrator, "orchestrator", "", `orchestrator; left out: the file's, else "cli"`)
	cmd.Flags().StringVar(&c.key.Workflow, "workflow", "", "workflow; left out: the file's")
	cmd.Flags().StringVar(&c.key.Run, "run", "", "run; left out: the file's, else a UUID")
	cmd.Flags().StringVar(&c.key.Uid, "uid", "", "the caller's id of this try")
	cmd.Flags().Int32Var(&c.key.TryNumber, "try", 0, "the caller's count of tries")
	cmd.Flags().StringVar(&c.mode, "mode", "", "all, or only-failed: what has not succeeded, and what comes after it")
	cmd.Flags().BoolVar(&c.wait, "wait", false, "show progress until the end; 1 when the run failed")
	return cmd
}

func (c *runCommand) run(cmd *cobra.Command, args []string) error {
	workflow, err := c.workflow.read(cmd, args)
	if err != nil {
		return err
	}
	if err := c.meeting.apply(&workflow.OnConflict, &workflow.IfLive); err != nil {
		return err
	}
	if err := c.name(workflow); err != nil {
		return err
	}
	client, err := c.gateway.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	if !c.wait {
		answer, err := submitRun(cmd, client, workflow, &c.format)
		if err != nil {
			return err
		}
		return c.format.print(cmd.OutOrStdout(), answer, func(w io.Writer) { printJobs(w, answer.GetJobs()) })
	}
	ended, err := runAndWait(cmd, client, workflow, &c.format)
	if err != nil {
		return err
	}
	if err := c.format.print(cmd.OutOrStdout(), ended, func(w io.Writer) { printMapping(w, ended.GetJobs()) }); err != nil {
		return err
	}
	return runExit(ended.GetRun())
}

// name completes the run's key. What only this program can make up is made up here, so that the request can be sent again.
func (c *runCommand) name(workflow *dagbridgev1.Workflow) error {
	if workflow.Run == nil {
		workflow.Run = &dagbridgev1.Run{}
	}
	run := workflow.GetRun()
	override(&run.Deployment, c.key.GetDeployment())
	override(&run.Orchestrator, c.key.GetOrchestrator())
	override(&run.Workflow, c.key.GetWorkflow())
	override(&run.Run, c.key.GetRun())
	override(&run.Uid, c.key.GetUid())
	override(&run.TryNumber, c.key.GetTryNumber())
	dag := workflow.GetAirflowDag() != nil
	if !dag && workflow.GetKfpPipeline() == "" { // else the gateway reads its name in it
		run.Orchestrator = cmp.Or(run.GetOrchestrator(), "cli")
		run.Workflow = cmp.Or(run.GetWorkflow(), workflow.GetName(), userName())
	}
	if run.GetRun() == "" {
		if dag && workflow.LogicalDate == nil {
			workflow.LogicalDate = timestamppb.New(time.Now().Truncate(time.Microsecond))
		}
		run.Run = uuid.NewString()
		run.Uid = cmp.Or(run.GetUid(), run.GetRun())
	}
	switch c.mode {
	case "":
	case "all":
		run.Mode = dagbridgev1.Run_ALL
	case "only-failed":
		run.Mode = dagbridgev1.Run_ONLY_FAILED
	default:
		return fmt.Errorf("--mode %s: there are all and only-failed", c.mode)
	}
	return nil
}

// submitRun submits a workflow and says which run it is.
func submitRun(cmd *cobra.Command, client *client, workflow *dagbridgev1.Workflow, f *format) (*dagbridgev1.SubmitWorkflowResponse, error) {
	answer, err := client.SubmitWorkflow(cmd.Context(), workflow)
	if err != nil {
		return nil, err
	}
	for _, warning := range answer.GetWarnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "dagbridge: "+warning)
	}
	run := answer.GetRun()
	fmt.Fprintf(progressOf(cmd, f), "run %s: %s / %s / %s\n", run.GetId(), run.GetOrchestrator(), run.GetWorkflow(), run.GetRun())
	return answer, nil
}

// runAndWait submits a workflow, shows what becomes of it, and returns it as it is at its end.
func runAndWait(cmd *cobra.Command, client *client, workflow *dagbridgev1.Workflow, f *format) (*dagbridgev1.SubmitWorkflowResponse, error) {
	answer, err := submitRun(cmd, client, workflow, f)
	if err != nil {
		return nil, err
	}
	v := newView(progressOf(cmd, f), answer.GetJobs())
	if err := follow(cmd.Context(), client, v); err != nil {
		return nil, err
	}
	// The jobs have ended; the run's own word is asked for, since not every failed task fails a run.
	ended, err := client.GetRun(cmd.Context(), &dagbridgev1.GetRunRequest{Id: answer.GetRun().GetId()})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progressOf(cmd, f), "run %s: %s\n", ended.GetRun().GetId(), ended.GetRun().GetState())
	return &dagbridgev1.SubmitWorkflowResponse{Run: ended.GetRun(), Jobs: v.jobs, Warnings: answer.GetWarnings()}, nil
}

// runExit is the exit code of a run that has ended.
func runExit(run *dagbridgev1.Run) error {
	if run.GetState() == dagbridgev1.Run_SUCCEEDED {
		return nil
	}
	return &exitError{code: exitFailed}
}
