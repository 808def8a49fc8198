package kubernetes

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Who sees to it that all pods of a workload start together, as kubernetes.gang names them.
const (
	gangKueue        = "kueue"
	gangPodGroup     = "podgroup"
	gangVolcano      = "volcano"
	gangCoscheduling = "coscheduling"
)

// gangAnnotation has the API version of the PodGroup that was made for a workload.
const gangAnnotation = prefix + "gang"

// volcanoGroup and coschedulingGroup are how pods name their group to these schedulers.
const (
	volcanoGroup      = "scheduling.k8s.io/group-name"
	coschedulingGroup = "scheduling.x-k8s.io/pod-group"
	// The schedulers' own default names.
	volcanoScheduler      = "volcano"
	coschedulingScheduler = "scheduler-plugins-scheduler"
)

// queueUp finds Kueue's queue of the workload, if it has one.
func (t *translation) queueUp() {
	if t.options.GetGang() == gangVolcano {
		return
	}
	t.queue = cmp.Or(t.options.GetQueue(), t.site.Queue)
	if t.queue == "" && t.options.GetGang() == gangKueue {
		t.fault("kubernetes.queue", "gang kueue needs a queue, and neither the task nor the cluster's configuration names one")
	}
}

// joinGang makes a pod a member of the workload's group.
func (t *translation) joinGang(pod *corev1.PodTemplateSpec) {
	name, scheduler := t.workload.Name, ""
	switch t.options.GetGang() {
	case gangPodGroup:
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	case gangVolcano:
		pod.Annotations[volcanoGroup] = name
		scheduler = volcanoScheduler
	case gangCoscheduling:
		pod.Labels[coschedulingGroup] = name
		scheduler = coschedulingScheduler
	}
	pod.Spec.SchedulerName = cmp.Or(pod.Spec.SchedulerName, scheduler)
}

// podGroup is the object that says how many pods start together; nil where none is needed. Only Kubernetes' own group has types
// here: of the others' three fields are needed, and their modules would bring a second generation of all of Kubernetes'.
func (t *translation) podGroup(pods int) map[string]any {
	meta := metav1.ObjectMeta{Name: t.workload.Name, Namespace: t.workload.Namespace, Labels: t.labels, Annotations: t.annotations}
	other := func(apiVersion string, spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": "PodGroup", "metadata": object(meta), "spec": spec}
	}
	switch t.options.GetGang() {
	case gangPodGroup:
		// Of a template of another kind the task has to say how many pods that makes: resources.nodes.
		group := &schedulingv1beta1.PodGroup{ObjectMeta: meta}
		group.APIVersion, group.Kind = schedulingv1beta1.SchemeGroupVersion.String(), "PodGroup"
		group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(pods)}
		return object(group)
	case gangVolcano:
		spec := map[string]any{"minMember": int64(pods)}
		if queue := t.options.GetQueue(); queue != "" {
			spec["queue"] = queue
		}
		return other("scheduling.volcano.sh/v1beta1", spec)
	case gangCoscheduling:
		return other("scheduling.x-k8s.io/v1alpha1", map[string]any{"minMember": int64(pods)})
	}
	return nil
}

// GangOf names the PodGroup that was made for a workload; nil when none was.
func GangOf(o map[string]any) map[string]any {
	meta, _ := o["metadata"].(map[string]any)
	gang := annotation(o, gangAnnotation)
	if gang == "" {
		return nil
	}
	return map[string]any{"apiVersion": gang, "kind": "PodGroup", "metadata": map[string]any{"name": meta["name"]}}
}
