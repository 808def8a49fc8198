package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// workflowFlags say which workflow is meant, and how.
type workflowFlags struct {
	file, cluster string
	parameters    []string
	tasks         []string
}

func (w *workflowFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&w.file, "file", "f", "", "the workflow's file; - is the standard input")
	flags.StringVar(&w.cluster, "cluster", "", "where tasks run that name no cluster")
	flags.StringArrayVar(&w.parameters, "param", nil, "NAME=VALUE, the value read as JSON where it is JSON, else as a word; repeatable")
	flags.StringArrayVar(&w.tasks, "only", nil, "take only this task of the workflow; repeatable")
}

// read is the workflow of the file, with what the flags say over it.
func (w *workflowFlags) read(cmd *cobra.Command, args []string) (*dagbridgev1.Workflow, error) {
	in, err := readInput(cmd.InOrStdin(), w.file, args)
	if err != nil {
		return nil, err
	}
	workflow, err := in.workflow()
	if err != nil {
		return nil, err
	}
	override(&workflow.Cluster, w.cluster)
	if len(w.tasks) > 0 {
		workflow.TasksSelected = w.tasks
	}
	for _, word := range w.parameters {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--param %s: NAME=VALUE is wanted", word)
		}
		if !json.Valid([]byte(value)) {
			quoted, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("--param %s: %w", name, err)
			}
			value = string(quoted)
		}
		if workflow.Parameters == nil {
			workflow.Parameters = map[string]*dagbridgev1.Json{}
		}
		workflow.Parameters[name] = &dagbridgev1.Json{Text: value}
	}
	return workflow, nil
}

// workflow reads the file as a DAG.
func (in *input) workflow() (*dagbridgev1.Workflow, error) {
	switch in.content {
	case workflowFile:
		w := &dagbridgev1.Workflow{}
		return w, in.decode(w)
	case airflowFile:
		return nil, fmt.Errorf("%s is %s; Airflow DAGs are not supported yet", in.name, in.content)
	case kfpFile:
		return nil, fmt.Errorf("%s is %s; KFP pipelines are not supported yet", in.name, in.content)
	}
	return nil, fmt.Errorf("%s is %s, not a workflow: dagbridge submit %s", in.name, in.content, in.name)
}
