package kubernetes

import (
	"encoding/json"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// manifests makes the objects.
func (t *translation) manifests() {
	below := t.template()
	pods := t.nodes()
	if t.isArray() {
		pods = t.parallel()
		t.annotations[PositionsAnnotation] = formatPositions(t.submission.Instances)
	}
	var main map[string]any
	if t.manifest != nil {
		main = t.mergedManifest(below)
	} else {
		pod := t.podTemplate("kubernetes.template", below)
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		job := t.jobSpec(pod)
		if t.nodes() > 1 {
			main = object(t.jobSet(job))
		} else {
			main = object(&batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: t.meta(), Spec: job})
		}
	}
	if group := t.podGroup(pods); group != nil {
		t.workload.Objects = append(t.workload.Objects, group)
		if meta, ok := main["metadata"].(map[string]any); ok {
			annotations, _ := meta["annotations"].(map[string]any) // the gateway's own are there
			annotations[gangAnnotation] = group["apiVersion"]
		}
	}
	t.workload.Objects = append(t.workload.Objects, main)
	for _, o := range t.workload.Objects {
		if size := len(text(o)); size > maxObjectBytes {
			t.fault("command", "the task has %d bytes as a %v; Kubernetes takes %d. Put data into files and hand over their names.", size, o["kind"], maxObjectBytes)
		}
	}
}

// meta is the workload's metadata.
func (t *translation) meta() metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: t.workload.Name, Namespace: t.workload.Namespace, Labels: maps.Clone(t.labels), Annotations: maps.Clone(t.annotations)}
	switch {
	case t.held():
		// Kueue would start what is only held: it learns of the job when it is released.
		meta.Annotations[QueueAnnotation] = t.queue
	case t.queue != "":
		meta.Labels[queueLabel] = t.queue
	}
	return meta
}

// held: it does not start before it is released. What cannot be suspended is made without: its name alone sees to it that an
// attempt runs once.
func (t *translation) held() bool {
	return t.submission.Hold && (t.manifest == nil || t.kind.suspend != "")
}

// suspended: something lifts it later, Kueue or a release.
func (t *translation) suspended() bool { return t.held() || t.queue != "" }

// jobSpec runs pods once. They are never replaced: each further attempt is the engine's.
func (t *translation) jobSpec(pod corev1.PodTemplateSpec) batchv1.JobSpec {
	// A pod that is being deleted still runs: it has not failed before it is gone.
	spec := batchv1.JobSpec{Template: pod, PodReplacementPolicy: new(batchv1.Failed)}
	if t.suspended() && t.nodes() == 1 {
		spec.Suspend = new(true)
	}
	indexed := batchv1.IndexedCompletion
	switch {
	case t.isArray():
		n := int32(len(t.submission.Instances))
		spec.CompletionMode, spec.Completions, spec.Parallelism = &indexed, &n, new(int32(t.parallel()))
		spec.BackoffLimitPerIndex = new(int32(0))
		return spec
	case t.nodes() > 1:
		n := int32(t.nodes())
		spec.CompletionMode, spec.Completions, spec.Parallelism = &indexed, &n, &n
	}
	spec.BackoffLimit = new(int32(0))
	spec.PodFailurePolicy = failurePolicy(pod.Annotations[containerAnnotation])
	return spec
}

// failurePolicy changes nothing of what becomes of a Job, but of what it says: its condition then holds the exit code, or that
// the pod was disrupted, when the pod itself is not there any more to tell.
func failurePolicy(container string) *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionFailJob, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		}},
		{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: &container, Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0},
		}},
	}}
}

// parallel is how many instances of an array run at once.
func (t *translation) parallel() int {
	n := len(t.submission.Instances)
	if most := t.submission.MaxParallel; most > 0 && most < n {
		return most
	}
	return n
}

// object is one of the API's own structures as JSON has it, without what is empty in all that are new.
func object(structure any) map[string]any {
	var o map[string]any
	var err error
	if meta, ok := structure.(metav1.ObjectMeta); ok {
		structure = &meta
	}
	if o, err = runtime.DefaultUnstructuredConverter.ToUnstructured(structure); err != nil {
		_ = json.Unmarshal(text(structure), &o)
	}
	delete(o, "status")
	prune(o)
	return o
}

// prune takes out what the API's structures write though nobody has set it.
func prune(o map[string]any) {
	for name, value := range o {
		switch v := value.(type) {
		case nil:
			delete(o, name)
		case map[string]any:
			prune(v)
			if len(v) == 0 && (name == "resources" || name == "strategy" || name == "metadata") {
				delete(o, name)
			}
		case []any:
			for _, element := range v {
				if m, ok := element.(map[string]any); ok {
					prune(m)
				}
			}
		}
	}
}
