package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// workflowFlags say which workflow is meant, and how.
type workflowFlags struct {
	file, cluster string
	parameters    []string
	tasks         []string
	// logicalDate and conf are those of a run of an Airflow DAG.
	logicalDate, conf string
}

func (w *workflowFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&w.file, "file", "f", "", "the workflow's file; - is the standard input")
	flags.StringVar(&w.cluster, "cluster", "", "where tasks run that name no cluster")
	flags.StringArrayVar(&w.parameters, "param", nil, "NAME=VALUE, the value read as JSON where it is JSON, else as a word; repeatable")
	flags.StringVar(&w.logicalDate, "logical-date", "", "of an Airflow DAG's run, 2026-01-31 or 2026-01-31T06:00:00Z; left out: run says now, plan shows a date that stands in")
	flags.StringVar(&w.conf, "conf", "", "conf of an Airflow DAG's run: a JSON object")
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
	if w.logicalDate != "" {
		date, err := readDate(w.logicalDate)
		if err != nil {
			return nil, err
		}
		workflow.LogicalDate = timestamppb.New(date)
	}
	if w.conf != "" {
		if !json.Valid([]byte(w.conf)) {
			return nil, fmt.Errorf("--conf %s: a JSON object is wanted", w.conf)
		}
		workflow.Conf = &dagbridgev1.Json{Text: w.conf}
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

// readDate reads a day, or a moment with its zone.
func readDate(word string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if date, err := time.Parse(layout, word); err == nil {
			return date.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("--logical-date %s: 2026-01-31 or 2026-01-31T06:00:00Z is wanted", word)
}

// workflow reads the file as a DAG.
func (in *input) workflow() (*dagbridgev1.Workflow, error) {
	switch in.content {
	case workflowFile:
		w := &dagbridgev1.Workflow{}
		return w, in.decode(w)
	case airflowFile:
		if !in.isJSON() {
			return nil, fmt.Errorf("%s looks like %s, but is not JSON", in.name, in.content)
		}
		return &dagbridgev1.Workflow{AirflowDag: &dagbridgev1.Json{Text: string(in.text)}}, nil
	case kfpFile:
		return &dagbridgev1.Workflow{KfpPipeline: string(in.text)}, nil
	}
	return nil, fmt.Errorf("%s is %s, not a workflow: dagbridge submit %s", in.name, in.content, in.name)
}
