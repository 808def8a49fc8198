package kfp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Artifact is a file or a folder with what is known of it, as KFP's executors see it (RuntimeArtifact).
type Artifact struct {
	Name     string          `json:"name,omitempty"`
	Type     ArtifactType    `json:"type"`
	URI      string          `json:"uri"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// CustomPath is where the executor has put it, if not at the URI.
	CustomPath string `json:"custom_path,omitempty"`
}

// Execution is a step whose inputs are there.
type Execution struct {
	Step       *Step
	Parameters map[string]json.RawMessage
	Artifacts  map[string][]Artifact
	// OutputFiles are the files for the output parameters, OutputArtifacts the places for artifacts, OutputFile the file for what
	// the executor says of both.
	OutputFiles     map[string]string
	OutputArtifacts map[string]Artifact
	OutputFile      string
	// Job, Run, Root, Created and Workspace are what the placeholders of these names become.
	Job, Run, Root, Created, Workspace string
}

type artifactList struct {
	Artifacts []Artifact `json:"artifacts"`
}

// Input is the executor's input (ExecutorInput), as JSON.
func (e *Execution) Input() (json.RawMessage, error) {
	type outputParameter struct {
		OutputFile string `json:"outputFile"`
	}
	var input struct {
		Inputs struct {
			ParameterValues map[string]json.RawMessage `json:"parameterValues,omitempty"`
			Artifacts       map[string]artifactList    `json:"artifacts,omitempty"`
		} `json:"inputs"`
		Outputs struct {
			Parameters map[string]outputParameter `json:"parameters,omitempty"`
			Artifacts  map[string]artifactList    `json:"artifacts,omitempty"`
			OutputFile string                     `json:"outputFile"`
		} `json:"outputs"`
	}
	input.Inputs.ParameterValues = e.Parameters
	input.Inputs.Artifacts = map[string]artifactList{}
	for name, list := range e.Artifacts {
		input.Inputs.Artifacts[name] = artifactList{list}
	}
	input.Outputs.Parameters = map[string]outputParameter{}
	for name, file := range e.OutputFiles {
		input.Outputs.Parameters[name] = outputParameter{file}
	}
	input.Outputs.Artifacts = map[string]artifactList{}
	for name, artifact := range e.OutputArtifacts {
		input.Outputs.Artifacts[name] = artifactList{[]Artifact{artifact}}
	}
	input.Outputs.OutputFile = e.OutputFile
	return JSON(input)
}

// Argv is the program with its arguments, placeholders and structures written out.
func (e *Execution) Argv() ([]string, error) {
	var argv []string
	for _, argument := range append(append([]string{}, e.Step.Command...), e.Step.Args...) {
		words, err := e.words(argument)
		if err != nil {
			return nil, err
		}
		argv = append(argv, words...)
	}
	if len(argv) == 0 {
		return nil, errors.New("the step has no program")
	}
	return argv, nil
}

// Text is a text with its placeholders replaced.
func (e *Execution) Text(text string) (string, error) { return replace(text, e.value) }

// words are what an argument comes to: itself, or what its structure says.
func (e *Execution) words(argument string) ([]string, error) {
	node, ok := parseStructure(argument)
	if !ok {
		word, err := e.Text(argument)
		return []string{word}, err
	}
	return e.structure(node)
}

func (e *Execution) structure(value any) ([]string, error) {
	switch value := value.(type) {
	case nil:
		return nil, nil
	case string:
		return e.words(value)
	case []any:
		var words []string
		for _, each := range value {
			some, err := e.structure(each)
			if err != nil {
				return nil, err
			}
			words = append(words, some...)
		}
		return words, nil
	case map[string]any:
		if parts, ok := value["Concat"]; ok {
			words, err := e.structure(parts)
			return []string{strings.Join(words, "")}, err
		}
		if choice, ok := value["IfPresent"].(map[string]any); ok {
			name, _ := choice["InputName"].(string)
			_, parameter := e.Parameters[name]
			if parameter || len(e.Artifacts[name]) > 0 {
				return e.structure(choice["Then"])
			}
			return e.structure(choice["Else"])
		}
	}
	text, _ := json.Marshal(value) // it came from JSON
	return nil, fmt.Errorf("an argument holds %s, which is neither IfPresent nor Concat", brief(string(text)))
}

// value is what a placeholder becomes.
func (e *Execution) value(p placeholder) (string, error) {
	switch p.kind {
	case "":
		input, err := e.Input()
		return string(input), err
	case "inputs.parameters":
		return asText(e.Parameters[p.name]), nil
	case "outputs.parameters.output_file":
		return e.OutputFiles[p.name], nil
	case "outputs.output_file":
		return e.OutputFile, nil
	case "pipeline_job_name", "pipeline_job_uuid", "pipeline_job_resource_name":
		return e.Run, nil
	case "pipeline_job_create_time_utc", "pipeline_job_schedule_time_utc":
		return e.Created, nil
	case "pipeline_task_name":
		return e.Step.Name, nil
	case "pipeline_task_uuid":
		return e.Job, nil
	case "pipeline_root":
		return e.Root, nil
	case "workspace_path":
		return e.Workspace, nil
	}
	if p.kind == "inputs.artifacts" { // as it is in the input
		text, err := json.Marshal(artifactList{e.Artifacts[p.name]})
		return string(text), err
	}
	artifact, there := e.OutputArtifacts[p.name]
	if strings.HasPrefix(p.kind, "inputs.") {
		list := e.Artifacts[p.name]
		if there = len(list) > 0; there {
			artifact = list[0]
		}
	}
	if !there {
		return "", fmt.Errorf("the artifact %s is not there", brief(p.name))
	}
	switch p.kind[strings.LastIndexByte(p.kind, '.')+1:] {
	case "uri":
		return artifact.URI, nil
	case "path":
		return cmp.Or(artifact.CustomPath, LocalPath(artifact.URI)), nil
	case "name":
		return artifact.Name, nil
	}
	return metadata(artifact, p.member)
}

func metadata(artifact Artifact, member string) (string, error) {
	if member == "" {
		return cmp.Or(string(artifact.Metadata), "{}"), nil
	}
	var members map[string]json.RawMessage
	if len(artifact.Metadata) > 0 {
		if err := json.Unmarshal(artifact.Metadata, &members); err != nil {
			return "", err
		}
	}
	return asText(members[member]), nil
}

// LocalPath is where a program finds what has a URI: where KFP's executors look for it, too.
func LocalPath(uri string) string {
	for _, scheme := range []string{"gs", "s3", "minio"} {
		if rest, ok := strings.CutPrefix(uri, scheme+"://"); ok {
			return "/" + scheme + "/" + rest
		}
	}
	if rest, ok := strings.CutPrefix(uri, "oci://"); ok {
		return "/oci/" + strings.ReplaceAll(rest, "/", "_") + "/models"
	}
	return strings.TrimPrefix(uri, "file://")
}
