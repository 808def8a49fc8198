package kfp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dagbridge/dagbridge/translators"
)

// Step is what a job of a pipeline has to do, for the launcher on the node: an executor to run, an artifact to import, or a condition to
// judge. Values that other steps leave are looked up when it starts; everything else stands in it.
type Step struct {
	// Task is the path of the task through the pipeline's DAGs.
	Task string `json:"task"`
	// Name is what the pipeline's author sees: the task's display name.
	Name string `json:"name"`
	// Run says whose the run is: deployment, orchestrator and workflow.
	Run []string `json:"run"`
	// Root is where the pipeline wants its artifacts; empty: where the cluster keeps them.
	Root string `json:"root,omitempty"`
	// Condition in CEL over the inputs; false: the step, and what is in it, is skipped.
	Condition string `json:"condition,omitempty"`
	// Importer in the place of a program.
	Importer *Importer `json:"importer,omitempty"`
	// Image names what the program runs in.
	Image   string   `json:"image,omitempty"`
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	// Env that holds placeholders; the rest is the task's.
	Env map[string]string `json:"env,omitempty"`
	// Parameters and Artifacts are the inputs, by name.
	Parameters map[string]*Parameter     `json:"parameters,omitempty"`
	Artifacts  map[string]*InputArtifact `json:"artifacts,omitempty"`
	Outputs    Outputs                   `json:"outputs,omitzero"`
	// Items of the loop whose instances are one array; the instance takes the one at its index.
	Items []json.RawMessage `json:"items,omitempty"`
	// Instances is the task that has listed the instances of a loop whose items are known only when the pipeline runs: this one is
	// the one at its place in the list.
	Instances string `json:"instances,omitempty"`
	// Listing makes such a list, in the place of a program; of the instances of Instances, if there are any.
	Listing *Listing `json:"listing,omitempty"`
}

// Listing is how the instances of a loop are found: one for each item, or, of those there are, the ones for which the step's
// condition holds.
type Listing struct {
	Items *Value `json:"items,omitempty"`
	// Artifacts: the items are artifacts.
	Artifacts bool `json:"artifacts,omitempty"`
}

// Instance is one of a list.
type Instance struct {
	// Index has a number for each loop around it.
	Index []int32 `json:"index"`
	// Item of the innermost loop, a parameter or an artifact.
	Item     json.RawMessage `json:"item,omitempty"`
	Artifact *Artifact       `json:"artifact,omitempty"`
}

// InstancesOutput is the output by which a listing tells the gateway how many instances there are.
const InstancesOutput = "instances"

// Parameter is an input that is a value.
type Parameter struct {
	// Type as the pipeline declares it: STRING, NUMBER_INTEGER, NUMBER_DOUBLE, BOOLEAN, LIST, STRUCT, TASK_FINAL_STATUS; empty: the
	// component does not declare the input, only placeholders name it.
	Type  string `json:"type,omitempty"`
	Value *Value `json:"value,omitempty"`
	// Default where the value is not there.
	Default json.RawMessage `json:"default,omitempty"`
	// Optional: it may be without any value.
	Optional bool `json:"optional,omitempty"`
}

// InputArtifact is an input that is a file or a folder, or several.
type InputArtifact struct {
	Value    *Value `json:"value,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Outputs are what a program leaves.
type Outputs struct {
	// Parameters are types by name.
	Parameters map[string]string       `json:"parameters,omitempty"`
	Artifacts  map[string]ArtifactType `json:"artifacts,omitempty"`
}

// ArtifactType is the schema of an artifact, as KFP names it ("system.Dataset").
type ArtifactType struct {
	SchemaTitle    string `json:"schemaTitle,omitempty"`
	SchemaVersion  string `json:"schemaVersion,omitempty"`
	InstanceSchema string `json:"instanceSchema,omitempty"`
}

// Importer makes an artifact of what is there already.
type Importer struct {
	// URI, with placeholders of the step's inputs.
	URI      string          `json:"uri"`
	Type     ArtifactType    `json:"type"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Value is where an input comes from; one of its fields is set.
type Value struct {
	// Constant is the value's JSON.
	Constant json.RawMessage `json:"constant,omitempty"`
	// Output of another step.
	Output *Output `json:"output,omitempty"`
	// OneOf is the first of these that there is: of branches, the one that was taken.
	OneOf []*Value `json:"oneOf,omitempty"`
	// List of all of these; what is a list itself in it is written out.
	List []*Value `json:"list,omitempty"`
	// Item of the loop.
	Item bool `json:"item,omitempty"`
	// ItemOf is the item of the loop whose instances this task has listed.
	ItemOf string `json:"itemOf,omitempty"`
	// Each puts together what the instances of a loop have.
	Each *Each `json:"each,omitempty"`
	// Select takes a part of Of, by CEL.
	Select string `json:"select,omitempty"`
	Of     *Value `json:"of,omitempty"`
	// Text with placeholders of values that are known only when the step starts, which are in With.
	Text string            `json:"text,omitempty"`
	With map[string]*Value `json:"with,omitempty"`
	// Status of a task that has ended.
	Status *Status `json:"status,omitempty"`
}

// Output is one output of one step, of an instance of it, or of all.
type Output struct {
	Task  string  `json:"task"`
	Index []int32 `json:"index,omitempty"`
	// Depth: of the instance whose index is so many numbers of that of the step that asks.
	Depth int `json:"depth,omitempty"`
	// All so many instances, as a list.
	All int    `json:"all,omitempty"`
	Key string `json:"key"`
	// Artifact: it is one, not a parameter.
	Artifact bool `json:"artifact,omitempty"`
}

// Each is a value of every instance in a list whose index begins with Depth numbers of that of the step that asks.
type Each struct {
	Instances string `json:"instances"`
	Depth     int    `json:"depth,omitempty"`
	Value     *Value `json:"value"`
}

// Status asks how a task has ended: it has succeeded when each of its steps has, or was skipped by one of the conditions
// that it depends on.
type Status struct {
	Task  string `json:"task"`
	Steps []Fate `json:"steps"`
}

// Fate is a step, or an instance of it, whose end counts.
type Fate struct {
	Task  string  `json:"task"`
	Index []int32 `json:"index,omitempty"`
	All   int     `json:"all,omitempty"`
	// Instances is the task that has listed all of them.
	Instances string `json:"instances,omitempty"`
	// Conditions whose being false skips it.
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is a step that judges one.
type Condition struct {
	Task  string  `json:"task"`
	Index []int32 `json:"index,omitempty"`
}

// ExitSkipped is the exit code of the launcher when a condition does not hold.
const ExitSkipped = 99

// script is the program of a step's job: the launcher, which takes the step on its stdin. No line of the JSON can end the here-document: each begins with a blank or a bracket.
func (s *Step) script() (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(s); err != nil {
		return "", err
	}
	return fmt.Sprintf("#!/bin/sh\nexec \"$%s\" kfp-step <<'STEP'\n%sSTEP\n", translators.LauncherVariable, text.String()), nil
}

// ParseStep reads what script has written: all of it, or what it hands to the launcher.
func ParseStep(text []byte) (*Step, error) {
	if _, step, ok := bytes.Cut(text, []byte("<<'STEP'\n")); ok && bytes.HasPrefix(text, []byte("#!")) {
		text = bytes.TrimSuffix(step, []byte("STEP\n"))
	}
	s := &Step{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("this is no step of a pipeline's: %w", err)
	}
	return s, nil
}
