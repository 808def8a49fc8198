package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// maxMessage is how many bytes a gateway takes in one request, and answers with.
const maxMessage = 64 << 20

// content is what a file holds, told by what is in it and never by its name.
type content string

const (
	taskFile     content = "a task"                   // the message Task
	requestFile  content = "a request for a task"     // the body of POST /v1/jobs
	workflowFile content = "a workflow"               // the body of POST /v1/runs
	airflowFile  content = "a serialized Airflow DAG" // as Airflow keeps it in its database
	kfpFile      content = "a compiled KFP pipeline"  // the IR that kfp writes
	scriptFile   content = "a script"                 // with #SBATCH lines, perhaps
)

// input is a file that was named on the command line.
type input struct {
	name    string
	text    []byte
	content content
}

// readInput reads the file that is either the value of -f or the only argument; "-" is the standard input.
func readInput(stdin io.Reader, flag string, args []string) (*input, error) {
	switch {
	case flag != "" && len(args) > 0:
		return nil, fmt.Errorf("-f %s and the argument %s: name one file", flag, args[0])
	case flag == "" && len(args) != 1:
		return nil, fmt.Errorf("name one file, with -f or as the argument")
	case flag == "":
		flag = args[0]
	}
	in := &input{name: flag}
	var source io.Reader = stdin
	if flag == "-" {
		in.name = "the standard input"
	} else {
		file, err := os.Open(flag)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source = file
	}
	text, err := io.ReadAll(io.LimitReader(source, maxMessage+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxMessage {
		return nil, fmt.Errorf("%s has more than %d bytes, which no gateway takes", in.name, maxMessage)
	}
	in.text = text
	return in, in.detect()
}

// detect tells the content by the first bytes, else by the keys of the mapping.
func (in *input) detect() error {
	start := bytes.TrimLeft(bytes.TrimPrefix(in.text, []byte("\ufeff")), " \t\r\n")
	if len(start) == 0 {
		return fmt.Errorf("%s is empty", in.name)
	}
	if bytes.HasPrefix(start, []byte("#!")) || bytes.HasPrefix(start, []byte("#SBATCH")) {
		in.content = scriptFile
		return nil
	}
	keys, err := in.keys()
	if err != nil {
		return err
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(keys, name) })
	}
	switch {
	case has("pipelineSpec", "pipeline_spec", "pipelineInfo", "deploymentSpec"):
		in.content = kfpFile
	case has("apiVersion") && has("spec") && (bytes.Contains(in.text, []byte("pipelines.kubeflow.org/")) || bytes.Contains(in.text, []byte("argoproj.io/"))), has("implementation"):
		in.content = kfpFile
	case has("__version", "dag"):
		in.content = airflowFile
	case has("tasks", "airflowDag", "kfpPipeline"):
		in.content = workflowFile
	case has("task"):
		in.content = requestFile
	case has("key", "command", "script", "container"):
		in.content = taskFile
	default:
		return fmt.Errorf("%s is neither a workflow (it has no tasks) nor a task (it has no key, command or script)", in.name)
	}
	return nil
}

// keys are the names in the outermost mapping, which a serialized Airflow DAG, a pipeline and native files all are.
func (in *input) keys() ([]string, error) {
	if in.isJSON() {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(in.text, &members); err != nil {
			return nil, fmt.Errorf("%s holds JSON, but no object", in.name)
		}
		keys := make([]string, 0, len(members))
		for key := range members {
			keys = append(keys, key)
		}
		return keys, nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(in.text, &document); err != nil {
		return nil, fmt.Errorf("%s: %s", in.name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s holds no mapping: neither a workflow nor a task; a script begins with #!", in.name)
	}
	var keys []string
	for i := 0; i < len(document.Content[0].Content); i += 2 {
		keys = append(keys, document.Content[0].Content[i].Value)
	}
	return keys, nil
}

func (in *input) isJSON() bool { return json.Valid(in.text) }

// decode reads the file into a message.
func (in *input) decode(m proto.Message) error {
	unmarshal := jsoncodec.UnmarshalYAML
	if in.isJSON() { // YAML takes most JSON, not all: tabs
		unmarshal = jsoncodec.Unmarshal
	}
	if err := unmarshal(in.text, m); err != nil {
		return fmt.Errorf("%s: %w", in.name, err)
	}
	return nil
}
