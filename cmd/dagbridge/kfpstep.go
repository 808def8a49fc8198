package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/dagbridge/dagbridge/server/launcher"
)

// newKfpStep is what a step of a pipeline runs in its job; people have no use for it.
func newKfpStep() *cobra.Command {
	var install string
	cmd := &cobra.Command{
		Use:    "kfp-step [SCRIPT]",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if install != "" {
				return launcher.Install(install)
			}
			step := cmd.InOrStdin()
			if len(args) > 0 {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }()
				step = file
			}
			return &exitError{code: launcher.Run(cmd.Context(), step, cmd.OutOrStdout(), cmd.ErrOrStderr())}
		},
	}
	cmd.Flags().StringVar(&install, "install", "", "copy this program to a path, and do nothing else")
	return cmd
}
