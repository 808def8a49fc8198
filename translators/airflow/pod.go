package airflow

import (
	"fmt"
	"maps"

	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// pod translates a KubernetesPodOperator: a container that runs its own command.
func (x *translating) pod(instances []instance) {
	op := x.operator
	if len(instances) > 1 || x.from != nil {
		x.fault(op, "", "is mapped, which is not supported of pods: map a DagBridgeOperator with a container")
		return
	}
	in := instances[0]
	for _, name := range []string{"env_from", "configmaps", "pod_template_file", "pod_template_dict", "trigger_kwargs"} {
		if !isNothing(op.setting(name)) {
			x.fault(op, name, "is not supported")
		}
	}
	image, _ := x.textField(in, "image")
	if image == "" {
		x.fault(op, "image", "is missing")
	}
	container := &dagbridgev1.Container{Image: image}
	container.Command = x.words(in, "cmds")
	container.Args = x.words(in, "arguments")
	x.task.Container = container
	for _, v := range x.podEnv(in) {
		text, err := x.known(v.words[0])
		if err != nil {
			x.fault(op, "env_vars."+v.name, "%v", err)
		}
		withEnv(x.task, map[string]string{v.name: text})
	}
	x.podResources(in)
	x.podPlace(in)
	for _, name := range []string{"annotations", "config_file", "cluster_context", "hostname"} {
		if !isNothing(op.setting(name)) {
			x.notice(op, "%s means nothing here", name)
		}
	}
	x.notice(op, "a serialized DAG holds of a pod what is templated: image_pull_policy, service_account_name, tolerations, affinity, security_context and other arguments "+
		"are lost; DagBridgeOperator has them in kubernetes")
	if op.get("do_xcom_push") != false {
		x.notice(op, "its XCom, /airflow/xcom/return.json, is not read: a program leaves results in the file that DAGBRIDGE_OUTPUT names")
	}
}

// isNothing: an argument that was left out, or is empty.
func isNothing(v jinja.Value) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case jinja.List:
		return len(v) == 0
	case *jinja.Dict:
		return len(v.Keys()) == 0
	}
	return false
}

// words are a list of arguments that are all known now.
func (x *translating) words(in instance, name string) []string {
	before := len(x.faults)
	value := x.rendered(in, name)
	if len(x.faults) > before {
		return nil
	}
	texts, err := x.texts(value)
	words := make([]string, len(texts))
	for i := range texts {
		if err == nil {
			words[i], err = x.known(texts[i])
		}
	}
	if err != nil {
		x.fault(x.operator, name, "%v", err)
	}
	return words
}

// podEnv reads env_vars: names and values, or Kubernetes' list of objects.
func (x *translating) podEnv(in instance) []variable {
	list, isList := x.argument(in, "env_vars").(jinja.List)
	if !isList {
		moved := instance{args: &jinja.Dict{}}
		moved.args.Set("env", x.argument(in, "env_vars"))
		return x.env(moved)
	}
	pairs := &jinja.Dict{}
	for i, each := range list {
		entry, _ := each.(*jinja.Dict)
		name, _ := entry.Get("name")
		value, _ := entry.Get("value")
		from, _ := entry.Get("value_from")
		text, ok := name.(string)
		if !ok || from != nil {
			x.fault(x.operator, fmt.Sprintf("env_vars[%d]", i), "is no name with a value: values from elsewhere in the cluster are not supported")
			continue
		}
		if value == nil {
			value = ""
		}
		pairs.Set(text, value)
	}
	moved := instance{args: &jinja.Dict{}}
	moved.args.Set("env", pairs)
	return x.env(moved)
}

// object is a field that is an object; Airflow 2 wrote some down as Python prints them.
func (x *translating) object(in instance, name string) jinja.Value {
	value := x.argument(in, name)
	if text, isText := value.(string); isText {
		parsed, err := x.renderer.Eval(text)
		if err != nil {
			x.fault(x.operator, name, "is text that is no object: %v", err)
			return nil
		}
		value = parsed
	}
	before := len(x.faults)
	rendered, err := x.render(in, value)
	if err == nil {
		rendered, err = x.plain(rendered)
	}
	if err != nil && len(x.faults) == before {
		x.fault(x.operator, name, "%v", err)
		return nil
	}
	return withoutNone(rendered)
}

// withoutNone leaves out what is None, as Kubernetes' objects have it for everything that was not said.
func withoutNone(v jinja.Value) jinja.Value {
	switch v := v.(type) {
	case jinja.List:
		list := make(jinja.List, len(v))
		for i, each := range v {
			list[i] = withoutNone(each)
		}
		return list
	case *jinja.Dict:
		dict := &jinja.Dict{}
		for _, key := range v.Keys() {
			if member, _ := v.Get(key); member != nil {
				dict.Set(key, withoutNone(member))
			}
		}
		return dict
	}
	return v
}

const gpuResource = "nvidia.com/gpu"

func (x *translating) podResources(in instance) {
	wanted, _ := x.object(in, "container_resources").(*jinja.Dict)
	get := func(name string) string {
		for _, kind := range []string{"requests", "limits"} {
			quantities, _ := wanted.Get(kind)
			if dict, ok := quantities.(*jinja.Dict); ok {
				if value, there := dict.Get(name); there {
					text, _ := jinja.Str(value)
					return text
				}
			}
		}
		return ""
	}
	resources := &dagbridgev1.Resources{Cpu: get("cpu"), Memory: get("memory")}
	if gpus := get(gpuResource); gpus != "" {
		var count int32
		if _, err := fmt.Sscanf(gpus, "%d", &count); err != nil || count < 0 {
			x.fault(x.operator, "container_resources", "%s is %s, and should be a whole number", gpuResource, brief(gpus))
		} else if count > 0 {
			resources.Gpus = []*dagbridgev1.Gpu{{Count: &count}}
		}
	}
	if proto.Size(resources) > 0 {
		x.task.Resources = resources
	}
}

// podPlace is where in Kubernetes it runs.
func (x *translating) podPlace(in instance) {
	options := &dagbridgev1.KubernetesOptions{}
	options.Namespace, _ = x.textField(in, "namespace")
	for _, name := range []string{"node_selector", "labels"} {
		target := &options.NodeSelector
		if name == "labels" {
			target = &x.task.Labels
		}
		dict, _ := x.object(in, name).(*jinja.Dict)
		for _, key := range dict.Keys() {
			value, _ := dict.Get(key)
			text, err := jinja.Str(value)
			if err != nil {
				x.fault(x.operator, name+"."+key, "%v", err)
			}
			if *target == nil {
				*target = map[string]string{}
			}
			maps.Copy(*target, map[string]string{key: text})
		}
	}
	if volumes := x.object(in, "volumes"); !isNothing(volumes) {
		x.fault(x.operator, "volumes", "is not supported: DagBridgeOperator has kubernetes={\"volumes\": ...}")
	}
	if !isNothing(x.argument(in, "volume_mounts")) {
		x.fault(x.operator, "volume_mounts", "is not supported: DagBridgeOperator has kubernetes={\"template\": ...}")
	}
	if proto.Size(options) > 0 {
		x.task.Kubernetes = options
	}
}
