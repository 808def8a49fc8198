package kubernetes

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// verdict is a workload's own word, without its pods.
type verdict struct {
	ended, succeeded bool
	// since is when it ended.
	since time.Time
	// reason and message are Kubernetes'.
	reason, message string
	suspended       bool
	// held: suspended by the gateway, not by a queue.
	held bool
	// cancelled: the gateway has ended this index.
	cancelled bool
	// deleted is when somebody has asked for that; zero: nobody.
	deleted time.Time
}

// endedBefore says whether it ended before it was deleted. Its program's own end is the better witness where it is known. Times
// are whole seconds: the same one is taken for after.
func (v verdict) endedBefore(program time.Time) bool {
	at := program
	if at.IsZero() {
		at = v.since
	}
	return v.ended && (at.IsZero() || at.Before(v.deleted))
}

func (s Status) verdict() verdict {
	if s.Job != nil {
		return s.ofJob()
	}
	return ofObject(s.Object)
}

// ofJob reads a Job, or one index of it.
func (s Status) ofJob() verdict {
	job := s.Job
	v := verdict{suspended: job.Spec.Suspend != nil && *job.Spec.Suspend}
	_, queued := job.Annotations[QueueAnnotation]
	v.held = v.suspended && queued
	if job.DeletionTimestamp != nil {
		v.deleted = job.DeletionTimestamp.Time
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobFailed:
			v.ended, v.succeeded = true, c.Type == batchv1.JobComplete
			v.since, v.reason, v.message = c.LastTransitionTime.UTC(), c.Reason, c.Message
		}
	}
	if s.Index < 0 {
		return v
	}
	noted, _ := ParsePositions(job.Annotations[indexesAnnotation])
	v.cancelled = slices.Contains(noted, s.Index)
	switch {
	case inIndexes(job.Status.CompletedIndexes, s.Index):
		v.ended, v.succeeded = true, true
	case job.Status.FailedIndexes != nil && inIndexes(*job.Status.FailedIndexes, s.Index):
		v.ended, v.succeeded, v.reason, v.message = true, false, "", ""
	}
	return v
}

// ofObject reads a workload of another kind by the conditions in its annotations; a JobSet of the gateway's own has none there.
func ofObject(o map[string]any) verdict {
	meta, _ := o["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	known := kinds["jobset.x-k8s.io/JobSet"]
	if success, ok := annotations[SuccessAnnotation].(string); ok {
		failure, _ := annotations[FailureAnnotation].(string)
		known = kind{success: strings.Split(success, "\n"), failure: strings.Split(failure, "\n"), suspend: suspendPath(o)}
	}
	var v verdict
	if steps, err := parsePath(known.suspend); err == nil {
		for _, at := range walk(o, steps) {
			v.suspended = at.value() == true
		}
	}
	_, queued := annotations[QueueAnnotation]
	v.held = v.suspended && queued
	v.deleted = timeOf(meta["deletionTimestamp"])
	// A failure beats a success that is there too.
	for _, side := range []struct {
		conditions []string
		succeeded  bool
	}{{known.failure, false}, {known.success, true}} {
		for _, text := range side.conditions {
			c, err := parseCondition(text)
			if err != nil || v.ended {
				continue
			}
			if at, ok := c.where(o); ok {
				v.ended, v.succeeded = true, side.succeeded
				v.reason, _ = at["reason"].(string)
				v.message, _ = at["message"].(string)
				v.since = timeOf(at["lastTransitionTime"])
			}
		}
	}
	return v
}

// groupKind is an object's, as in kinds.
func groupKind(o map[string]any) string {
	apiVersion, _ := o["apiVersion"].(string)
	name, _ := o["kind"].(string)
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return name
	}
	return group + "/" + name
}

func timeOf(value any) time.Time {
	text, _ := value.(string)
	at, _ := time.Parse(time.RFC3339, text) // zero when it is none
	return at
}

// exitCodeInMessage is what a Job's condition says of a pod by its failurePolicy.
var exitCodeInMessage = regexp.MustCompile(`failed with exit code (\d+) matching`)

// failure is the end as the workload alone tells it, when its pods are not there any more, or know nothing.
func (v verdict) failure() Native {
	n := Native{State: failed, Message: v.message}
	if code := exitCodeInMessage.FindStringSubmatch(v.message); code != nil {
		number, err := strconv.ParseInt(code[1], 10, 32)
		if err == nil {
			n.ExitCode, n.Message = new(int32(number)), ""
		}
	}
	switch {
	case v.reason == batchv1.JobReasonDeadlineExceeded:
		n.Reason = timeout
	case v.reason == batchv1.JobReasonPodFailurePolicy && strings.Contains(v.message, string(corev1.DisruptionTarget)):
		n.Reason, n.Infrastructure = "DISRUPTED", true
	}
	return n
}

// inIndexes says whether a list as a Job's status has them ("0,3-5") has an index.
func inIndexes(list string, index int) bool {
	for term := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(term, "-")
		low, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		high := low
		if ranged {
			if high, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		if low <= index && index <= high {
			return true
		}
	}
	return false
}
