package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend/kubernetes"
	"github.com/dagbridge/dagbridge/translators"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// workers is how many calls the gateway makes of an API server at once.
const workers = 32

// overKubernetes starts a gateway in front of a namespace, by way of a door that counts.
func overKubernetes(b *testing.B, door *door, namespace string) *process {
	return startProcess(b, gatewayRole(b, b.TempDir(), clusterOptions{Kubernetes: &kubernetes.Options{
		Name: "k8s", Kubeconfig: door.kubeconfig, Namespaces: []string{namespace}, Site: translate.Site{Image: kubernetestest.Image}, Rate: 10_000,
	}})...)
}

// stuck is a task that its queue never admits: its Job is made, and nothing runs.
func stuck(run string, i int) *dagbridgev1.Task {
	return &dagbridgev1.Task{
		Key:     &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "risk", Run: run, Task: fmt.Sprintf("task_%06d", i)},
		Command: &dagbridgev1.Command{Argv: []string{"python", "train.py"}}, Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "1Gi"},
		Kubernetes: &dagbridgev1.KubernetesOptions{Queue: "closed"},
	}
}

// submitted hands a run of tasks over, and returns when the API server has all of them.
func submitted(b *testing.B, p *process, run string, n int) {
	b.Helper()
	w := &dagbridgev1.Workflow{Run: &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "risk", Run: run}}
	for i := range n {
		w.Tasks = append(w.Tasks, stuck(run, i))
	}
	_, err := p.client.SubmitWorkflow(b.Context(), w)
	require.NoError(b, err)
	for left := n; left > 0; {
		jobs, err := p.client.ListJobs(b.Context(), &dagbridgev1.ListJobsRequest{Run: run, State: []dagbridgev1.Job_State{dagbridgev1.Job_ACCEPTED}, PageSize: 1})
		require.NoError(b, err)
		if left = len(jobs.GetJobs()); left > 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// BenchmarkKubernetesSubmit compares a run of 1,000 tasks with a bare client-go loop of as many workers that makes the same Jobs.
func BenchmarkKubernetesSubmit(b *testing.B) {
	const n = 1000
	c := kubernetestest.Shared(b)
	namespace := c.Namespace(b)
	door := newDoor(b, c)
	gateway := overKubernetes(b, door, namespace)
	config := door.config(b)
	config.QPS, config.Burst = 10_000, 20_000
	client, err := dynamic.NewForConfig(config)
	require.NoError(b, err)
	bare := func(run string) {
		at := client.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(namespace)
		spread(n, workers, func(_, i int) {
			task := stuck(run, i)
			job := &dagbridgev1.Job{Id: fmt.Sprintf("bare-%s-%d", run, i), Key: task.GetKey(), TryNumber: 1}
			w, faults := translate.Translate(translate.Site{Namespace: namespace, Image: kubernetestest.Image}, translators.Submission{Token: job.GetId() + ".1", Job: job, Task: task})
			if len(faults) > 0 {
				b.Error(faults)
				return
			}
			if _, err := at.Create(b.Context(), &unstructured.Unstructured{Object: w.Main()}, metav1.CreateOptions{}); err != nil {
				b.Error(err)
			}
		})
	}
	var ours, theirs []float64
	for round := range *rounds {
		began := time.Now()
		bare(fmt.Sprint(round))
		theirs = append(theirs, n/time.Since(began).Seconds())
		began = time.Now()
		submitted(b, gateway, fmt.Sprint(round), n)
		ours = append(ours, n/time.Since(began).Seconds())
	}
	compare("a run of 1,000 tasks on Kubernetes", "client-go, 32 workers", "/s", ours, theirs, aim{atLeast: 0.9})
}

// BenchmarkKubernetesRelease measures how soon after the API server has told of the end of a job that follower's Job is asked for
// which was held for it.
func BenchmarkKubernetesRelease(b *testing.B) {
	const n = 20
	c := kubernetestest.Shared(b)
	namespace := c.Namespace(b)
	door := newDoor(b, c)
	gateway := overKubernetes(b, door, namespace)
	client, err := batchclient.NewForConfig(door.config(b))
	require.NoError(b, err)
	watch, err := client.Jobs(namespace).Watch(b.Context(), metav1.ListOptions{})
	require.NoError(b, err)
	defer watch.Stop()
	w := &dagbridgev1.Workflow{Run: &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "chain", Run: "1"}}
	for i := range n {
		task := &dagbridgev1.Task{
			Key:     &dagbridgev1.TaskKey{Task: fmt.Sprintf("t%02d", i)},
			Command: &dagbridgev1.Command{Argv: []string{"true"}}, Resources: &dagbridgev1.Resources{Cpu: "5m", Memory: "16Mi"},
			Kubernetes: &dagbridgev1.KubernetesOptions{Template: &dagbridgev1.Json{Text: `{"spec": {"hostNetwork": true}}`}},
		}
		if i > 0 {
			task.Upstream = []*dagbridgev1.Edge{{Task: fmt.Sprintf("t%02d", i-1)}}
		}
		w.Tasks = append(w.Tasks, task)
	}
	door.reset()
	_, err = gateway.client.SubmitWorkflow(b.Context(), w)
	require.NoError(b, err)
	ends := map[string]time.Time{}
	for event := range watch.ResultChan() {
		job, ok := event.Object.(*batchv1.Job)
		if ok && ends[job.Name].IsZero() && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete }) {
			ends[job.Name] = time.Now()
		}
		if len(ends) == n {
			break
		}
	}
	var all []time.Time
	for _, at := range ends {
		all = append(all, at)
	}
	slices.SortFunc(all, time.Time.Compare)
	made := door.times("POST jobs")
	require.Len(b, made, n)
	var took []float64
	for i, at := range all[:n-1] {
		took = append(took, float64(made[i+1].Sub(at).Microseconds())/1000)
	}
	figure("the next Job of a chain on Kubernetes, after the news", "ms", took, aim{atMost: 50})
}
