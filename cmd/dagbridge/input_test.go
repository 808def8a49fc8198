package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/examples"
)

func TestDetect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		content content
		fault   string
	}{
		"airflow":               {`{"__version": 3, "dag": {"dag_id": "risk", "tasks": []}}`, airflowFile, ""},
		"array":                 {`[1, 2]`, "", "holds JSON, but no object"},
		"empty":                 {" \n", "", "is empty"},
		"json with tabs":        {"{\n\t\"tasks\": []\n}", workflowFile, ""},
		"kfp":                   {"# PIPELINE DEFINITION\ncomponents: {}\ndeploymentSpec: {}\npipelineInfo: {name: p}\nroot: {}\nschemaVersion: 2.1.0\n", kfpFile, ""},
		"kfp in a wrapper":      {"pipelineSpec: {root: {}}\n", kfpFile, ""},
		"no yaml":               {"a: [", "", "line 1"},
		"request":               {`{"task": {"command": {"argv": ["true"]}}}`, requestFile, ""},
		"sbatch directives":     {"#SBATCH --time=1\necho\n", scriptFile, ""},
		"script":                {"#!/bin/sh\ntrue\n", scriptFile, ""},
		"script after BOM":      {"\ufeff#!/bin/sh\n", scriptFile, ""},
		"script after a blank":  {"\n#!/usr/bin/env python3\n", scriptFile, ""},
		"shell without shebang": {"echo hi\n", "", "a script begins with #!"},
		"something else":        {"name: x\n", "", "neither a workflow"},
		"task":                  {"script: {text: true}\n", taskFile, ""},
		"workflow":              {"name: x\ntasks: []\n", workflowFile, ""},
		"wrapped airflow":       {`{"airflowDag": {"dag": {}}}`, workflowFile, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := readInput(strings.NewReader(c.text), "-", nil)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.content, in.content)
		})
	}
}

func TestReadInputNamesOneFile(t *testing.T) {
	t.Parallel()
	_, err := readInput(nil, "", nil)
	require.ErrorContains(t, err, "name one file")
	_, err = readInput(nil, "a", []string{"b"})
	require.ErrorContains(t, err, "name one file")
	_, err = readInput(nil, "", []string{"a", "b"})
	require.ErrorContains(t, err, "name one file")
	_, err = readInput(strings.NewReader(strings.Repeat(" ", maxMessage+1)), "-", nil)
	require.ErrorContains(t, err, "67108864 bytes")
}

func TestExamplesAreRecognised(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]content{
		"job.sbatch": scriptFile, "ml-pipeline.yaml": workflowFile, "sweep.yaml": workflowFile, "task.yaml": taskFile, "trigger-rules.yaml": workflowFile,
	} {
		text, err := examples.Files.ReadFile(name)
		require.NoError(t, err)
		in := &input{name: name, text: text}
		require.NoError(t, in.detect())
		require.Equal(t, want, in.content, name)
		switch want {
		case workflowFile:
			_, err = in.workflow()
		default:
			_, err = in.taskRequest(t.Output())
		}
		require.NoError(t, err, name)
	}
}
