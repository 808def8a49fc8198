package kubernetes

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// waits are the words of a container that has not started. Those that will not pass by themselves are told all the same as
// waiting: somebody may still push the image, or make the secret.
var waits = map[string]string{
	"ErrImagePull":               "IMAGE_PULL",
	"ErrImageNeverPull":          "IMAGE_PULL",
	"ImagePullBackOff":           "IMAGE_PULL",
	"ImageInspectError":          "IMAGE_PULL",
	"InvalidImageName":           "IMAGE_PULL",
	"RegistryUnavailable":        "IMAGE_PULL",
	"SignatureValidationFailed":  "IMAGE_PULL",
	"CreateContainerConfigError": "CONFIG",
	"CreateContainerError":       "CONFIG",
	"RunContainerError":          "CONFIG",
	"CrashLoopBackOff":           "INIT_FAILED",
	"ContainerCreating":          "STARTING",
	"PodInitializing":            "STARTING",
}

// waiting is why a workload has not started: the first of its pods that says so, else the workload itself.
func (s Status) waiting(v verdict) (reason, message string) {
	starting := false
	for _, pod := range s.Pods {
		switch reason, message = podWaiting(pod); reason {
		case "":
		case "STARTING":
			starting = true // one of the others may say more
		default:
			return reason, message
		}
	}
	switch {
	case v.held:
		return "HELD", ""
	case starting:
		return "STARTING", ""
	case v.suspended:
		return s.queued()
	}
	if reason, message = s.withoutPods(); reason != "" {
		return reason, message
	}
	return s.grouped()
}

// podWaiting is why a pod has not started; "" when it does not say.
func podWaiting(pod *corev1.Pod) (reason, message string) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && waits[w.Reason] != "" && waits[w.Reason] != "STARTING" {
			return waits[w.Reason], "container " + c.Name + ": " + cmp.Or(w.Message, w.Reason)
		}
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse:
		case c.Reason == corev1.PodReasonSchedulingGated:
			return "GATED", cmp.Or(c.Message, "a scheduling gate keeps it from its node")
		default:
			return "RESOURCES", c.Message
		}
	}
	if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending {
		return "STARTING", ""
	}
	return "", ""
}

// queued is what Kueue says of a workload that it has not admitted.
func (s Status) queued() (reason, message string) {
	const queued = "QUEUED"
	for _, kind := range []string{"Evicted", "QuotaReserved", "Admitted"} {
		c := conditionOf(s.Admission, kind)
		word, _ := c["reason"].(string)
		text, _ := c["message"].(string)
		switch {
		case c == nil || text == "":
		case kind == "Evicted" && c["status"] == "True" && conditionOf(s.Admission, "QuotaReserved")["status"] != "True":
			if word == "Preempted" {
				return preempted, text
			}
			return queued, text
		case kind != "Evicted" && c["status"] == "False":
			return queued, text
		}
	}
	return queued, "its queue has not admitted it yet"
}

// withoutPods is why the pods of a workload cannot be made, the last that was said of it.
func (s Status) withoutPods() (reason, message string) {
	var last *corev1.Event
	for _, e := range s.Events {
		if e.Type == corev1.EventTypeWarning && (last == nil || !e.LastTimestamp.Before(&last.LastTimestamp)) {
			last = e
		}
	}
	switch {
	case last == nil || len(s.Pods) > 0:
		return "", ""
	case strings.Contains(last.Message, "exceeded quota"):
		return "QUOTA", last.Message
	}
	return "REFUSED", last.Message
}

// grouped is what a gang waits for.
func (s Status) grouped() (reason, message string) {
	for _, kind := range []string{"PodGroupInitiallyScheduled", "Unschedulable"} {
		c := conditionOf(s.Group, kind)
		text, _ := c["message"].(string)
		if c != nil && (c["status"] == "True") == (kind == "Unschedulable") {
			return "GANG", cmp.Or(text, "its gang waits for room for all of its pods")
		}
	}
	if s.Group != nil && len(s.Pods) > 0 {
		return "GANG", "its gang waits for room for all of its pods"
	}
	return "", ""
}

// conditionOf is an object's condition of a type; nil when it has none.
func conditionOf(o map[string]any, name string) map[string]any {
	status, _ := o["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, element := range list {
		if c, ok := element.(map[string]any); ok && c["type"] == name {
			return c
		}
	}
	return nil
}
