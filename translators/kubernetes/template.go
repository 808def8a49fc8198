package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	sigsjson "sigs.k8s.io/json"
)

// kind is what is known of a kind of workload.
type kind struct {
	// pods are the paths of its pod templates.
	pods []string
	// success and failure are conditions, any of which will do.
	success, failure []string
	// suspend is the path of the switch that keeps it from starting; "": it has none that is known.
	suspend string
	// once are paths of counts of retries of the kind's own: none, unless the template says otherwise. Attempts are the engine's.
	once []string
	// never: its pods have to say that they are not restarted.
	never bool
}

// ends are the conditions of a kind, by the types that it has for them.
func ends(success, failure string) kind {
	condition := func(name string) []string { return []string{"status.conditions[type=" + name + "].status=True"} }
	return kind{success: condition(success), failure: condition(failure)}
}

// kinds that need not be described, by API group and kind.
var kinds = map[string]kind{
	"batch/Job": ends("Complete", "Failed").with(kind{
		pods: []string{"spec.template"}, suspend: "spec.suspend", once: []string{"spec.backoffLimit"}, never: true,
	}),
	"jobset.x-k8s.io/JobSet": ends("Completed", "Failed").with(kind{
		pods: []string{"spec.replicatedJobs[*].template.spec.template"}, suspend: "spec.suspend",
		once: []string{"spec.replicatedJobs[*].template.spec.backoffLimit"}, never: true,
	}),
	"kubeflow.org/JAXJob":     trainingJob("spec.jaxReplicaSpecs.*.template"),
	"kubeflow.org/MPIJob":     trainingJob("spec.mpiReplicaSpecs.Launcher.template"),
	"kubeflow.org/PyTorchJob": trainingJob("spec.pytorchReplicaSpecs.*.template"),
	"kubeflow.org/TFJob":      trainingJob("spec.tfReplicaSpecs.*.template"),
	"kubeflow.org/XGBoostJob": trainingJob("spec.xgbReplicaSpecs.*.template"),
	// Its pods are described elsewhere, by its runtime; the caller has to say where in it a pod template is.
	"trainer.kubeflow.org/TrainJob": ends("Complete", "Failed").with(kind{suspend: "spec.suspend"}),
	// The pod that hands the program to the cluster and waits for it.
	"ray.io/RayJob": {
		pods: []string{"spec.submitterPodTemplate"}, suspend: "spec.suspend", once: []string{"spec.backoffLimit"}, never: true,
		success: []string{"status.jobStatus=SUCCEEDED"}, failure: []string{"status.jobStatus=FAILED", "status.jobStatus=STOPPED", "status.jobDeploymentStatus=Failed"},
	},
}

func trainingJob(pods string) kind {
	return ends("Succeeded", "Failed").with(kind{pods: []string{pods}, suspend: "spec.runPolicy.suspend", once: []string{"spec.runPolicy.backoffLimit"}})
}

// with is a kind with conditions of another.
func (k kind) with(other kind) kind {
	other.success, other.failure = k.success, k.failure
	return other
}

// template reads the cluster's pod template and the task's, and is the one laid over the other, as JSON. A template that is of
// a kind of its own becomes the manifest.
func (t *translation) template() []byte {
	below := []byte("{}")
	if t.site.PodTemplate != "" {
		below = t.podOnly("the cluster's podTemplate", []byte(t.site.PodTemplate))
	}
	const field = "kubernetes.template"
	o := t.options
	isPod := true
	if o.GetTemplate() != nil {
		var read any
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts([]byte(o.GetTemplate().GetText()), &read); err != nil {
			t.fault(field, "is no JSON: %v", err)
			return below
		}
		manifest, ok := read.(map[string]any)
		if !ok {
			t.fault(field, "is not an object: write a pod's metadata and spec, or a manifest with apiVersion and kind")
			return below
		}
		if name, _ := manifest["kind"].(string); name == "" || name == "Pod" {
			below = t.lay(field, below, t.podOnly(field, []byte(o.GetTemplate().GetText())))
		} else {
			isPod = false
			t.ofKind(manifest, name)
		}
	}
	if isPod && len(o.GetPodTemplatePaths())+len(o.GetSuccessConditions())+len(o.GetFailureConditions()) > 0 {
		t.fault(field, "podTemplatePaths, successConditions and failureConditions are about a template of another kind, and there is none")
	}
	return below
}

// podOnly reads a pod strictly and keeps what a pod template has, as it was written, so that null can remove.
func (t *translation) podOnly(field string, raw []byte) []byte {
	var pod corev1.Pod
	before := len(t.faults)
	t.decodeText(field, string(raw), &pod)
	var written struct {
		Metadata struct {
			Labels      json.RawMessage `json:"labels,omitempty"`
			Annotations json.RawMessage `json:"annotations,omitempty"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec,omitempty"`
	}
	if len(t.faults) > before || json.Unmarshal(raw, &written) != nil {
		return []byte("{}")
	}
	return text(written)
}

// ofKind takes a manifest as the task's template, and what is known or said of its kind.
func (t *translation) ofKind(manifest map[string]any, name string) {
	const field = "kubernetes.template"
	if apiVersion, _ := manifest["apiVersion"].(string); apiVersion == "" {
		t.fault(field+".apiVersion", "is missing: a %s has one", name)
	}
	t.manifest = manifest
	t.kind = kinds[groupKind(manifest)]
	o := t.options
	for _, said := range []struct {
		field string
		own   []string
		known *[]string
	}{
		{"podTemplatePaths", o.GetPodTemplatePaths(), &t.kind.pods},
		{"successConditions", o.GetSuccessConditions(), &t.kind.success},
		{"failureConditions", o.GetFailureConditions(), &t.kind.failure},
	} {
		if len(said.own) > 0 {
			*said.known = said.own
		}
		if len(*said.known) == 0 {
			t.fault("kubernetes."+said.field, "is needed with a template of kind %s, of which nothing is known here; known are %s",
				name, oneOf(slices.Sorted(maps.Keys(kinds))))
		}
	}
	for i, path := range o.GetPodTemplatePaths() {
		if _, err := parsePath(path); err != nil {
			t.fault(fmt.Sprintf("kubernetes.podTemplatePaths[%d]", i), "%q %v", path, err)
		}
	}
	for field, conditions := range map[string][]string{"success": o.GetSuccessConditions(), "failure": o.GetFailureConditions()} {
		for i, c := range conditions {
			if _, err := parseCondition(c); err != nil {
				t.fault(fmt.Sprintf("kubernetes.%sConditions[%d]", field, i), "%q %v", c, err)
			}
		}
	}
	if t.isArray() {
		t.fault("array", "a template of kind %s runs no array: leave one of the two out", name)
	}
}

// mergedManifest is the task's template with the task in each of its pod templates.
func (t *translation) mergedManifest(below []byte) map[string]any {
	const field = "kubernetes.template"
	manifest := t.manifest
	for _, path := range t.kind.pods {
		steps, err := parsePath(path)
		if err != nil {
			continue // told before
		}
		places := walk(manifest, steps)
		if len(places) == 0 {
			t.fault(field, "it has nothing at %s, where its pod templates should be: say in podTemplatePaths where they are", path)
		}
		for _, at := range places {
			raw := []byte("{}")
			if at.value() != nil {
				raw = t.podOnly(field+": at "+path, text(at.value()))
			}
			pod := t.podTemplate(field, t.lay(field, below, raw))
			if t.kind.never && pod.Spec.RestartPolicy == "" {
				pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			}
			at.in[at.name] = object(&pod)
		}
	}
	for _, path := range t.kind.once {
		set(manifest, path, int64(0), false)
	}
	if t.suspended() && t.kind.suspend != "" {
		set(manifest, t.kind.suspend, true, true)
	}
	t.annotations[SuccessAnnotation] = strings.Join(t.kind.success, "\n")
	t.annotations[FailureAnnotation] = strings.Join(t.kind.failure, "\n")
	meta, _ := manifest["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	delete(meta, "generateName")
	own := t.meta()
	meta["name"], meta["namespace"] = own.Name, own.Namespace
	meta["labels"], meta["annotations"] = over(meta["labels"], own.Labels), over(meta["annotations"], own.Annotations)
	manifest["metadata"] = meta
	return manifest
}

// set sets the places of a path that a kind is known to have, also where something is already.
func set(manifest map[string]any, path string, value any, also bool) {
	steps, err := parsePath(path)
	if err != nil {
		return
	}
	// The object that holds the member may not be there yet.
	for _, at := range walk(manifest, steps[:len(steps)-1]) {
		holder, _ := at.value().(map[string]any)
		if holder == nil {
			holder = map[string]any{}
			at.in[at.name] = holder
		}
		last := steps[len(steps)-1].name
		if _, there := holder[last]; also || !there {
			holder[last] = value
		}
	}
}

// over lays strings over those of a manifest.
func over(below any, strings map[string]string) map[string]any {
	merged, _ := below.(map[string]any)
	merged = maps.Clone(merged)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range strings {
		merged[name] = value
	}
	return merged
}
