package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dagbridge/dagbridge/server/store"
)

func newCompact() *cobra.Command {
	var path, data string
	cmd := &cobra.Command{
		Use:   "compact [--config FILE | --data FOLDER]",
		Short: "Give the space of forgotten jobs back to the disk; the gateway must not run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" {
				cfg, err := loadConfig(path)
				if err != nil {
					return err
				}
				data = cfg.Data
			}
			before, after, err := store.Compact(filepath.Join(data, storeFile))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes before, %d after\n", filepath.Join(data, storeFile), before, after)
			return err
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the gateway's configuration")
	cmd.Flags().StringVar(&data, "data", "", "the gateway's data folder; left out: the configuration's")
	cmd.MarkFlagsMutuallyExclusive("config", "data")
	return cmd
}
