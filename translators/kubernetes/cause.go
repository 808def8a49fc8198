package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons that Slurm has too are the same words.
const (
	outOfMemory  = "OUT_OF_MEMORY"
	timeout      = "TIMEOUT"
	nodeFail     = "NODE_FAIL"
	preempted    = "PREEMPTED"
	evicted      = "EVICTED"
	launchFailed = "LAUNCH_FAILED"
	notStarted   = "NOT_STARTED"
)

// cause is what a word of Kubernetes' on the end of a pod means.
type cause struct {
	reason         string
	infrastructure bool
}

// disruptions are the reasons of a pod's condition DisruptionTarget: somebody took it away, and not for what it did.
var disruptions = map[string]cause{
	corev1.PodReasonPreemptionByScheduler: {preempted, true},
	"DeletionByTaintManager":              {nodeFail, true},
	"DeletionByPodGC":                     {nodeFail, true},
	"EvictionByEvictionAPI":               {evicted, true},
	corev1.PodReasonTerminationByKubelet:  {evicted, true},
	"DeletionByDeviceTaintManager":        {nodeFail, true},
}

// podReasons are the words in a pod's own reason.
var podReasons = map[string]cause{
	"DeadlineExceeded": {timeout, false},
	"Evicted":          {evicted, true},
	"NodeLost":         {nodeFail, true},
	"NodeShutdown":     {nodeFail, true},
	"Shutdown":         {nodeFail, true},
	"Terminated":       {nodeFail, true},
	"Preempting":       {preempted, true},
	"Preempted":        {preempted, true},
	// A kubelet refuses what the scheduler has sent it; nothing has run.
	"NodeAffinity":             {launchFailed, true},
	"NodeName":                 {launchFailed, true},
	"NodePorts":                {launchFailed, true},
	"OutOfcpu":                 {launchFailed, true},
	"OutOfmemory":              {launchFailed, true},
	"OutOfpods":                {launchFailed, true},
	"OutOfephemeral-storage":   {launchFailed, true},
	"TopologyAffinityError":    {launchFailed, true},
	"UnexpectedAdmissionError": {launchFailed, true},
}

// containerReasons are the words in the end of a container.
var containerReasons = map[string]cause{
	"OOMKilled":              {outOfMemory, false},
	"StartError":             {notStarted, false},
	"ContainerCannotRun":     {notStarted, false},
	"ContainerStatusUnknown": {nodeFail, true},
	"DeadlineExceeded":       {timeout, false},
}

// failure is the failure of a workload's pods that came first; false when none of them has failed.
func (s Status) failure() (Native, bool) {
	var first Native
	var at time.Time
	found := false
	for _, pod := range s.Pods {
		n, ended := podFailure(pod)
		if !ended {
			continue
		}
		finished := time.Time{}
		if c := mainStatus(pod); c != nil && c.State.Terminated != nil {
			finished = c.State.Terminated.FinishedAt.Time
		}
		if !found || finished.Before(at) {
			first, at, found = n, finished, true
		}
	}
	return first, found
}

// podFailure is why a pod's program failed; false when it has not.
func podFailure(pod *corev1.Pod) (Native, bool) {
	n := Native{State: failed}
	c := mainStatus(pod)
	var end *corev1.ContainerStateTerminated
	if c != nil {
		if end = c.State.Terminated; end == nil {
			end = c.LastTerminationState.Terminated
		}
	}
	if end != nil {
		n.ExitCode = new(end.ExitCode)
		if end.Signal != 0 {
			n.Signal = new(end.Signal)
		}
	}
	switch {
	case pod.Status.Phase != corev1.PodFailed && (end == nil || end.ExitCode == 0 && end.Reason != "OOMKilled"):
		return Native{}, false
	case disrupted(pod, &n), n.because(podReasons, pod.Status.Reason, pod.Status.Message):
	case end != nil && n.because(containerReasons, end.Reason, end.Message):
		n.unstarted(end)
	case end != nil && end.ExitCode == 0:
		// The program has done its part; something else of the pod's has failed.
		n.Message = "a container beside the program's failed: " + cmp.Or(otherFailure(pod), pod.Status.Message)
	case end == nil && otherFailure(pod) != "":
		n.Reason, n.Message = "INIT_FAILED", otherFailure(pod)
	case endedByDeletion(pod):
		n.State, n.Reason, n.Message = cancelled, "DELETED", "its pod "+pod.Name+" was deleted, and not by the gateway"
	default:
		n.Message = pod.Status.Message
	}
	if n.Reason == evicted && overOwnLimit(n.Message) {
		n.Infrastructure = false
	}
	return n, true
}

// because sets what a table knows of a word; false when it knows nothing.
func (n *Native) because(table map[string]cause, word, message string) bool {
	c, ok := table[word]
	if ok {
		n.Reason, n.Infrastructure, n.Message = c.reason, c.infrastructure, strings.TrimSpace(message)
	}
	return ok
}

// disrupted: the pod was taken away.
func disrupted(pod *corev1.Pod, n *Native) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			if !n.because(disruptions, c.Reason, cmp.Or(pod.Status.Message, c.Message)) {
				n.Reason, n.Infrastructure, n.Message = "DISRUPTED", true, c.Message
			}
			return true
		}
	}
	return false
}

// overOwnLimit: it was evicted for what it did, not for what its node lacked.
func overOwnLimit(message string) bool {
	return strings.Contains(message, "exceeds the total limit of containers") || strings.Contains(message, "exceeded its local ephemeral storage limit") ||
		strings.Contains(message, "exceeds the limit")
}

// unstarted gives a program that could not be started the exit code that a shell has for it.
func (n *Native) unstarted(end *corev1.ContainerStateTerminated) {
	if n.Reason != notStarted {
		return
	}
	switch {
	case strings.Contains(end.Message, "executable file not found"), strings.Contains(end.Message, "no such file or directory"):
		n.ExitCode = new(int32(127))
	case strings.Contains(end.Message, "permission denied"):
		n.ExitCode = new(int32(126))
	}
}

// otherFailure is a sentence on the first container that has failed, beside the program's; "" when none has.
func otherFailure(pod *corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if end := c.State.Terminated; end != nil && c.Name != MainOf(pod) && (end.ExitCode != 0 || end.Reason == "OOMKilled") {
			sentence := fmt.Sprintf("container %s ended with exit code %d", c.Name, end.ExitCode)
			if end.Reason != "" && end.Reason != "Error" {
				sentence += " (" + end.Reason + ")"
			}
			if end.Message != "" {
				sentence += ": " + strings.TrimSpace(end.Message)
			}
			return sentence
		}
	}
	return ""
}
