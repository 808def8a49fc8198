package kfp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The intermediate representation, as far as it is read: ml_pipelines/pipeline_spec.proto in its JSON form. What it has beside
// that means nothing to a run.

type pipelineSpec struct {
	PipelineInfo struct {
		Name string `json:"name"`
	} `json:"pipelineInfo"`
	SchemaVersion       string                `json:"schemaVersion"`
	DefaultPipelineRoot string                `json:"defaultPipelineRoot"`
	Root                *component            `json:"root"`
	Components          map[string]*component `json:"components"`
	DeploymentSpec      struct {
		Executors map[string]*executor `json:"executors"`
	} `json:"deploymentSpec"`
}

// component is a DAG, or what an executor runs.
type component struct {
	ExecutorLabel     string      `json:"executorLabel"`
	DAG               *dagSpec    `json:"dag"`
	InputDefinitions  definitions `json:"inputDefinitions"`
	OutputDefinitions definitions `json:"outputDefinitions"`
}

type definitions struct {
	Parameters map[string]parameterDefinition `json:"parameters"`
	Artifacts  map[string]artifactDefinition  `json:"artifacts"`
}

type parameterDefinition struct {
	ParameterType string          `json:"parameterType"`
	DefaultValue  json.RawMessage `json:"defaultValue"`
	IsOptional    bool            `json:"isOptional"`
}

type artifactDefinition struct {
	ArtifactType   ArtifactType `json:"artifactType"`
	IsArtifactList bool         `json:"isArtifactList"`
	IsOptional     bool         `json:"isOptional"`
}

type dagSpec struct {
	Tasks   map[string]*taskSpec `json:"tasks"`
	Outputs struct {
		Parameters map[string]outputParameter `json:"parameters"`
		Artifacts  map[string]outputArtifact  `json:"artifacts"`
	} `json:"outputs"`
}

type outputParameter struct {
	ValueFromParameter *subtaskParameter `json:"valueFromParameter"`
	ValueFromOneof     *struct {
		ParameterSelectors []subtaskParameter `json:"parameterSelectors"`
	} `json:"valueFromOneof"`
}

type subtaskParameter struct {
	ProducerSubtask    string `json:"producerSubtask"`
	OutputParameterKey string `json:"outputParameterKey"`
}

type outputArtifact struct {
	ArtifactSelectors []struct {
		ProducerSubtask   string `json:"producerSubtask"`
		OutputArtifactKey string `json:"outputArtifactKey"`
	} `json:"artifactSelectors"`
}

type taskSpec struct {
	TaskInfo struct {
		Name string `json:"name"`
	} `json:"taskInfo"`
	ComponentRef struct {
		Name string `json:"name"`
	} `json:"componentRef"`
	DependentTasks []string `json:"dependentTasks"`
	Inputs         struct {
		Parameters map[string]inputParameter `json:"parameters"`
		Artifacts  map[string]inputArtifact  `json:"artifacts"`
	} `json:"inputs"`
	TriggerPolicy struct {
		Condition string `json:"condition"`
		Strategy  string `json:"strategy"`
	} `json:"triggerPolicy"`
	RetryPolicy *struct {
		MaxRetryCount      int     `json:"maxRetryCount"`
		BackoffDuration    string  `json:"backoffDuration"`
		BackoffFactor      float64 `json:"backoffFactor"`
		BackoffMaxDuration string  `json:"backoffMaxDuration"`
	} `json:"retryPolicy"`
	ParameterIterator *struct {
		ItemInput string `json:"itemInput"`
		Items     struct {
			Raw            string `json:"raw"`
			InputParameter string `json:"inputParameter"`
		} `json:"items"`
	} `json:"parameterIterator"`
	ArtifactIterator *struct {
		ItemInput string `json:"itemInput"`
		Items     struct {
			InputArtifact string `json:"inputArtifact"`
		} `json:"items"`
	} `json:"artifactIterator"`
	IteratorPolicy struct {
		ParallelismLimit int `json:"parallelismLimit"`
	} `json:"iteratorPolicy"`
}

// whatever says that a task runs whatever became of those before it.
func (t *taskSpec) whatever() bool {
	return t.TriggerPolicy.Strategy == "ALL_UPSTREAM_TASKS_COMPLETED"
}

type inputParameter struct {
	TaskOutputParameter *struct {
		ProducerTask       string `json:"producerTask"`
		OutputParameterKey string `json:"outputParameterKey"`
	} `json:"taskOutputParameter"`
	RuntimeValue *struct {
		Constant         json.RawMessage `json:"constant"`
		RuntimeParameter string          `json:"runtimeParameter"`
	} `json:"runtimeValue"`
	ComponentInputParameter string `json:"componentInputParameter"`
	TaskFinalStatus         *struct {
		ProducerTask string `json:"producerTask"`
	} `json:"taskFinalStatus"`
	ParameterExpressionSelector string `json:"parameterExpressionSelector"`
}

type inputArtifact struct {
	TaskOutputArtifact *struct {
		ProducerTask      string `json:"producerTask"`
		OutputArtifactKey string `json:"outputArtifactKey"`
	} `json:"taskOutputArtifact"`
	ComponentInputArtifact string `json:"componentInputArtifact"`
}

type executor struct {
	Container *container    `json:"container"`
	Importer  *importerSpec `json:"importer"`
}

type container struct {
	Image   string   `json:"image"`
	Command []string `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	Resources resourcesSpec `json:"resources"`
}

// resourcesSpec has each quantity twice: as a text, which may hold placeholders, and in older files as a number (of memory in
// units of 10^9 bytes).
type resourcesSpec struct {
	ResourceCPULimit      string  `json:"resourceCpuLimit"`
	ResourceCPURequest    string  `json:"resourceCpuRequest"`
	ResourceMemoryLimit   string  `json:"resourceMemoryLimit"`
	ResourceMemoryRequest string  `json:"resourceMemoryRequest"`
	CPULimit              float64 `json:"cpuLimit"`
	CPURequest            float64 `json:"cpuRequest"`
	MemoryLimit           float64 `json:"memoryLimit"`
	MemoryRequest         float64 `json:"memoryRequest"`
	Accelerator           *struct {
		Type          string      `json:"type"`
		Count         json.Number `json:"count"`
		ResourceType  string      `json:"resourceType"`
		ResourceCount string      `json:"resourceCount"`
	} `json:"accelerator"`
}

type importerSpec struct {
	ArtifactURI struct {
		Constant         string `json:"constant"`
		RuntimeParameter string `json:"runtimeParameter"`
	} `json:"artifactUri"`
	TypeSchema ArtifactType    `json:"typeSchema"`
	Metadata   json.RawMessage `json:"metadata"`
}

// platformSpec says what a pipeline asks of Kubernetes, by the label of the executor.
type platformSpec struct {
	Platforms struct {
		Kubernetes struct {
			DeploymentSpec struct {
				Executors map[string]map[string]json.RawMessage `json:"executors"`
			} `json:"deploymentSpec"`
			PipelineConfig map[string]json.RawMessage `json:"pipelineConfig"`
		} `json:"kubernetes"`
	} `json:"platforms"`
}

// pipeline is all that a file says.
type pipeline struct {
	spec     *pipelineSpec
	platform platformSpec
	// parameters are those that a PipelineJob brings along.
	parameters map[string]json.RawMessage
}

// outline is what tells the forms of a pipeline apart.
type outline struct {
	APIVersion     string          `json:"apiVersion"`
	Kind           string          `json:"kind"`
	Spec           json.RawMessage `json:"spec"`
	PipelineSpec   json.RawMessage `json:"pipelineSpec"`
	PlatformSpec   json.RawMessage `json:"platformSpec"`
	Platforms      json.RawMessage `json:"platforms"`
	Implementation json.RawMessage `json:"implementation"`
	RuntimeConfig  struct {
		ParameterValues map[string]json.RawMessage `json:"parameterValues"`
	} `json:"runtimeConfig"`
}

// read takes any of the forms in which KFP writes a pipeline down.
func read(text string) (*pipeline, error) {
	all, err := documents(text)
	if err != nil {
		return nil, err
	}
	p := &pipeline{}
	for _, document := range all {
		if err := p.document(document); err != nil {
			return nil, err
		}
	}
	switch {
	case p.spec == nil:
		return nil, errors.New("says what a pipeline asks of its platform, and the pipeline is missing")
	case p.spec.Root == nil:
		return nil, errors.New("root: is missing; the file may be cut off")
	case !strings.HasPrefix(p.spec.SchemaVersion, "2.1"):
		return nil, fmt.Errorf("schemaVersion: is %s, and 2.1.0 is known: compile the pipeline with KFP's SDK 2", brief(p.spec.SchemaVersion))
	}
	return p, nil
}

func (p *pipeline) document(text json.RawMessage) error {
	var o outline
	if err := decode(text, &o); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(o.APIVersion, "argoproj.io/") || strings.HasPrefix(o.APIVersion, "tekton.dev/"):
		return fmt.Errorf("is what version 1 of KFP's SDK compiles (%s %s); compile the pipeline with version 2 (pip install -U kfp), "+
			"whose file has pipelineSpec's form", o.APIVersion, o.Kind)
	case o.Implementation != nil:
		return errors.New("is a component of KFP's version 1; load it (kfp.components.load_component_from_file), and compile it with version 2 of the SDK")
	case o.Kind == "PipelineVersion" || o.Kind == "Pipeline":
		if err := decode(o.Spec, &o); err != nil {
			return err
		}
		if o.PipelineSpec == nil {
			return fmt.Errorf("spec.pipelineSpec: is missing in the %s", o.Kind)
		}
	case o.Platforms != nil:
		return decode(text, &p.platform)
	}
	if o.PipelineSpec != nil {
		p.parameters = o.RuntimeConfig.ParameterValues
		if o.PlatformSpec != nil {
			if err := decode(o.PlatformSpec, &p.platform); err != nil {
				return err
			}
		}
		text = o.PipelineSpec
	}
	if p.spec != nil {
		return errors.New("has two pipelines: a file holds one")
	}
	p.spec = &pipelineSpec{}
	return decode(text, p.spec)
}

// decode reads JSON, and says in a sentence where it is not what it should be.
func decode(text json.RawMessage, into any) error {
	err := json.Unmarshal(text, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := wrong.Field
		if field == "" {
			return fmt.Errorf("holds a %s: a compiled pipeline is a mapping", wrong.Value)
		}
		return fmt.Errorf("%s: holds a %s, which cannot be there", field, wrong.Value)
	}
	return err
}
