package kubernetes_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/kubernetes"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ task, want string }{
		"a Job":                 {`{command: {argv: [a]}}`, `{"metadata":{"annotations":{"dagbridge.io/queue":null},"resourceVersion":"7"},"spec":{"suspend":false}}`},
		"a Job with a queue":    {`{command: {argv: [a]}, kubernetes: {queue: q}}`, `{"metadata":{"annotations":{"dagbridge.io/queue":null},"labels":{"kueue.x-k8s.io/queue-name":"q"},"resourceVersion":"7"}}`},
		"a JobSet":              {`{command: {argv: [a]}, launch: PER_TASK, resources: {nodes: 2}}`, `{"metadata":{"annotations":{"dagbridge.io/queue":null},"resourceVersion":"7"},"spec":{"suspend":false}}`},
		"a kind with its own":   {`{command: {argv: [a]}, kubernetes: {template: {apiVersion: kubeflow.org/v1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {}}}}}}`, `{"metadata":{"annotations":{"dagbridge.io/queue":null},"resourceVersion":"7"},"spec":{"runPolicy":{"suspend":false}}}`},
		"a kind without a hold": {`{command: {argv: [a]}, kubernetes: {template: {apiVersion: x/v1, kind: Widget, spec: {pod: {}}}, podTemplatePaths: [spec.pod], successConditions: ["a=b"], failureConditions: ["a=c"]}}`, ``},
	} {
		s := submission(taskOf(t, c.task))
		s.Hold = true
		w, faults := kubernetes.Translate(site, s)
		require.NoError(t, faults.OrNil(), name)
		o := w.Main()
		o["metadata"].(map[string]any)["resourceVersion"] = "7"
		patch := kubernetes.Release(o)
		require.Equal(t, c.want, string(patch), name)

		s.Hold = false
		w, _ = kubernetes.Translate(site, s)
		require.Nil(t, kubernetes.Release(w.Main()), name)
	}
}

func TestAMarkTakesTheNameAndNeverRuns(t *testing.T) {
	t.Parallel()
	s := submission(command("true"))
	w, faults := kubernetes.Translate(site, s)
	require.NoError(t, faults.OrNil())
	mark := kubernetes.Mark("ml", s.Job.Key, s.Token)
	require.True(t, kubernetes.IsMark(mark))
	require.False(t, kubernetes.IsMark(w.Main()))
	text, err := yaml.Marshal(mark)
	require.NoError(t, err)
	job := &batchv1.Job{}
	require.NoError(t, yaml.UnmarshalStrict(text, job))
	require.Equal(t, w.Name, job.Name)
	require.Equal(t, s.Token, job.Labels[kubernetes.TokenLabel])
	require.True(t, *job.Spec.Suspend)
	require.Zero(t, *job.Spec.Parallelism)
	n := kubernetes.State(kubernetes.Status{Job: job, Index: -1})
	require.Equal(t, dagbridgev1.Job_CANCELLED, n.State)
	require.Equal(t, "MARKED", n.Reason)
}

func TestSomeOfAnArrayIsCancelled(t *testing.T) {
	t.Parallel()
	job := &batchv1.Job{}
	read(t, `{metadata: {resourceVersion: "7", annotations: {dagbridge.io/positions: "2,5,7,9"}}, spec: {completionMode: Indexed}, status: {completedIndexes: "0", failedIndexes: "2"}}`, job)
	left, err := kubernetes.Unfinished(job)
	require.NoError(t, err)
	require.Equal(t, map[int]int{5: 1, 9: 3}, left)

	patch := kubernetes.CancelIndexes(job, []int{2})
	require.Equal(t, `{"metadata":{"annotations":{"dagbridge.io/cancelled-indexes":"2"},"resourceVersion":"7"}}`, string(patch))
	job.Annotations["dagbridge.io/cancelled-indexes"] = "2"
	require.Nil(t, kubernetes.CancelIndexes(job, []int{2}))
	require.Contains(t, string(kubernetes.CancelIndexes(job, []int{1})), `"1,2"`)
	for index, want := range map[int]dagbridgev1.Job_State{0: dagbridgev1.Job_SUCCEEDED, 1: dagbridgev1.Job_SUBMITTED, 2: dagbridgev1.Job_CANCELLED} {
		require.Equal(t, want, kubernetes.State(kubernetes.Status{Job: job, Index: index}).State)
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "True"}]}}`:                         true,
		`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True"}]}}`:                           true,
		`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Suspended, status: "True"}]}}`:                        false,
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, status: {conditions: [{type: Completed, status: "True"}]}}`:     true,
		`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, status: {conditions: [{type: StartupPolicy, status: "True"}]}}`: false,
	} {
		var o map[string]any
		read(t, text, &o)
		require.Equal(t, want, kubernetes.Ended(o), text)
	}
}
