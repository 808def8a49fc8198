package main

import (
	"github.com/spf13/cobra"

	"github.com/dagbridge/dagbridge/server/launcher"
)

// newKfpStep is what a step of a pipeline runs in its job; people have no use for it.
func newKfpStep() *cobra.Command {
	var install string
	cmd := &cobra.Command{
		Use:    "kfp-step",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if install != "" {
				return launcher.Install(install)
			}
			return &exitError{code: launcher.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())}
		},
	}
	cmd.Flags().StringVar(&install, "install", "", "copy this program to a path, and do nothing else")
	return cmd
}
