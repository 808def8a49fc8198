package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/kubernetes"
)

// Pieces of statuses, as a Kubernetes 1.37 writes them.
const (
	jobRuns     = `{status: {active: 1}}`
	jobComplete = `{status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True", reason: CompletionsReached}, {type: Complete, status: "True", reason: CompletionsReached, message: "Reached expected number of succeeded pods", lastTransitionTime: "2026-01-01T00:00:30Z"}]}}`
	jobExit3    = `{status: {failed: 1, conditions: [{type: FailureTarget, status: "True", reason: PodFailurePolicy}, {type: Failed, status: "True", reason: PodFailurePolicy, message: "Container main for pod ml/train-x failed with exit code 3 matching FailJob rule at index 1", lastTransitionTime: "2026-01-01T00:00:30Z"}]}}`
	jobBackoff  = `{status: {failed: 1, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: "Job has reached the specified backoff limit", lastTransitionTime: "2026-01-01T00:00:30Z"}]}}`
	jobDisrupt  = `{status: {failed: 1, conditions: [{type: Failed, status: "True", reason: PodFailurePolicy, message: "Pod ml/train-x has condition DisruptionTarget matching FailJob rule at index 0", lastTransitionTime: "2026-01-01T00:00:30Z"}]}}`
	suspended   = `{spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True", reason: JobSuspended}]}}`
)

// pod is one whose program's container is in a state.
func pod(phase, state, more string) string {
	return `{metadata: {name: train-x}, spec: {nodeName: node-1, restartPolicy: Never}, status: {phase: ` + phase + `, containerStatuses: [{name: main, state: ` + state + `}]` + more + `}}`
}

func ended(code, reason, message string) string {
	return `{terminated: {exitCode: ` + code + `, reason: ` + reason + `, message: ` + message + `, startedAt: "2026-01-01T00:00:10Z", finishedAt: "2026-01-01T00:00:20Z"}}`
}

func TestState(t *testing.T) {
	t.Parallel()
	type want struct {
		state          dagbridgev1.Job_State
		reason         string
		infrastructure bool
		exit           int32 // -1: none
		message        string
		held           bool
	}
	const (
		submitted, running, succeeded = dagbridgev1.Job_SUBMITTED, dagbridgev1.Job_RUNNING, dagbridgev1.Job_SUCCEEDED
		failed, cancelled             = dagbridgev1.Job_FAILED, dagbridgev1.Job_CANCELLED
	)
	runs := `{running: {startedAt: "2026-01-01T00:00:10Z"}}`
	for name, c := range map[string]struct {
		job, object      string
		pods             []string
		admission, group string
		events           []string
		index            int // from 1; 0: none
		want             want
	}{
		"no pod yet":                                {job: jobRuns, want: want{state: submitted, exit: -1}},
		"it runs":                                   {job: jobRuns, pods: []string{pod("Running", runs, "")}, want: want{state: running, exit: -1}},
		"it has succeeded":                          {job: jobComplete, pods: []string{pod("Succeeded", ended("0", "Completed", `""`), "")}, want: want{state: succeeded}},
		"its outputs are no news":                   {job: jobComplete, pods: []string{pod("Succeeded", ended("0", "Completed", `'{"a":1}'`), "")}, want: want{state: succeeded}},
		"it has succeeded and its pod is gone":      {job: jobComplete, want: want{state: succeeded}},
		"success before the Job says so is no news": {job: jobRuns, pods: []string{pod("Succeeded", ended("0", "Completed", `""`), "")}, want: want{state: running, exit: -1}},
		"its kubelet started it twice": {job: jobComplete, pods: []string{`{metadata: {name: x}, status: {phase: Succeeded, containerStatuses: [{name: main, restartCount: 1, state: ` + ended("0", "Completed", `""`) + `}]}}`},
			want: want{state: succeeded, message: "its node has started the program 2 times"}},
		"exit 3":                     {job: jobExit3, pods: []string{pod("Failed", ended("3", "Error", `""`), "")}, want: want{state: failed, exit: 3}},
		"exit 3 and its pod is gone": {job: jobExit3, want: want{state: failed, exit: 3}},
		"exit 143 of its own":        {job: jobBackoff, pods: []string{pod("Failed", ended("143", "Error", `""`), "")}, want: want{state: failed, exit: 143}},
		"out of memory":              {job: jobBackoff, pods: []string{pod("Failed", ended("137", "OOMKilled", `""`), "")}, want: want{state: failed, reason: "OUT_OF_MEMORY", exit: 137}},
		"a child was killed for want of memory, and nobody noticed": {job: jobComplete, pods: []string{pod("Succeeded", ended("0", "OOMKilled", `""`), "")}, want: want{state: failed, reason: "OUT_OF_MEMORY"}},
		"killed for want of memory, and to be started again": {job: jobRuns, pods: []string{`{metadata: {name: x}, status: {phase: Running, containerStatuses: [{name: main, state: {waiting: {reason: CrashLoopBackOff}}, lastState: ` + ended("137", "OOMKilled", `""`) + `}, {name: istio-proxy, state: {running: {}}}]}}`},
			want: want{state: failed, reason: "OUT_OF_MEMORY", exit: 137}},
		"no such program": {job: jobBackoff, pods: []string{pod("Failed", ended("128", "StartError", `'failed to create containerd task: exec: "x": executable file not found in $PATH: unknown'`), "")},
			want: want{state: failed, reason: "NOT_STARTED", exit: 127, message: `failed to create containerd task: exec: "x": executable file not found in $PATH: unknown`}},
		"a program that may not be run": {job: jobBackoff, pods: []string{pod("Failed", ended("128", "StartError", `'exec: "/etc/passwd": permission denied'`), "")},
			want: want{state: failed, reason: "NOT_STARTED", exit: 126, message: `exec: "/etc/passwd": permission denied`}},
		"evicted for what it wrote": {job: jobBackoff, pods: []string{pod("Failed", ended("137", "Error", `""`), `, reason: Evicted, message: "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "`)},
			want: want{state: failed, reason: "EVICTED", exit: 137, message: "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi."}},
		"evicted for what its node lacked": {job: jobDisrupt, pods: []string{pod("Failed", ended("137", "Error", `""`), `, reason: Evicted, message: "The node was low on resource: memory.", conditions: [{type: DisruptionTarget, status: "True", reason: TerminationByKubelet}]`)},
			want: want{state: failed, reason: "EVICTED", infrastructure: true, exit: 137, message: "The node was low on resource: memory."}},
		"preempted": {job: jobDisrupt, pods: []string{pod("Failed", ended("143", "Error", `""`), `, conditions: [{type: DisruptionTarget, status: "True", reason: PreemptionByScheduler, message: "default-scheduler: preempting to accommodate a higher priority pod"}]`)},
			want: want{state: failed, reason: "PREEMPTED", infrastructure: true, exit: 143, message: "default-scheduler: preempting to accommodate a higher priority pod"}},
		"its node was lost": {job: jobDisrupt, pods: []string{pod("Failed", ended("137", "ContainerStatusUnknown", `""`), `, conditions: [{type: DisruptionTarget, status: "True", reason: DeletionByTaintManager, message: "Taint manager: deleting due to NoExecute taint"}]`)},
			want: want{state: failed, reason: "NODE_FAIL", infrastructure: true, exit: 137, message: "Taint manager: deleting due to NoExecute taint"}},
		"taken away in a way that no table knows": {job: jobDisrupt, pods: []string{pod("Failed", ended("137", "Error", `""`), `, conditions: [{type: DisruptionTarget, status: "True", reason: Novel, message: "x"}]`)},
			want: want{state: failed, reason: "DISRUPTED", infrastructure: true, exit: 137, message: "x"}},
		"taken away, and the pod is gone": {job: jobDisrupt, want: want{state: failed, reason: "DISRUPTED", infrastructure: true, exit: -1, message: "Pod ml/train-x has condition DisruptionTarget matching FailJob rule at index 0"}},
		"its node does not answer":        {job: jobRuns, pods: []string{pod("Running", runs, `, reason: NodeLost`)}, want: want{state: running, reason: "NODE_FAIL", exit: -1, message: "its node does not answer"}},
		"its kubelet refused it": {job: jobBackoff, pods: []string{`{metadata: {name: x}, status: {phase: Failed, reason: OutOfcpu, message: "Pod was rejected: Node didn't have enough resource: cpu"}}`},
			want: want{state: failed, reason: "LAUNCH_FAILED", infrastructure: true, exit: -1, message: "Pod was rejected: Node didn't have enough resource: cpu"}},
		"too long": {job: jobExit3, pods: []string{pod("Failed", ended("137", "Error", `""`), `, reason: DeadlineExceeded, message: "Pod was active on the node longer than the specified deadline"`)},
			want: want{state: failed, reason: "TIMEOUT", exit: 137, message: "Pod was active on the node longer than the specified deadline"}},
		"too long by the Job's own limit": {job: `{status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded, message: "Job was active longer than specified deadline"}]}}`,
			want: want{state: failed, reason: "TIMEOUT", exit: -1, message: "Job was active longer than specified deadline"}},
		"an init container failed": {job: jobBackoff, pods: []string{`{metadata: {name: x}, status: {phase: Failed, initContainerStatuses: [{name: fetch, state: ` + ended("2", "Error", `"no route"`) + `}], containerStatuses: [{name: main, state: {waiting: {reason: PodInitializing}}}]}}`},
			want: want{state: failed, reason: "INIT_FAILED", exit: -1, message: "container fetch ended with exit code 2: no route"}},
		"a pod whose failure nobody explains": {job: jobBackoff, want: want{state: failed, exit: -1, message: "Job has reached the specified backoff limit"}},
		"a sidecar goes on": {job: jobRuns, pods: []string{`{metadata: {name: x}, status: {phase: Running, containerStatuses: [{name: istio-proxy, state: {running: {}}}, {name: main, state: ` + ended("0", "Completed", `""`) + `}]}}`},
			want: want{state: succeeded}},
		"a sidecar goes on after a failure": {job: jobRuns, pods: []string{`{metadata: {name: x}, status: {phase: Running, containerStatuses: [{name: istio-proxy, state: {running: {}}}, {name: main, state: ` + ended("3", "Error", `""`) + `}]}}`},
			want: want{state: failed, exit: 3}},
		"a sidecar failed after the program": {job: jobBackoff, pods: []string{`{metadata: {name: x}, status: {phase: Failed, containerStatuses: [{name: proxy, state: ` + ended("1", "Error", `""`) + `}, {name: main, state: ` + ended("0", "Completed", `""`) + `}]}}`},
			want: want{state: failed, message: "a container beside the program's failed: container proxy ended with exit code 1"}},
		"the program's container has a name of its own": {job: jobRuns, pods: []string{`{metadata: {name: x, annotations: {kubectl.kubernetes.io/default-container: pytorch}}, status: {phase: Running, containerStatuses: [{name: main, state: ` + ended("3", "Error", `""`) + `}, {name: pytorch, state: ` + runs + `}]}}`},
			want: want{state: running, exit: -1}},

		"an image that may not be pulled":              {job: jobRuns, pods: []string{pod("Pending", `{waiting: {reason: ErrImageNeverPull, message: 'Container image "localhost/absent:1" is not present with pull policy of Never'}}`, "")}, want: want{state: submitted, reason: "IMAGE_PULL", exit: -1, message: `container main: Container image "localhost/absent:1" is not present with pull policy of Never`}},
		"an image that cannot be pulled":               {job: jobRuns, pods: []string{pod("Pending", `{waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x": connection refused'}}`, "")}, want: want{state: submitted, reason: "IMAGE_PULL", exit: -1, message: `container main: Back-off pulling image "x": connection refused`}},
		"a config map that is not there":               {job: jobRuns, pods: []string{pod("Pending", `{waiting: {reason: CreateContainerConfigError, message: 'configmap "absent" not found'}}`, "")}, want: want{state: submitted, reason: "CONFIG", exit: -1, message: `container main: configmap "absent" not found`}},
		"it is being started":                          {job: jobRuns, pods: []string{pod("Pending", `{waiting: {reason: ContainerCreating}}`, "")}, want: want{state: submitted, reason: "STARTING", exit: -1}},
		"no node has room":                             {job: jobRuns, pods: []string{`{metadata: {name: x}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient cpu."}]}}`}, want: want{state: submitted, reason: "RESOURCES", exit: -1, message: "0/1 nodes are available: 1 Insufficient cpu."}},
		"a gate":                                       {job: jobRuns, pods: []string{`{metadata: {name: x}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: "Scheduling is blocked due to non-empty scheduling gates"}]}}`}, want: want{state: submitted, reason: "GATED", exit: -1, message: "Scheduling is blocked due to non-empty scheduling gates"}},
		"over quota":                                   {job: jobRuns, events: []string{`{type: Normal, reason: Suspended, message: x}`, `{type: Warning, reason: FailedCreate, message: 'Error creating: pods "train-x" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=9, limited: cpu=10'}`}, want: want{state: submitted, reason: "QUOTA", exit: -1, message: `Error creating: pods "train-x" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=9, limited: cpu=10`}},
		"a service account that is absent":             {job: jobRuns, events: []string{`{type: Warning, reason: FailedCreate, message: 'Error creating: pods "train-x" is forbidden: error looking up service account ml/x: serviceaccount "x" not found'}`}, want: want{state: submitted, reason: "REFUSED", exit: -1, message: `Error creating: pods "train-x" is forbidden: error looking up service account ml/x: serviceaccount "x" not found`}},
		"what was said before there were pods is over": {job: jobRuns, events: []string{`{type: Warning, message: exceeded quota}`}, pods: []string{pod("Running", runs, "")}, want: want{state: running, exit: -1}},

		"held": {job: `{metadata: {annotations: {dagbridge.io/queue: ""}}, spec: {suspend: true}}`, want: want{state: submitted, reason: "HELD", exit: -1, held: true}},
		"released, and its queue has not admitted it": {job: suspended, admission: `{status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 100m more needed"}]}}`,
			want: want{state: submitted, reason: "QUEUED", exit: -1, message: "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 100m more needed"}},
		"queued, and Kueue has said nothing": {job: suspended, want: want{state: submitted, reason: "QUEUED", exit: -1, message: "its queue has not admitted it yet"}},
		"sent back into its queue": {job: suspended, admission: `{status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: Preempted}, {type: Evicted, status: "True", reason: Preempted, message: "Preempted to accommodate a workload (UID: 1) due to prioritization in the ClusterQueue"}]}}`,
			want: want{state: submitted, reason: "PREEMPTED", exit: -1, message: "Preempted to accommodate a workload (UID: 1) due to prioritization in the ClusterQueue"}},
		"a gang without room": {job: jobRuns, pods: []string{`{metadata: {name: x}, status: {phase: Pending}}`}, group: `{status: {conditions: [{type: PodGroupInitiallyScheduled, status: "False", reason: Unschedulable, message: "not enough"}]}}`, want: want{state: submitted, reason: "GANG", exit: -1, message: "not enough"}},
		"half of a gang":      {job: jobRuns, pods: []string{`{metadata: {name: x}, status: {phase: Pending}}`}, group: `{}`, want: want{state: submitted, reason: "GANG", exit: -1, message: "its gang waits for room for all of its pods"}},

		"it is being deleted":                {job: `{metadata: {deletionTimestamp: "2026-01-01T00:00:15Z"}}`, pods: []string{pod("Running", runs, "")}, want: want{state: running, reason: "DELETED", exit: -1, message: "it is being deleted"}},
		"it was deleted before it started":   {job: `{metadata: {deletionTimestamp: "2026-01-01T00:00:15Z"}}`, want: want{state: cancelled, reason: "DELETED", exit: -1, message: "it was deleted"}},
		"it was deleted, and ended by that":  {job: `{metadata: {deletionTimestamp: "2026-01-01T00:00:20Z"}}`, pods: []string{pod("Failed", ended("143", "Error", `""`), "")}, want: want{state: cancelled, reason: "DELETED", exit: 143, message: "it was deleted"}},
		"deleted, and it made a good end":    {job: `{metadata: {deletionTimestamp: "2026-01-01T00:00:20Z"}, status: {conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-01-01T00:00:21Z"}]}}`, pods: []string{pod("Succeeded", ended("0", "Completed", `""`), "")}, want: want{state: cancelled, reason: "DELETED", exit: -1, message: "it was deleted"}},
		"deleted after its end":              {job: `{metadata: {deletionTimestamp: "2026-01-01T00:01:00Z"}, status: {conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-01-01T00:00:21Z"}]}}`, pods: []string{pod("Succeeded", ended("0", "Completed", `""`), "")}, want: want{state: succeeded}},
		"its pod was deleted by somebody":    {job: jobBackoff, pods: []string{`{metadata: {name: train-x, deletionTimestamp: "2026-01-01T00:00:49Z", deletionGracePeriodSeconds: 30}, status: {phase: Failed, containerStatuses: [{name: main, state: ` + ended("143", "Error", `""`) + `}]}}`}, want: want{state: cancelled, reason: "DELETED", exit: 143, message: "its pod train-x was deleted, and not by the gateway"}},
		"its pod was deleted after its end":  {job: jobBackoff, pods: []string{`{metadata: {name: train-x, deletionTimestamp: "2026-01-01T00:00:55Z", deletionGracePeriodSeconds: 30}, status: {phase: Failed, containerStatuses: [{name: main, state: ` + ended("3", "Error", `""`) + `}]}}`}, want: want{state: failed, exit: 3}},
		"a deleted pod that made a good end": {job: jobComplete, pods: []string{`{metadata: {name: train-x, deletionTimestamp: "2026-01-01T00:00:49Z", deletionGracePeriodSeconds: 30}, status: {phase: Succeeded, containerStatuses: [{name: main, state: ` + ended("0", "Completed", `""`) + `}]}}`}, want: want{state: cancelled, reason: "DELETED", exit: -1, message: "its pod was deleted, and not by the gateway, before the program ended"}},
		"its pod is being deleted":           {job: jobRuns, pods: []string{`{metadata: {name: train-x, deletionTimestamp: "2026-01-01T00:00:49Z"}, status: {phase: Running, containerStatuses: [{name: main, state: ` + runs + `}]}}`}, want: want{state: running, reason: "DELETED", exit: -1, message: "its pod train-x is being deleted"}},

		"an index that has succeeded, of a Job that has failed": {index: 4, job: `{spec: {completionMode: Indexed}, status: {completedIndexes: "0,2-5", failedIndexes: "1", conditions: [{type: Failed, status: "True", reason: FailedIndexes, message: "Job has failed indexes", lastTransitionTime: "2026-01-01T00:00:30Z"}]}}`, want: want{state: succeeded}},
		"an index that has failed, of a Job that runs":          {index: 2, job: `{spec: {completionMode: Indexed}, status: {completedIndexes: "0", failedIndexes: "1"}}`, pods: []string{pod("Failed", ended("3", "Error", `""`), "")}, want: want{state: failed, exit: 3}},
		"an index that has not started":                         {index: 9, job: `{spec: {completionMode: Indexed}, status: {completedIndexes: "0-7,9", failedIndexes: ""}}`, want: want{state: submitted, exit: -1}},

		"a JobSet that runs":         {object: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, status: {}}`, pods: []string{pod("Running", runs, ""), pod("Pending", `{waiting: {reason: ContainerCreating}}`, "")}, want: want{state: running, exit: -1}},
		"a JobSet half of which ran": {object: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, status: {}}`, pods: []string{pod("Succeeded", ended("0", "Completed", `""`), "")}, want: want{state: running, exit: -1}},
		"a JobSet that completed":    {object: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, status: {conditions: [{type: Completed, status: "True", reason: AllJobsCompleted, message: "jobset completed successfully", lastTransitionTime: "2026-01-01T00:00:30Z"}], terminalState: Completed}}`, want: want{state: succeeded}},
		"a JobSet that failed": {object: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, status: {conditions: [{type: Failed, status: "True", reason: FailedJobs, message: "jobset failed due to one or more job failures", lastTransitionTime: "2026-01-01T00:00:30Z"}]}}`,
			pods: []string{`{metadata: {name: b}, status: {phase: Failed, containerStatuses: [{name: main, state: {terminated: {exitCode: 143, reason: Error, finishedAt: "2026-01-01T00:00:25Z"}}}]}}`, pod("Failed", ended("3", "Error", `""`), "")}, want: want{state: failed, exit: 3}},
		"a JobSet in its queue":           {object: `{spec: {suspend: true}}`, want: want{state: submitted, reason: "QUEUED", exit: -1, message: "its queue has not admitted it yet"}},
		"a JobSet that is held":           {object: `{metadata: {annotations: {dagbridge.io/queue: q}}, spec: {suspend: true}}`, want: want{state: submitted, reason: "HELD", exit: -1, held: true}},
		"a kind of its own has succeeded": {object: `{metadata: {annotations: {dagbridge.io/success: "status.phase=Done", dagbridge.io/failure: "status.phase=Broken"}}, status: {phase: Done}}`, want: want{state: succeeded}},
		"a kind of its own has failed":    {object: `{metadata: {annotations: {dagbridge.io/success: "status.phase=Done", dagbridge.io/failure: "status.phase=Worse\nstatus.phase=Broken"}}, status: {phase: Broken, message: "it broke", reason: Rust}}`, want: want{state: failed, exit: -1, message: "it broke"}},
		"a kind of its own that is held":  {object: `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {annotations: {dagbridge.io/queue: "", dagbridge.io/success: "a=b", dagbridge.io/failure: "a=c"}}, spec: {runPolicy: {suspend: true}}}`, want: want{state: submitted, reason: "HELD", exit: -1, held: true}},
	} {
		s := kubernetes.Status{Index: c.index - 1}
		if c.job != "" {
			s.Job = &batchv1.Job{}
			read(t, c.job, s.Job)
		}
		for from, into := range map[string]*map[string]any{c.object: &s.Object, c.admission: &s.Admission, c.group: &s.Group} {
			if from != "" {
				read(t, from, into)
			}
		}
		for _, text := range c.pods {
			p := &corev1.Pod{}
			read(t, text, p)
			s.Pods = append(s.Pods, p)
		}
		for _, text := range c.events {
			e := &corev1.Event{}
			read(t, text, e)
			s.Events = append(s.Events, e)
		}
		n := kubernetes.State(s)
		got := want{state: n.State, reason: n.Reason, infrastructure: n.Infrastructure, exit: -1, message: n.Message, held: n.Held}
		if n.ExitCode != nil {
			got.exit = *n.ExitCode
		}
		require.Equal(t, c.want, got, name)
		require.Equal(t, n.State == dagbridgev1.Job_SUBMITTED, n.StartTime.IsZero() && n.State < dagbridgev1.Job_SUCCEEDED && n.State != dagbridgev1.Job_RUNNING, name)
	}
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), into), text)
}

func TestWhenAndWhereAProgramRan(t *testing.T) {
	t.Parallel()
	s := kubernetes.Status{Job: &batchv1.Job{}, Index: -1}
	read(t, jobComplete, s.Job)
	for _, node := range []string{"node-2", "node-1", "node-2"} {
		p := &corev1.Pod{}
		read(t, pod("Succeeded", ended("0", "Completed", `""`), ""), p)
		p.Spec.NodeName = node
		s.Pods = append(s.Pods, p)
	}
	s.Pods[1].Status.ContainerStatuses[0].State.Terminated.FinishedAt.Time = time.Date(2026, 1, 1, 0, 0, 25, 0, time.UTC)
	n := kubernetes.State(s)
	require.Equal(t, "node-1,node-2", n.Node)
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC), n.StartTime)
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 25, 0, time.UTC), n.EndTime)

	s.Pods = nil
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC), kubernetes.State(s).EndTime, "by its own word, where the pods are gone")
}
