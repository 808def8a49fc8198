package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// format is the form that -o chooses.
type format struct {
	value  string
	others []string // beyond table, json and yaml
}

func (f *format) addFlag(cmd *cobra.Command, others ...string) {
	f.value, f.others = "table", others
	cmd.Flags().VarP(f, "output", "o", strings.Join(f.words(), ", "))
	completeWith(cmd, "output", f.words())
}

// completeWith offers the words where a shell completes the flag's value.
func completeWith(cmd *cobra.Command, flag string, words []string) {
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func (f *format) words() []string { return append([]string{"table", "json", "yaml"}, f.others...) }

// String, Set and Type make a format a flag's value.
func (f *format) String() string { return f.value }

// Set takes one of the words.
func (f *format) Set(word string) error {
	if !slices.Contains(f.words(), word) {
		return fmt.Errorf("there are %s", strings.Join(f.words(), ", "))
	}
	f.value = word
	return nil
}

// Type is what the help calls the value.
func (f *format) Type() string { return "form" }

// print writes a message as JSON or YAML, or what table writes with tabs between the cells.
func (f *format) print(w io.Writer, m proto.Message, table func(w io.Writer)) error {
	if f.value == "table" {
		tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		table(tw)
		return tw.Flush()
	}
	text, err := jsoncodec.Marshal(m)
	if err != nil {
		return err
	}
	return f.printJSON(w, text)
}

// printJSON writes JSON text, byte for byte but for the space between the values, or its YAML.
func (f *format) printJSON(w io.Writer, text []byte) error {
	var out bytes.Buffer
	if f.value == "yaml" {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // 64-bit integers and 3.0 survive
		node, err := yamlNode(decoder)
		if err != nil {
			return err
		}
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		if err := encoder.Encode(node); err != nil {
			return err
		}
	} else {
		if err := json.Indent(&out, text, "", "  "); err != nil {
			return err
		}
		out.WriteByte('\n')
	}
	_, err := w.Write(out.Bytes())
	return err
}

// yamlNode reads the next JSON value as a YAML tree, with the members in their order.
func yamlNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{}
	switch value := token.(type) {
	case json.Delim:
		node.Kind = yaml.MappingNode
		if value == '[' {
			node.Kind = yaml.SequenceNode
		}
		for decoder.More() {
			child, err := yamlNode(decoder)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		if len(node.Content) == 0 {
			node.Style = yaml.FlowStyle
		}
		_, err = decoder.Token()
		return node, err
	case json.Number:
		node.Kind, node.Value = yaml.ScalarNode, value.String()
		return node, nil
	}
	return node, node.Encode(token)
}
