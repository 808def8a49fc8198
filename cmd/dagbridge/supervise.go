package main

import (
	"github.com/spf13/cobra"

	"github.com/dagbridge/dagbridge/server/backend/local"
)

// newSupervise is the process that stays with one local job; people have no use for it.
func newSupervise() *cobra.Command {
	return &cobra.Command{
		Use:                "supervise",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return &exitError{code: local.Supervise(args)}
		},
	}
}
