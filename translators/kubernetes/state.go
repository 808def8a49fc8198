package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Status is all that the API server told of a workload, or of one index of it.
type Status struct {
	// Job is the workload, or nil: then it is Object.
	Job *batchv1.Job
	// Object is a workload of any other kind.
	Object map[string]any
	// Index of an array's instance; -1 without.
	Index int
	// Pods of the workload, of the index.
	Pods []*corev1.Pod
	// Admission is Kueue's Workload for it; nil without.
	Admission map[string]any
	// Group is its PodGroup, of whatever scheduler; nil without.
	Group map[string]any
	// Events about the workload, not its pods. They tell why there are no pods.
	Events []*corev1.Event
}

// Native is what a status means.
type Native struct {
	State dagbridgev1.Job_State
	// Reason is one word, as in dagbridgev1.Job; "" where the state says it all.
	Reason string
	// Infrastructure: the end is not the program's doing.
	Infrastructure bool
	// Message is a sentence for a person, Kubernetes' own where it has one.
	Message string
	// Held: the gateway has suspended it.
	Held bool
	// ExitCode and Signal of the program; nil until known.
	ExitCode, Signal *int32
	// StartTime and EndTime of the program; zero until known.
	StartTime, EndTime time.Time
	// Node it ran on; several are comma separated.
	Node string

	// starts is how often a node has started the program, be it that it was told to do so once: a kubelet whose container
	// runtime does not answer in time tries again.
	starts int32
}

const (
	submitted = dagbridgev1.Job_SUBMITTED
	running   = dagbridgev1.Job_RUNNING
	succeeded = dagbridgev1.Job_SUCCEEDED
	failed    = dagbridgev1.Job_FAILED
	cancelled = dagbridgev1.Job_CANCELLED
)

// State is what a status means. Success is the word of Kubernetes alone, and not even that when the program ran out of memory
// without noticing; an end that somebody's deletion brought about is never one.
func State(s Status) Native {
	if s.Job != nil && s.Job.Annotations[markAnnotation] != "" {
		return Native{State: cancelled, Reason: "MARKED", Message: "it was cancelled before the API server had it", EndTime: s.Job.CreationTimestamp.UTC()}
	}
	v := s.verdict()
	n := s.whereAndWhen()
	why, ended := s.failure()
	switch {
	case !v.deleted.IsZero() && !v.endedBefore(n.EndTime):
		return s.deleted(n, v, why)
	case v.ended && v.succeeded && slices.ContainsFunc(s.Pods, endedByDeletion):
		return n.ends(Native{State: cancelled, Reason: "DELETED", Message: "its pod was deleted, and not by the gateway, before the program ended"}, v)
	case v.ended && v.succeeded && why.Reason == outOfMemory:
		return n.ends(why, v)
	case v.ended && v.succeeded:
		return n.ends(Native{State: succeeded, ExitCode: new(int32(0))}, v)
	case v.ended && v.cancelled:
		return n.ends(Native{State: cancelled, ExitCode: why.ExitCode}, v)
	case v.ended:
		if !ended {
			why = v.failure()
		}
		return n.ends(why, v)
	case ended && s.startsAgain():
		return n.ends(why, v)
	case s.mainsEnded():
		// Containers beside the program's go on; they are not what was asked for.
		if ended {
			return n.ends(why, v)
		}
		return n.ends(Native{State: succeeded, ExitCode: new(int32(0))}, v)
	case slices.ContainsFunc(s.Pods, started):
		n.State = running
		n.Reason, n.Message = s.troubled()
		return n
	}
	n.State = submitted
	n.StartTime, n.EndTime = time.Time{}, time.Time{}
	n.Reason, n.Message = s.waiting(v)
	n.Held = v.held
	return n
}

// ends is an end with what is known of the time and the place.
func (n Native) ends(why Native, v verdict) Native {
	n.State, n.Reason, n.Infrastructure = why.State, why.Reason, why.Infrastructure
	n.Message, n.ExitCode, n.Signal = why.Message, why.ExitCode, why.Signal
	if n.EndTime.IsZero() {
		n.EndTime = v.since
	}
	if n.Message == "" && n.starts > 1 {
		n.Message = fmt.Sprintf("its node has started the program %d times", n.starts)
	}
	return n
}

// deleted is a workload that somebody, the gateway included, has deleted: whatever its pods say of their ends then is not the
// program's own word.
func (s Status) deleted(n Native, v verdict, why Native) Native {
	live := slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	})
	n.Reason, n.Message = "DELETED", "it is being deleted"
	switch {
	case live && slices.ContainsFunc(s.Pods, started):
		n.State = running
	case live:
		n.State = submitted
	default:
		n.State, n.Message = cancelled, "it was deleted"
		n.ExitCode = why.ExitCode
		if n.EndTime.IsZero() {
			n.EndTime = v.deleted
		}
	}
	return n
}

// whereAndWhen is what the pods tell of nodes and times.
func (s Status) whereAndWhen() Native {
	var n Native
	var nodes []string
	for _, pod := range s.Pods {
		if pod.Spec.NodeName != "" && !slices.Contains(nodes, pod.Spec.NodeName) {
			nodes = append(nodes, pod.Spec.NodeName)
		}
		c := mainStatus(pod)
		if c == nil {
			continue
		}
		if s.Job != nil {
			n.starts = max(n.starts, c.RestartCount+1)
		}
		from, to := metav1.Time{}, metav1.Time{}
		if c.State.Running != nil {
			from = c.State.Running.StartedAt
		}
		if t := c.State.Terminated; t != nil {
			from, to = t.StartedAt, t.FinishedAt
		}
		if !from.IsZero() && (n.StartTime.IsZero() || from.Time.Before(n.StartTime)) {
			n.StartTime = from.UTC()
		}
		if to.After(n.EndTime) {
			n.EndTime = to.UTC()
		}
	}
	slices.Sort(nodes)
	n.Node = strings.Join(nodes, ",")
	return n
}

// MainOf is the name of the program's container.
func MainOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Annotations[containerAnnotation], mainContainer)
}

// mainStatus is that of the program's container; nil while there is none.
func mainStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Name == MainOf(pod) {
			return c
		}
	}
	return nil
}

// started says whether the program of a pod has started.
func started(pod *corev1.Pod) bool {
	c := mainStatus(pod)
	return c != nil && (c.State.Running != nil || c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero())
}

// mainsEnded says whether the program has ended in a pod that has other containers which have not.
func (s Status) mainsEnded() bool {
	if s.Job == nil || s.Index < 0 && s.Job.Spec.CompletionMode != nil && *s.Job.Spec.CompletionMode == batchv1.IndexedCompletion || len(s.Pods) != 1 {
		return false
	}
	c := mainStatus(s.Pods[0])
	return c != nil && c.State.Terminated != nil &&
		slices.ContainsFunc(s.Pods[0].Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
}

// startsAgain says whether Kubernetes would start a program a second time, which nobody has asked of a Job.
func (s Status) startsAgain() bool {
	return s.Job != nil && slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool {
		c := mainStatus(pod)
		return c != nil && c.State.Terminated == nil && c.LastTerminationState.Terminated != nil
	})
}

// endedByDeletion says whether somebody deleted a pod while its program ran. Times are whole seconds: the same one is taken for
// after.
func endedByDeletion(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	asked := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		asked = asked.Add(-time.Duration(*grace) * time.Second)
	}
	c := mainStatus(pod)
	return c == nil || c.State.Terminated == nil || !c.State.Terminated.FinishedAt.Time.Before(asked)
}

// troubled is what is wrong with a workload that runs.
func (s Status) troubled() (reason, message string) {
	for _, pod := range s.Pods {
		switch {
		case pod.Status.Reason == "NodeLost":
			return "NODE_FAIL", cmp.Or(pod.Status.Message, "its node does not answer")
		case pod.DeletionTimestamp != nil:
			return "DELETED", "its pod " + pod.Name + " is being deleted"
		}
	}
	return "", ""
}
