// Command dagbridge is the gateway between workflow orchestrators and native schedulers, and its command line.
//
// serve and demo run a gateway in this process; plan, compact, version and completion need none; all other commands are
// clients of one. A command reads its flags and files, makes one request, and prints the answer: what the answer is, the
// server decides. There is a file per command. Every error ends up in exit.go, which knows the exit codes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:])) }

// run carries out one command line and returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	return report(os.Stderr, root.ExecuteContext(ctx))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "dagbridge",
		Short: "The gateway between workflow orchestrators and native schedulers",
		Long: `dagbridge takes a task, or a whole DAG, turns it into native jobs, and remembers which job carries which task.

Exit codes: 0 done; 1 a run failed; 2 usage or bad input; 4 not found; 125 the gateway cannot be reached or will not let
you in. With --wait: the job's own exit code, 128 + signal, else 1.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(
		newServe(), newDemo(), newSupervise(), newKfpStep(),
		newSubmit(), newRun(), newPlan(),
		newGet(), newList(), newLookup(), newLogs(), newOutput(), newCancel(), newClusters(),
		newBackup(), newCompact(), newVersion(),
	)
	for _, cmd := range root.Commands() {
		if cmd.Args != nil {
			cmd.Args = showUse(cmd.Args)
		}
	}
	return root
}

// showUse says, where arguments are wrong, how the command is written.
func showUse(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w; write dagbridge %s", err, cmd.Use)
		}
		return nil
	}
}
