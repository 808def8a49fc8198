package store

import (
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Match: the filter chooses the job. An array's instances are chosen by parent or native id alone; the native id of an array
// chooses all that are in it.
func Match(f *dagbridgev1.JobFilter, job *dagbridgev1.Job) bool {
	key := job.GetKey()
	return job != nil &&
		is(f.GetDeployment(), key.GetDeployment()) &&
		is(f.GetOrchestrator(), key.GetOrchestrator()) &&
		is(f.GetWorkflow(), key.GetWorkflow()) &&
		is(f.GetRun(), key.GetRun()) &&
		is(f.GetTask(), key.GetTask()) &&
		matchParent(f, job) && matchState(f, job) && matchNative(f, job) && matchLabels(f, job)
}

// is: a word of a filter chooses a value. Left out, it chooses all.
func is(want, value string) bool { return want == "" || want == value }

func matchParent(f *dagbridgev1.JobFilter, job *dagbridgev1.Job) bool {
	return f.GetParent() == job.GetParent() || f.GetParent() == "" && f.GetNativeId() != ""
}

func matchState(f *dagbridgev1.JobFilter, job *dagbridgev1.Job) bool {
	for _, state := range f.GetState() {
		if state == job.GetState() {
			return true
		}
	}
	return len(f.GetState()) == 0
}

func matchNative(f *dagbridgev1.JobFilter, job *dagbridgev1.Job) bool {
	if f.GetNativeId() == "" {
		return is(f.GetCluster(), job.GetCluster())
	}
	for _, n := range nativeJobs(job) {
		if (n.id == f.GetNativeId() || strings.HasPrefix(n.id, f.GetNativeId()+"_")) && is(f.GetCluster(), n.cluster) {
			return true
		}
	}
	return false
}

func matchLabels(f *dagbridgev1.JobFilter, job *dagbridgev1.Job) bool {
	for _, label := range f.GetLabel() {
		name, want, _ := strings.Cut(label, "=")
		if value, ok := job.GetLabels()[name]; !ok || value != want {
			return false
		}
	}
	return true
}

func matchRun(req *dagbridgev1.ListRunsRequest, run *dagbridgev1.Run) bool {
	return is(req.GetDeployment(), run.GetDeployment()) && is(req.GetOrchestrator(), run.GetOrchestrator()) &&
		is(req.GetWorkflow(), run.GetWorkflow()) && is(req.GetRun(), run.GetRun())
}
