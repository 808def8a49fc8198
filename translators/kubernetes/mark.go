package kubernetes

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// markAnnotation is on an object that only takes a name.
const markAnnotation = prefix + "cancelled"

// Mark is what takes an attempt's name so that a request which is late finds it taken: a Job without pods that nobody starts.
func Mark(namespace string, key *dagbridgev1.TaskKey, token string) map[string]any {
	annotations := Annotations(key)
	annotations[markAnnotation] = "true"
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: Name(key.GetTask(), token), Namespace: namespace, Labels: Labels(key, token), Annotations: annotations},
		Spec: batchv1.JobSpec{Suspend: new(true), Parallelism: new(int32(0)), BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: mainContainer, Image: "none"}}},
		}},
	}
	return object(job)
}

// IsMark says whether an object only takes a name.
func IsMark(o map[string]any) bool { return annotation(o, markAnnotation) != "" }

// CancelIndexes is a merge patch that notes which indices of an array are cancelled: that their pods go is no failure of theirs.
// It is nil when all of them are noted already.
func CancelIndexes(job *batchv1.Job, indexes []int) []byte {
	all := map[int]bool{}
	noted, _ := ParsePositions(job.Annotations[indexesAnnotation])
	for _, i := range append(indexes, noted...) {
		all[i] = true
	}
	if len(all) == len(noted) {
		return nil
	}
	words := make([]string, 0, len(all))
	for _, i := range slices.Sorted(maps.Keys(all)) {
		words = append(words, strconv.Itoa(i))
	}
	return text(map[string]any{"metadata": map[string]any{
		"resourceVersion": job.ResourceVersion, "annotations": map[string]any{indexesAnnotation: strings.Join(words, ",")},
	}})
}

// indexesAnnotation has the indices of an array that are cancelled.
const indexesAnnotation = prefix + "cancelled-indexes"

// Unfinished are the indices of an array that have not ended, by their positions.
func Unfinished(job *batchv1.Job) (map[int]int, error) {
	positions, err := ParsePositions(job.Annotations[PositionsAnnotation])
	if err != nil {
		return nil, err
	}
	left := map[int]int{}
	for i, position := range positions {
		if !inIndexes(job.Status.CompletedIndexes, i) && (job.Status.FailedIndexes == nil || !inIndexes(*job.Status.FailedIndexes, i)) {
			left[position] = i
		}
	}
	return left, nil
}

// Ended says whether a workload has, by its own word.
func Ended(o map[string]any) bool {
	if groupKind(o) == "batch/Job" {
		return conditionOf(o, string(batchv1.JobComplete))["status"] == "True" || conditionOf(o, string(batchv1.JobFailed))["status"] == "True"
	}
	return ofObject(o).ended
}

// EndTime is when a workload ended, by its own word, or a mark was made; zero when it has not ended.
func EndTime(o map[string]any) time.Time {
	if IsMark(o) {
		meta, _ := o["metadata"].(map[string]any)
		return timeOf(meta["creationTimestamp"])
	}
	if groupKind(o) != "batch/Job" {
		return ofObject(o).since
	}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := conditionOf(o, string(kind)); c["status"] == "True" {
			return timeOf(c["lastTransitionTime"])
		}
	}
	return time.Time{}
}

// Queues says whether Kueue decides when a workload starts.
func Queues(o map[string]any) bool {
	meta, _ := o["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels[queueLabel] != nil
}

// Reads says whether an annotation is one that this package reads.
func Reads(name string) bool {
	switch name {
	case PositionsAnnotation, QueueAnnotation, SuccessAnnotation, FailureAnnotation, markAnnotation, indexesAnnotation, containerAnnotation, gangAnnotation:
		return true
	}
	return false
}

func annotation(o map[string]any, name string) string {
	meta, _ := o["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, _ := annotations[name].(string)
	return value
}
