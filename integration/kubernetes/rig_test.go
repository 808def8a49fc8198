package kubernetestest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/kubernetes"
	"github.com/dagbridge/dagbridge/translators"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// patience is how long one condition is waited for.
const patience = 3 * time.Minute

// rig is a back end with a namespace of its own, and what it observes.
type rig struct {
	cluster   *kubernetestest.Cluster
	namespace string
	backend   *kubernetes.Backend
	watcher   *backendtest.Watcher
}

// newRig makes a namespace, and a back end for it that is the administrator's.
func newRig(t *testing.T) *rig {
	t.Helper()
	c := kubernetestest.Shared(t)
	return newRigAs(t, c, c.Namespace(t), c.Kubeconfig)
}

func newRigAs(t *testing.T, c *kubernetestest.Cluster, namespace, kubeconfig string) *rig {
	t.Helper()
	b, err := kubernetes.New(kubernetes.Options{
		Name: "test", Kubeconfig: kubeconfig, Namespaces: []string{namespace},
		Site: translate.Site{Image: kubernetestest.Image, PodTemplate: `{"spec": {"terminationGracePeriodSeconds": 1}}`},
	})
	require.NoError(t, err)
	r := &rig{cluster: c, namespace: namespace, backend: b, watcher: backendtest.Watch(t, b)}
	t.Cleanup(func() {
		r.watcher.Stop()
		require.NoError(t, b.Close())
	})
	return r
}

// sh is a task that runs lines of sh.
func sh(lines string) *dagbridgev1.Task {
	return &dagbridgev1.Task{
		Command:   &dagbridgev1.Command{Argv: []string{"sh", "-c", lines}},
		Resources: &dagbridgev1.Resources{Cpu: "5m", Memory: "32Mi"},
	}
}

// attempt is a submission that the API server has.
type attempt struct {
	translators.Submission
	rig *rig
	ref backend.NativeRef
}

func (r *rig) submit(t *testing.T, task *dagbridgev1.Task) *attempt {
	t.Helper()
	return r.submission(t, backendtest.Submission(t, task))
}

func (r *rig) submission(t *testing.T, s translators.Submission) *attempt {
	t.Helper()
	result := r.backend.Submit(t.Context(), []translators.Submission{s})[0]
	require.Equal(t, backend.Submitted, result.Outcome, result.Message)
	a := &attempt{Submission: s, rig: r, ref: result.Ref}
	r.watcher.Add(a.known())
	return a
}

// array submits so many instances of a task.
func (r *rig) array(t *testing.T, task *dagbridgev1.Task, size int) *attempt {
	t.Helper()
	task.Array = &dagbridgev1.Array{}
	for range size {
		task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{})
	}
	s := backendtest.Submission(t, task)
	for i, item := range task.Array.Items {
		s.Instances = append(s.Instances, translators.Instance{Position: i, JobID: s.Job.Id, MapIndex: []int32{int32(i)}, Item: item})
	}
	return r.submission(t, s)
}

// known is the attempt as the engine knows it; of an array these positions, or all.
func (a *attempt) known(positions ...int) backend.Known {
	k := backend.Known{Ref: a.ref, Job: a.Job, Positions: positions}
	for i := range a.Instances {
		if len(positions) == 0 {
			k.Positions = append(k.Positions, i)
		}
	}
	return k
}

// awaitAt waits for the state of an instance.
func (a *attempt) awaitAt(t *testing.T, position int, wanted dagbridgev1.Job_State) {
	t.Helper()
	a.rig.watcher.Await(t, a.ref, position, patience, wanted.String(), func(o backend.Observation) bool { return o.State == wanted })
}

// name is the workload's.
func (a *attempt) name() string { return a.ref.ID[strings.LastIndexByte(a.ref.ID, '/')+1:] }

func (a *attempt) await(t *testing.T, what string, wanted func(backend.Observation) bool) backend.Observation {
	t.Helper()
	return a.rig.watcher.Await(t, a.ref, -1, patience, what, wanted)
}

func (a *attempt) running(t *testing.T) backend.Observation {
	t.Helper()
	return a.await(t, "RUNNING", func(o backend.Observation) bool { return o.State == dagbridgev1.Job_RUNNING })
}

// waits waits until the job says why it does not start.
func (a *attempt) waits(t *testing.T, reason string) backend.Observation {
	t.Helper()
	return a.await(t, "waiting because of "+reason, func(o backend.Observation) bool {
		return o.State == dagbridgev1.Job_SUBMITTED && o.Reason == reason
	})
}

func (a *attempt) end(t *testing.T, state dagbridgev1.Job_State) backend.Observation {
	t.Helper()
	o := a.await(t, "at its end", func(o backend.Observation) bool {
		return o.Gone || o.State != dagbridgev1.Job_SUBMITTED && o.State != dagbridgev1.Job_RUNNING && o.State != dagbridgev1.Job_STATE_UNSPECIFIED
	})
	require.Equal(t, state, o.State, "%s: %s", o.Reason, o.Message)
	require.False(t, o.EndTime.IsZero(), "an end has a time")
	return o
}

// kubectl runs kubectl in the rig's namespace.
func (r *rig) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	return r.cluster.Kubectl(t, input, append([]string{"-n", r.namespace}, args...)...)
}
