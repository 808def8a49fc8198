package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/user"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

type submitCommand struct {
	gateway gateway
	format  format
	meeting meeting
	task    taskFlags
	key     keyFlags
	file    string
	wait    bool
}

func newSubmit() *cobra.Command {
	var c submitCommand
	cmd := &cobra.Command{
		Use:   "submit [flags] -- COMMAND ARGS... | submit [flags] -f TASK | submit [flags] TASK.yaml | submit [flags] JOB.sbatch",
		Short: "Submit one task",
		Long: `Submit one task: a command after --, a task file (YAML or JSON), or a script whose #SBATCH lines are read. Flags go before
what the file says. Without a key one is made: orchestrator "cli", workflow the user's name, run and uid a UUID. Sent again
with the same key, try and uid it answers with the same job.`,
		Example: `  dagbridge submit --wait -- python train.py --epochs 3
  dagbridge submit --cluster hpc --cpu 4 --memory 16Gi --gpu a100:1 --time 2h train.sbatch
  dagbridge submit --key airflow/risk/manual__1/train -- ./train`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.gateway.addFlags(cmd.Flags())
	c.format.addFlag(cmd)
	c.meeting.addFlags(cmd.Flags())
	c.task.addFlags(cmd.Flags())
	c.key.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&c.key.key, "key", "", "KEY of the task: "+keyForm)
	cmd.Flags().StringVarP(&c.file, "file", "f", "", "a task file or a script; - is the standard input")
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait for the end; the job's exit code is passed through")
	return cmd
}

func (c *submitCommand) run(cmd *cobra.Command, args []string) error {
	request, err := c.request(cmd, args)
	if err != nil {
		return err
	}
	client, err := c.gateway.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := client.SubmitTask(cmd.Context(), request)
	if err != nil {
		return err
	}
	for _, warning := range answer.GetWarnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "dagbridge: "+warning)
	}
	if !c.wait {
		return c.format.print(cmd.OutOrStdout(), answer, func(w io.Writer) { printJobs(w, []*dagbridgev1.Job{answer.GetJob()}) })
	}
	v := newView(progressOf(cmd, &c.format), []*dagbridgev1.Job{answer.GetJob()})
	if err := follow(cmd.Context(), client, v); err != nil {
		return err
	}
	if c.format.value != "table" {
		if err := c.format.print(cmd.OutOrStdout(), &dagbridgev1.GetJobResponse{Job: v.jobs[0]}, nil); err != nil {
			return err
		}
	}
	return jobExit(v.jobs[0])
}

// request is what is to be submitted, from the command line and the file.
func (c *submitCommand) request(cmd *cobra.Command, args []string) (*dagbridgev1.SubmitTaskRequest, error) {
	request := &dagbridgev1.SubmitTaskRequest{Task: &dagbridgev1.Task{}}
	if cmd.ArgsLenAtDash() == 0 && len(args) > 0 {
		if c.file != "" {
			return nil, errors.New("-f and a command exclude each other")
		}
		request.Task.Command = &dagbridgev1.Command{Argv: args}
	} else {
		if cmd.ArgsLenAtDash() > 0 {
			return nil, errors.New("a file and a command exclude each other")
		}
		if c.file == "" && len(args) == 0 {
			return nil, errors.New("nothing to submit: give a command after --, or a file")
		}
		if len(args) > 1 {
			return nil, fmt.Errorf("%d arguments: a command goes after --, and of files there is one", len(args))
		}
		in, err := readInput(cmd.InOrStdin(), c.file, args)
		if err != nil {
			return nil, err
		}
		if request, err = in.taskRequest(cmd.ErrOrStderr()); err != nil {
			return nil, err
		}
	}
	if err := c.task.apply(request.GetTask()); err != nil {
		return nil, err
	}
	if err := c.meeting.apply(&request.OnConflict, &request.IfLive); err != nil {
		return nil, err
	}
	return request, c.name(request.GetTask())
}

// name completes the key. What only this program can make up is made up here, so that the same request can be sent again.
func (c *submitCommand) name(task *dagbridgev1.Task) error {
	key, err := c.key.taskKey()
	if err != nil {
		return err
	}
	if task.Key == nil {
		task.Key = &dagbridgev1.TaskKey{}
	}
	own := task.GetKey()
	own.Deployment = cmp.Or(key.GetDeployment(), own.GetDeployment())
	own.Orchestrator = cmp.Or(key.GetOrchestrator(), own.GetOrchestrator(), "cli")
	own.Workflow = cmp.Or(key.GetWorkflow(), own.GetWorkflow(), userName())
	own.Task = cmp.Or(key.GetTask(), c.task.name, own.GetTask(), defaultName(task))
	own.Run = cmp.Or(key.GetRun(), own.GetRun())
	if len(key.GetMapIndex()) > 0 {
		own.MapIndex = key.GetMapIndex()
	}
	if c.key.try != 0 {
		task.TryNumber = c.key.try
	}
	if own.GetRun() == "" {
		own.Run = uuid.NewString()
		task.Uid = cmp.Or(task.GetUid(), own.GetRun())
	}
	return nil
}

// userName is who runs this program.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// taskRequest reads the file as a task.
func (in *input) taskRequest(stderr io.Writer) (*dagbridgev1.SubmitTaskRequest, error) {
	switch in.content {
	case requestFile:
		request := &dagbridgev1.SubmitTaskRequest{}
		return request, in.decode(request)
	case taskFile:
		task := &dagbridgev1.Task{}
		return &dagbridgev1.SubmitTaskRequest{Task: task}, in.decode(task)
	case scriptFile:
		task, notices, faults := slurm.ParseScript(string(in.text))
		for _, notice := range notices {
			fmt.Fprintf(stderr, "dagbridge: %s: %s\n", in.name, notice)
		}
		if len(faults) > 0 {
			return nil, fmt.Errorf("%s cannot be submitted:\n%w", in.name, faults)
		}
		return &dagbridgev1.SubmitTaskRequest{Task: task}, nil
	}
	return nil, fmt.Errorf("%s is %s, not one task: dagbridge run -f %s", in.name, in.content, in.name)
}
