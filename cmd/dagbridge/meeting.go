package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// meeting is how a submission meets what is there already under its key.
type meeting struct {
	onConflict string
	ifLive     string
}

func (m *meeting) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.onConflict, "on-conflict", "", "the same key, try and uid with another content: refuse, attach")
	flags.StringVar(&m.ifLive, "if-live", "", "a new try while the old job lives: attach, replace")
}

func (m *meeting) apply(conflict *dagbridgev1.OnConflict_Value, live *dagbridgev1.IfLive_Value) error {
	if m.onConflict != "" {
		value, ok := dagbridgev1.OnConflict_Value_value[strings.ToUpper(m.onConflict)]
		if !ok || value == 0 {
			return fmt.Errorf("--on-conflict %s: there are refuse and attach", m.onConflict)
		}
		*conflict = dagbridgev1.OnConflict_Value(value)
	}
	if m.ifLive != "" {
		value, ok := dagbridgev1.IfLive_Value_value[strings.ToUpper(m.ifLive)]
		if !ok || value == 0 {
			return fmt.Errorf("--if-live %s: there are attach and replace", m.ifLive)
		}
		*live = dagbridgev1.IfLive_Value(value)
	}
	return nil
}

// progressOf is where progress goes: beside the answer when that is for a program.
func progressOf(cmd *cobra.Command, f *format) io.Writer {
	if f.value == "table" {
		return cmd.OutOrStdout()
	}
	return cmd.ErrOrStderr()
}
