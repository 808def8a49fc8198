package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func newOutput() *cobra.Command {
	var g gateway
	var f format
	cmd := &cobra.Command{
		Use:   "output JOB [NAME]",
		Short: "Print what a job left as its outputs, as JSON",
		Long:  "Print all outputs of a job as a JSON object, or the value of one, as it was written. JOB is an id or a KEY\n(" + keyForm + ").",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := g.connect()
			if err != nil {
				return err
			}
			defer client.Close()
			job, err := findJob(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			text, err := outputText(job, args[1:])
			if err != nil {
				return err
			}
			if f.value == "table" {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
				return err
			}
			return f.printJSON(cmd.OutOrStdout(), text)
		},
	}
	g.addFlags(cmd.Flags())
	f.addFlag(cmd)
	return cmd
}

// outputText is the JSON of the named output, or of all.
func outputText(job *dagbridgev1.Job, names []string) ([]byte, error) {
	outputs := job.GetOutputs()
	if len(names) == 1 {
		value, ok := outputs[names[0]]
		if !ok {
			return nil, exitf(exitNotFound, "job %s (%s) has no output %q", job.GetId(), job.GetState(), names[0])
		}
		return []byte(value.GetText()), nil
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(outputs)) {
		if i > 0 {
			out.WriteString(", ")
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s: %s", quoted, outputs[name].GetText())
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
