package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dagbridge/dagbridge/translators/graph"
)

// resources sets what a pod asks for. CPUs are a request: what is free may be used. Memory is a limit too, so that what a
// program may use does not depend on who else is on the node.
func (t *translation) resources() {
	r := t.task.GetResources()
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	if milli, err := graph.CPU(r.GetCpu()); err != nil {
		t.fault("resources.cpu", "%q %v", r.GetCpu(), err)
	} else if milli > 0 {
		// per task, and so many tasks are on a node
		requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(milli*int64(max(r.GetTasksPerNode(), 1)), resource.DecimalSI)
	}
	if bytes, err := graph.Memory(r.GetMemory()); err != nil {
		t.fault("resources.memory", "%q %v", r.GetMemory(), err)
	} else if bytes > 0 {
		q := *resource.NewQuantity(bytes, resource.BinarySI)
		requests[corev1.ResourceMemory], limits[corev1.ResourceMemory] = q, q
	}
	t.gpus(limits)
	t.main.Resources.Requests, t.main.Resources.Limits = requests, limits
	if limit := r.GetTimeLimit(); limit != nil {
		d := limit.AsDuration()
		seconds := int64((d + time.Second - 1) / time.Second)
		if d%time.Second != 0 {
			t.notice("resources.timeLimit: Kubernetes takes whole seconds; %s is rounded up to %d s", d, seconds)
		}
		// Of the pod: it counts from when a node has taken it. A Job's own limit would count the time in the queue too.
		t.pod.ActiveDeadlineSeconds = &seconds
	}
}

// gpus asks for GPUs, by the site's names for them.
func (t *translation) gpus(limits corev1.ResourceList) {
	for i, gpu := range t.task.GetResources().GetGpus() {
		field := fmt.Sprintf("resources.gpus[%d]", i)
		how, ok := t.site.GPUs[gpu.GetType()]
		if !ok && gpu.GetType() == "" {
			how, ok = DefaultGPU, true
		}
		if !ok {
			t.fault(field+".type", "the cluster's configuration does not say how GPUs of the type %q are asked for%s", gpu.GetType(), t.gpuTypes())
			continue
		}
		count := int64(1)
		if gpu.Count != nil {
			count = int64(gpu.GetCount())
		}
		name := corev1.ResourceName(cmp.Or(how.Resource, DefaultGPU.Resource))
		if _, twice := limits[name]; twice {
			t.fault(field, "%s is asked for twice: one pod has GPUs of one type of it", name)
		}
		limits[name] = *resource.NewQuantity(count, resource.DecimalSI)
		for label, value := range how.NodeSelector {
			t.selectNode(field, label, value)
		}
	}
}

func (t *translation) gpuTypes() string {
	types := slices.DeleteFunc(slices.Sorted(maps.Keys(t.site.GPUs)), func(s string) bool { return s == "" })
	if len(types) == 0 {
		return ": leave the type out for any"
	}
	return ": there are " + strings.Join(types, ", ")
}

// selectNode wants a label of the node.
func (t *translation) selectNode(field, label, value string) {
	if other, ok := t.pod.NodeSelector[label]; ok && other != value {
		t.fault(field, "it needs nodes with %s=%s, and the task those with %s=%s", label, value, label, other)
	}
	if t.pod.NodeSelector == nil {
		t.pod.NodeSelector = map[string]string{}
	}
	t.pod.NodeSelector[label] = value
}

// checkLimits wants no request beyond its limit; of what the task says and what its template says one may be each.
func (t *translation) checkLimits(c *corev1.Container) {
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Requests)) {
		request := c.Resources.Requests[name]
		if limit, ok := c.Resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			t.fault("resources", "container %s requests %s of %s, and its limit is %s: the one is the task's, the other its template's",
				c.Name, request.String(), name, limit.String())
		}
	}
}
