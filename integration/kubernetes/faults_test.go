package kubernetestest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
)

// What becomes of a job that goes wrong is told by a state, a reason and a sentence, each by the real thing.
func TestWhatGoesWrong(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *rig){
		"exit 0":                            exitZero,
		"exit 3":                            exitThree,
		"more memory than it may have":      outOfMemory,
		"an image that nobody has":          noImage,
		"no such program":                   noProgram,
		"a config map that is not there":    noConfigMap,
		"no node has room":                  noRoom,
		"the namespace's quota of jobs":     jobsQuota,
		"the namespace's quota of pods":     podsQuota,
		"a limit that a quota asks for":     unlimited,
		"evicted":                           evictedPod,
		"its Job is deleted":                deletedJob,
		"its pod is deleted":                deletedPod,
		"deleted while nobody looked":       deletedUnseen,
		"the namespace is being deleted":    terminating,
		"what the API server does not take": invalid,
		"a kind that the cluster lacks":     noJobSet,
		"cancelled before it was submitted": marked,
		"a name that somebody else has":     taken,
		"an id that is another job's":       stranger,
		"a sidecar that goes on":            sidecar,
		"its child is out of memory":        killedChild,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t))
		})
	}
}

func exitZero(t *testing.T, r *rig) {
	o := r.submit(t, sh("exit 0")).end(t, dagbridgev1.Job_SUCCEEDED)
	require.EqualValues(t, 0, *o.ExitCode)
	require.NotEmpty(t, o.Node)
}

func exitThree(t *testing.T, r *rig) {
	o := r.submit(t, sh("exit 3")).end(t, dagbridgev1.Job_FAILED)
	require.EqualValues(t, 3, *o.ExitCode)
	require.Empty(t, o.Reason)
	require.False(t, o.Infrastructure)
}

func outOfMemory(t *testing.T, r *rig) {
	o := r.submit(t, sh(`exec awk 'BEGIN { for (s = "x"; ; ) s = s s }'`)).end(t, dagbridgev1.Job_FAILED)
	require.Equal(t, "OUT_OF_MEMORY", o.Reason)
	require.EqualValues(t, 137, *o.ExitCode)
	require.False(t, o.Infrastructure, "more memory would help, another node would not")
}

// killedChild: the program itself goes on when its child is killed, and ends well.
func killedChild(t *testing.T, r *rig) {
	o := r.submit(t, sh(`awk 'BEGIN { for (s = "x"; ; ) s = s s }'; exit 5`)).end(t, dagbridgev1.Job_FAILED)
	require.EqualValues(t, 5, *o.ExitCode, "the program's own word: %s %s", o.Reason, o.Message)
}

func noImage(t *testing.T, r *rig) {
	task := sh("true")
	task.Container = &dagbridgev1.Container{Image: "localhost/absent:1"}
	task.Kubernetes = &dagbridgev1.KubernetesOptions{ImagePullPolicy: "Never"}
	a := r.submit(t, task)
	o := a.waits(t, "IMAGE_PULL")
	require.Contains(t, o.Message, `"localhost/absent:1"`)
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{a.known()}))
	require.True(t, a.end(t, dagbridgev1.Job_CANCELLED).StartTime.IsZero(), "it never started")
}

func noProgram(t *testing.T, r *rig) {
	task := sh("")
	task.Command.Argv = []string{"no-such-program"}
	o := r.submit(t, task).end(t, dagbridgev1.Job_FAILED)
	require.Equal(t, "NOT_STARTED", o.Reason)
	require.EqualValues(t, 127, *o.ExitCode)
	require.Contains(t, o.Message, "no-such-program")
}

func noConfigMap(t *testing.T, r *rig) {
	task := sh("echo $COLOUR")
	task.Kubernetes = &dagbridgev1.KubernetesOptions{EnvFrom: &dagbridgev1.Json{Text: `[{"configMapRef": {"name": "colours"}}]`}}
	a := r.submit(t, task)
	require.Contains(t, a.waits(t, "CONFIG").Message, `configmap "colours" not found`)
	// It starts once somebody makes it: waiting is no end.
	r.kubectl(t, "", "create", "configmap", "colours", "--from-literal=COLOUR=green")
	a.end(t, dagbridgev1.Job_SUCCEEDED)
}

func noRoom(t *testing.T, r *rig) {
	task := sh("true")
	task.Resources.Cpu = "1000"
	require.Contains(t, r.submit(t, task).waits(t, "RESOURCES").Message, "Insufficient cpu")
}

func (r *rig) quota(t *testing.T, hard string) {
	t.Helper()
	r.kubectl(t, "", "create", "quota", "quota", "--hard="+hard)
	r.cluster.Eventually(t, "the quota is in force", func() error {
		if out := r.kubectl(t, "", "get", "quota", "quota", "-o", "jsonpath={.status.hard}"); out == "" {
			return fmt.Errorf("it has no status")
		}
		return nil
	})
}

func jobsQuota(t *testing.T, r *rig) {
	r.quota(t, "count/jobs.batch=1")
	first := r.submit(t, sh("true"))
	second := backendtest.Submission(t, sh("true"))
	result := r.backend.Submit(t.Context(), []translators.Submission{second})[0]
	require.Equal(t, backend.Busy, result.Outcome, "there may be room later: %s", result.Message)
	require.Contains(t, result.Message, "exceeded quota")
	first.end(t, dagbridgev1.Job_SUCCEEDED)
	r.kubectl(t, "", "delete", "job", first.name())
	r.cluster.Eventually(t, "the quota has room", func() error {
		result = r.backend.Submit(t.Context(), []translators.Submission{second})[0]
		if result.Outcome != backend.Submitted {
			return fmt.Errorf("%s", result.Message)
		}
		return nil
	})
}

func podsQuota(t *testing.T, r *rig) {
	r.quota(t, "pods=0")
	require.Contains(t, r.submit(t, sh("true")).waits(t, "QUOTA").Message, "exceeded quota")
}

// unlimited: a quota on limits makes pods say theirs. No waiting helps.
func unlimited(t *testing.T, r *rig) {
	r.quota(t, "limits.cpu=1")
	task := sh("true")
	task.Resources = nil
	require.Contains(t, r.submit(t, task).waits(t, "REFUSED").Message, "must specify limits.cpu")
}

func (a *attempt) pod(t *testing.T) string {
	t.Helper()
	return a.rig.kubectl(t, "", "get", "pods", "-l", "dagbridge.io/token="+a.Token, "-o", "jsonpath={.items[0].metadata.name}")
}

func evictedPod(t *testing.T, r *rig) {
	a := r.submit(t, sh("exec sleep 86400"))
	a.running(t)
	pod := a.pod(t)
	r.kubectl(t, fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": %q}}`, pod, r.namespace),
		"create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", r.namespace, pod), "-f", "-")
	o := a.end(t, dagbridgev1.Job_FAILED)
	require.Equal(t, "EVICTED", o.Reason, o.Message)
	require.True(t, o.Infrastructure)
	require.NotEmpty(t, o.Message)
}

func deletedJob(t *testing.T, r *rig) {
	a := r.submit(t, sh("exec sleep 86400"))
	a.running(t)
	r.kubectl(t, "", "delete", "job", a.name())
	o := a.end(t, dagbridgev1.Job_CANCELLED)
	require.Equal(t, "DELETED", o.Reason)
	require.Contains(t, o.Message, "deleted")
}

func deletedPod(t *testing.T, r *rig) {
	a := r.submit(t, sh(`trap "exit 0" TERM; while :; do sleep 0.1; done`))
	a.running(t)
	r.kubectl(t, "", "delete", "pod", a.pod(t))
	o := a.end(t, dagbridgev1.Job_CANCELLED) // though the program itself says that all is well
	require.Equal(t, "DELETED", o.Reason)
	require.Contains(t, o.Message, "not by the gateway")
}

// deletedUnseen: nobody can tell any more what became of it.
func deletedUnseen(t *testing.T, r *rig) {
	s := backendtest.Submission(t, sh("true"))
	result := r.backend.Submit(t.Context(), []translators.Submission{s})[0]
	require.Equal(t, backend.Submitted, result.Outcome, result.Message)
	a := &attempt{Submission: s, rig: r, ref: result.Ref}
	r.kubectl(t, "", "delete", "job", a.name())
	r.watcher.Add(a.known())
	o := a.await(t, "gone", func(o backend.Observation) bool { return o.Gone })
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, o.State)
	require.Equal(t, a.ref.ID+" is not there", o.Message)
}

func terminating(t *testing.T, r *rig) {
	r.kubectl(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stays", "finalizers": ["example.org/stays"]}}`, "create", "-f", "-")
	r.cluster.Kubectl(t, "", "delete", "namespace", r.namespace, "--wait=false")
	t.Cleanup(func() {
		r.kubectl(t, "", "patch", "configmap", "stays", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	})
	result := r.backend.Submit(t.Context(), []translators.Submission{backendtest.Submission(t, sh("true"))})[0]
	require.Equal(t, backend.Refused, result.Outcome)
	require.Contains(t, result.Message, "because it is being terminated")
}

func invalid(t *testing.T, r *rig) {
	task := sh("true")
	task.Kubernetes = &dagbridgev1.KubernetesOptions{VolumeMounts: &dagbridgev1.Json{Text: `[{"name": "absent", "mountPath": "/x"}]`}}
	result := r.backend.Submit(t.Context(), []translators.Submission{backendtest.Submission(t, task)})[0]
	require.Equal(t, backend.Refused, result.Outcome)
	require.Equal(t, `spec.template.spec.containers[0].volumeMounts[0].name: Not found: "absent"`, result.Message)
}

func noJobSet(t *testing.T, r *rig) {
	task := sh("true")
	task.Resources.Nodes, task.Launch = 2, dagbridgev1.Task_PER_TASK
	result := r.backend.Submit(t.Context(), []translators.Submission{backendtest.Submission(t, task)})[0]
	require.Equal(t, backend.Refused, result.Outcome)
	require.Contains(t, result.Message, "not installed")
}

// marked: the cancel comes before the request that it is about.
func marked(t *testing.T, r *rig) {
	s := backendtest.Submission(t, sh("true"))
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{{Ref: backend.NativeRef{Token: s.Token}, Job: s.Job}}))
	require.Equal(t, backend.Absent, r.backend.Find(t.Context(), []backend.Want{{Token: s.Token, Job: s.Job}})[0].Presence)
	o := r.submission(t, s).end(t, dagbridgev1.Job_CANCELLED)
	require.Equal(t, "MARKED", o.Reason)
	require.Empty(t, r.kubectl(t, "", "get", "pods", "-o", "name"))
}

func taken(t *testing.T, r *rig) {
	s := backendtest.Submission(t, sh("true"))
	name := (&attempt{ref: r.submission(t, s).ref}).name()
	r.kubectl(t, "", "delete", "job", name)
	r.kubectl(t, "", "create", "job", name, "--image=localhost/busybox:1", "--", "sleep", "86400")
	result := r.backend.Submit(t.Context(), []translators.Submission{s})[0]
	require.Equal(t, backend.Refused, result.Outcome)
	require.Contains(t, result.Message, "is taken")
}

func stranger(t *testing.T, r *rig) {
	a, other := r.submit(t, sh("exec sleep 86400")), backendtest.Submission(t, sh("true"))
	a.running(t)
	stale := backend.Known{Ref: backend.NativeRef{ID: a.ref.ID, Token: other.Token}, Job: other.Job, Double: true}
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{stale}))
	require.Empty(t, r.kubectl(t, "", "get", "job", a.name(), "-o", "jsonpath={.metadata.deletionTimestamp}"))
}

func sidecar(t *testing.T, r *rig) {
	task := sh("echo done")
	task.Kubernetes = &dagbridgev1.KubernetesOptions{Template: &dagbridgev1.Json{Text: `{"spec": {"containers": [
		{"name": "main"}, {"name": "proxy", "image": "localhost/busybox:1", "command": ["sleep", "86400"]}]}}`}}
	o := r.submit(t, task).end(t, dagbridgev1.Job_SUCCEEDED)
	require.EqualValues(t, 0, *o.ExitCode)
}
