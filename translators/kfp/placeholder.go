package kfp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// placeholder is one of the forms {{$...}} that KFP replaces in texts.
type placeholder struct {
	// kind is its path without the name of the input or output: "inputs.parameters", "outputs.artifacts.path".
	kind string
	// name of the input or output.
	name string
	// member of an artifact's metadata.
	member string
}

var (
	anyPlaceholder = regexp.MustCompile(`\{\{\$[^{}]*\}\}`)
	named          = regexp.MustCompile(`^\{\{\$\.(inputs|outputs)\.(parameters|artifacts)\[['"]([^'"\]]*)['"]\](?:\.([a-z_]+)(?:\[['"]([^'"\]]*)['"]\])?)?\}\}$`)
	plain          = regexp.MustCompile(`^\{\{\$(?:\.([a-z_.]+))?\}\}$`)
)

// The placeholders that are not an input's or an output's, and what a step finds in their places.
var plainKinds = map[string]string{
	"":                               "all of the executor's input, as JSON",
	"outputs.output_file":            "the file for what the executor says of its outputs",
	"pipeline_job_name":              "the run",
	"pipeline_job_uuid":              "the run",
	"pipeline_job_resource_name":     "the run",
	"pipeline_job_create_time_utc":   "when the first of the run's steps started",
	"pipeline_job_schedule_time_utc": "when the first of the run's steps started",
	"pipeline_task_name":             "the task's name",
	"pipeline_task_uuid":             "the id of the step's job",
	"pipeline_root":                  "the folder of the run's artifacts",
	"workspace_path":                 "a folder that the run's steps share",
}

// namedKinds are those that are.
var namedKinds = []string{
	"inputs.parameters", "inputs.artifacts", "inputs.artifacts.uri", "inputs.artifacts.path", "inputs.artifacts.name", "inputs.artifacts.metadata",
	"outputs.artifacts.uri", "outputs.artifacts.path", "outputs.artifacts.name", "outputs.artifacts.metadata", "outputs.parameters.output_file",
}

// parsePlaceholder reads one; an error says that it is unknown.
func parsePlaceholder(text string) (placeholder, error) {
	if m := named.FindStringSubmatch(text); m != nil {
		p := placeholder{kind: strings.TrimSuffix(m[1]+"."+m[2]+"."+m[4], "."), name: m[3], member: m[5]}
		if slices.Contains(namedKinds, p.kind) && (p.member == "" || strings.HasSuffix(p.kind, ".metadata")) {
			return p, nil
		}
	}
	if m := plain.FindStringSubmatch(text); m != nil {
		if _, ok := plainKinds[m[1]]; ok {
			return placeholder{kind: m[1]}, nil
		}
	}
	return placeholder{}, fmt.Errorf("the placeholder %s is not known", brief(text))
}

// replace puts values into the places of a text's placeholders.
func replace(text string, value func(placeholder) (string, error)) (string, error) {
	if !strings.Contains(text, "{{$") {
		return text, nil
	}
	var failed error
	replaced := anyPlaceholder.ReplaceAllStringFunc(text, func(found string) string {
		p, err := parsePlaceholder(found)
		if err == nil {
			var word string
			if word, err = value(p); err == nil {
				return word
			}
		}
		if failed == nil {
			failed = err
		}
		return found
	})
	return replaced, failed
}

// checkText finds what is wrong with the placeholders of a step's text.
func (s *Step) checkText(text string) error {
	_, err := replace(text, func(p placeholder) (string, error) {
		there := true
		switch kind, _, _ := strings.Cut(strings.TrimPrefix(p.kind, "inputs."), "."); {
		case p.kind == "inputs.parameters":
			_, there = s.Parameters[p.name]
		case strings.HasPrefix(p.kind, "inputs.") && kind == "artifacts":
			_, there = s.Artifacts[p.name]
		case p.kind == "outputs.parameters.output_file":
			_, there = s.Outputs.Parameters[p.name]
		case strings.HasPrefix(p.kind, "outputs.artifacts"):
			_, there = s.Outputs.Artifacts[p.name]
		}
		if !there {
			return "", fmt.Errorf("%s is asked for, and the component has no %s of that name", brief(p.name), strings.SplitN(p.kind, ".", 3)[1])
		}
		return "", nil
	})
	return err
}
