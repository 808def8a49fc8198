package kfp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func (t *taskSpec) displayName(name string) string { return cmp.Or(t.TaskInfo.Name, name) }

// step makes the task of an executor.
func (d *dag) step(name string, spec *taskSpec, c *component, in inputs, w wait) *unit {
	e := d.translator.spec.DeploymentSpec.Executors[c.ExecutorLabel]
	switch {
	case e == nil:
		d.fault(name, "its executor %s is missing; the file may be cut off", brief(c.ExecutorLabel))
		return nil
	case e.Container == nil && e.Importer == nil:
		d.fault(name, "its executor %s is neither a container nor an importer: nothing else can be run outside its own service", brief(c.ExecutorLabel))
		return nil
	}
	s := &Step{Task: d.at(name), Name: spec.displayName(name), Root: d.translator.spec.DefaultPipelineRoot}
	if d.loop != nil {
		s.Items, s.Instances = d.loop.items, d.loop.list
	}
	d.stepInputs(s, name, c, in, false)
	made := &unit{parameters: map[string]*Value{}, artifacts: map[string]*Value{}}
	s.Outputs = Outputs{Parameters: map[string]string{}, Artifacts: map[string]ArtifactType{}}
	for key, definition := range c.OutputDefinitions.Parameters {
		s.Outputs.Parameters[key] = definition.ParameterType
		made.parameters[key] = &Value{Output: &Output{Task: s.Task, Index: d.index, Depth: d.depth(), Key: key}}
		if words[definition.ParameterType] == "" {
			d.fault(name, "its output %s is of the type %s, which is not known", brief(key), brief(definition.ParameterType))
		}
	}
	for key, definition := range c.OutputDefinitions.Artifacts {
		s.Outputs.Artifacts[key] = definition.ArtifactType
		made.artifacts[key] = &Value{Output: &Output{Task: s.Task, Index: d.index, Depth: d.depth(), Key: key, Artifact: true}}
		if definition.IsArtifactList {
			d.fault(name, "its output %s is a list of artifacts, whose length only the program knows; that is not supported", brief(key))
		}
	}
	task := &dagbridgev1.Task{}
	if e.Importer != nil {
		d.importer(name, s, e.Importer)
	} else {
		d.container(name, s, e.Container, task)
		d.platforms(name, c.ExecutorLabel, task)
	}
	d.retry(name, spec, task)
	d.program(name, s, task)
	if d.loop != nil {
		task.Array = d.loop.array()
	}
	at := d.make(s.Task, d.afterList(w), task)
	made.required, made.steps = []ref{at}, []ref{at}
	return made
}

// stepInputs are what the component declares, with the values that the task gives. A condition has those that it is given.
func (d *dag) stepInputs(s *Step, name string, c *component, in inputs, given bool) {
	s.Parameters, s.Artifacts = map[string]*Parameter{}, map[string]*InputArtifact{}
	for _, key := range sorted(c.InputDefinitions.Parameters) {
		definition := c.InputDefinitions.Parameters[key]
		p := &Parameter{Type: definition.ParameterType, Value: in.parameters[key], Optional: definition.IsOptional}
		if words[p.Type] == "" {
			d.fault(name, "its input %s is of the type %s, which is not known", brief(key), brief(p.Type))
			continue
		}
		var err error
		if p.Default, err = Typed(p.Type, definition.DefaultValue); err != nil {
			d.fault(name, "the default of %s %v", brief(key), err)
		}
		switch value := p.Value; {
		case value == nil && given:
			continue
		case value == nil:
			if p.Default == nil && !p.Optional {
				d.fault(name, "its input %s has no value, and no default", brief(key))
			}
		case value.Constant != nil && !d.isShown(value):
			typed, err := AsInput(p.Type, value.Constant)
			if err != nil {
				d.fault(name, "its input %s %v", brief(key), err)
			}
			p.Value = &Value{Constant: typed}
		}
		s.Parameters[key] = p
	}
	for _, key := range sorted(in.parameters) { // for the placeholders of its settings alone
		if _, ok := c.InputDefinitions.Parameters[key]; !ok {
			s.Parameters[key] = &Parameter{Value: in.parameters[key], Optional: true}
		}
	}
	for _, key := range sorted(c.InputDefinitions.Artifacts) {
		a := &InputArtifact{Value: in.artifacts[key], Optional: c.InputDefinitions.Artifacts[key].IsOptional}
		switch {
		case a.Value == nil && given:
			continue
		case a.Value == nil && !a.Optional:
			d.fault(name, "its input %s has no artifact", brief(key))
		}
		s.Artifacts[key] = a
	}
}

// container says what the program is.
func (d *dag) container(name string, s *Step, c *container, task *dagbridgev1.Task) {
	if strings.HasPrefix(c.Image, "argostub/") {
		d.fault(name, "%s is made by KFP's own backend, and means nothing outside it: make the volume beforehand, and mount it by its name", strings.TrimPrefix(c.Image, "argostub/"))
		return
	}
	s.Image, s.Command, s.Args = c.Image, c.Command, c.Args
	image, ok := d.now(name, s, "its image", c.Image)
	if ok {
		s.Image = image
		task.Container = &dagbridgev1.Container{Image: image}
	}
	if len(s.Command)+len(s.Args) == 0 {
		d.fault(name, "has neither a command nor arguments: what its image runs by itself is not known")
	}
	for _, variable := range c.Env {
		if strings.Contains(variable.Value, "{{$") {
			s.Env = put(s.Env, variable.Name, variable.Value)
		} else {
			task.Env = put(task.Env, variable.Name, variable.Value)
		}
	}
	for _, text := range s.texts() {
		if err := s.checkText(text); err != nil {
			d.fault(name, "%v", err)
		}
	}
	d.resources(name, s, c.Resources, task)
}

func put(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// now is a text whose placeholders must be known before the step is submitted.
func (d *dag) now(name string, s *Step, what, text string) (string, bool) {
	shown := false
	value, err := replace(text, func(p placeholder) (string, error) {
		parameter := s.Parameters[p.name]
		switch {
		case p.kind != "inputs.parameters" || parameter == nil:
			return "", fmt.Errorf("%s cannot stand there", brief(cmp.Or(p.name, p.kind)))
		case parameter.Value == nil:
			return asText(parameter.Default), nil
		case parameter.Value.Constant == nil:
			return "", fmt.Errorf("%s is known only when the task runs, and must be before it is submitted", describe(parameter.Value))
		}
		shown = shown || d.isShown(parameter.Value)
		return asText(parameter.Value.Constant), nil
	})
	if err != nil {
		d.fault(name, "%s: %v", what, err)
		return "", false
	}
	if shown {
		d.notice(d.at(name), "%s is left out, since the parameter %s has no value", what, value)
		return "", false
	}
	return value, true
}

// importer says which artifact is imported.
func (d *dag) importer(name string, s *Step, i *importerSpec) {
	uri := i.ArtifactURI.Constant
	if from := i.ArtifactURI.RuntimeParameter; from != "" {
		uri = "{{$.inputs.parameters['" + from + "']}}"
	}
	s.Importer = &Importer{URI: uri, Type: i.TypeSchema, Metadata: i.Metadata}
	for _, text := range []string{uri, string(i.Metadata)} {
		if err := s.checkText(text); err != nil {
			d.fault(name, "%v", err)
		}
	}
}

func (d *dag) retry(name string, spec *taskSpec, task *dagbridgev1.Task) {
	policy := spec.RetryPolicy
	if policy == nil || policy.MaxRetryCount == 0 {
		return
	}
	task.Retry = &dagbridgev1.Retry{MaxRetries: int32(min(max(policy.MaxRetryCount, 0), 1<<30))}
	for _, each := range []struct {
		text string
		into **durationpb.Duration
	}{{policy.BackoffDuration, &task.Retry.Backoff}, {policy.BackoffMaxDuration, &task.Retry.MaxBackoff}} {
		if each.text == "" {
			continue
		}
		duration, err := time.ParseDuration(each.text)
		if err != nil {
			d.fault(name, "its retry policy has %s, which is no duration (30s)", brief(each.text))
			continue
		}
		*each.into = durationpb.New(duration)
	}
	if policy.BackoffFactor != 0 && policy.BackoffFactor != 2 {
		d.notice(d.at(name), "the pause before a retry doubles each time; the pipeline's factor is %v", policy.BackoffFactor)
	}
}

// program makes the launcher the task's program.
func (d *dag) program(name string, s *Step, task *dagbridgev1.Task) {
	run := d.workflow.GetRun()
	s.Run = []string{run.GetDeployment(), run.GetOrchestrator(), run.GetWorkflow()}
	text, err := s.script()
	if err != nil {
		d.fault(name, "%v", err)
		return
	}
	task.Script = &dagbridgev1.Script{Text: text}
}

// texts are all in which placeholders are replaced, those within structures included.
func (s *Step) texts() (all []string) {
	for _, argument := range append(append([]string{}, s.Command...), s.Args...) {
		all = append(all, leaves(argument)...)
	}
	for _, name := range sorted(s.Env) {
		all = append(all, s.Env[name])
	}
	return all
}

// leaves are the texts in an argument, which may be a structure.
func leaves(argument string) []string {
	node, ok := parseStructure(argument)
	if !ok {
		return []string{argument}
	}
	var all []string
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			all = append(all, value)
		case []any:
			for _, each := range value {
				walk(each)
			}
		case map[string]any:
			for _, key := range sorted(value) {
				if key != "InputName" {
					walk(value[key])
				}
			}
		}
	}
	walk(node)
	return all
}

// parseStructure reads an argument that is one of the structures IfPresent and Concat.
func parseStructure(argument string) (map[string]any, bool) {
	trimmed := strings.TrimSpace(argument)
	if !strings.HasPrefix(trimmed, `{"IfPresent"`) && !strings.HasPrefix(trimmed, `{"Concat"`) {
		return nil, false
	}
	var node map[string]any
	if json.Unmarshal([]byte(trimmed), &node) != nil || len(node) != 1 {
		return nil, false
	}
	return node, true
}
