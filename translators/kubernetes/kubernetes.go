// Package kubernetes says things the way Kubernetes says them: a Submission as manifests, the status of what they made as
// ours.
//
// # What is made
//
// A task is a Job with one pod that is never started a second time (backoffLimit 0: attempts are the engine's, and visible);
// an array one Indexed Job; a task of several nodes a JobSet, whose pods find each other by name; and with a template of
// another kind, whatever that is. A pod is a node. Beside it there is, for some gangs, a PodGroup. Nothing owns them, and
// nothing removes them by itself: a name that is taken is what keeps an attempt from running twice. So a name is a matter of
// the token alone (Name), the token is in a label, and whoever finds the name taken finds his own.
//
// # How the program gets in
//
// The image is the user's and stays as it is, there is no sidecar, and no second object whose creation might fail:
//
//   - A command is the container's command. A script, the prologue and DAGBRIDGE_INPUTS are annotations of the pod, which
//     the kubelet shows as files in /dagbridge (a downward API volume); the script is run by the interpreter that it names.
//     So an image needs no shell for these, but it needs the interpreter.
//   - A prologue, and an array, whose pods differ in nothing but their index, need sh: it reads /dagbridge/prologue and
//     /dagbridge/array, and becomes the program.
//   - DAGBRIDGE_OUTPUT is the container's termination message, of which Kubernetes keeps 4 KiB. It has to be written in
//     place: the file cannot be renamed over. Where the cluster's configuration says how the gateway is reached, a program can
//     push larger ones, by a token of its own pod (a projected service account token for the audience "dagbridge-outputs").
//   - No markers: the API server knows whether a pod has started, and whether a name was ever taken.
//
// A program's bytes are never Kubernetes': what it would expand in a command or a value, "$(NAME)" and "$$", is escaped.
// Without workingDirectory a command or a script runs in an empty folder of the job's own, which goes with the pod, and an
// image's own program where its image says.
//
// # What is laid over what
//
// The cluster's pod template, over it the task's (kubernetes.template), over it all that the task says otherwise, each as
// kubectl patch does it (a strategic merge): fields are replaced, maps and lists of named things (containers, volumes, env,
// mounts by their path) are merged, other lists (tolerations) are replaced whole; null removes. The program's container is
// the one named main, or the only one there is.
//
// The package is pure, as all translators are: no context, network, files, clock, randomness or logging. It does not know
// how an API server is reached.
package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

const (
	// MaxArraySize is how many instances an array may have here: their ids and variables share a pod's annotations.
	MaxArraySize = 1000
	// maxAnnotationBytes is what an object's annotations may have together, by the API server's check.
	maxAnnotationBytes = 256 << 10
	// maxObjectBytes is etcd's limit of 1.5 MiB for a request, less what the API server adds.
	maxObjectBytes = 1536<<10 - 128<<10
)

// Site is what the translator must know of a cluster.
type Site struct {
	// Namespace of tasks that name none; "": default.
	Namespace string
	// Image of tasks that name none; "": they are refused.
	Image string
	// Prologue is shell lines before every program.
	Prologue string
	// Queue of tasks that name none; "": they do not queue.
	Queue string
	// PodTemplate is JSON, a pod's metadata and spec, below every task's; "": none.
	PodTemplate string
	// Launcher is an image with this program, which starts steps of pipelines; "": none do.
	Launcher string
	// Pipelines is the folder that these share, of the nodes; or, with PipelinesClaim, where pods find that claim's volume.
	Pipelines, PipelinesClaim string
	// URL is where programs reach the gateway's REST, to push outputs; "": they cannot.
	URL string
	// GPUs is how GPUs of a type are asked for; the type "" is any. Left out, any is DefaultGPU.
	GPUs map[string]GPU
}

// GPU is how GPUs of one type are asked for.
type GPU struct {
	// Resource that counts them ("nvidia.com/gpu").
	Resource string
	// NodeSelector of the nodes that have them; may be nil.
	NodeSelector map[string]string
}

// DefaultGPU is any GPU where the site says nothing else.
var DefaultGPU = GPU{Resource: "nvidia.com/gpu"}

// Workload is all that is made for a submission.
type Workload struct {
	Namespace string
	// Name of every object.
	Name string
	// Objects in the order in which they are to be made; the workload itself is the last one.
	Objects []map[string]any
	// Notices are sentences on what was changed or means nothing here.
	Notices []string
	// Lacking is what it cannot be submitted without, though it can be shown.
	Lacking translators.Faults
}

// Main is the workload itself.
func (w *Workload) Main() map[string]any { return w.Objects[len(w.Objects)-1] }

// Translate makes manifests of a submission. All that is wrong with it is told at once, by the task's fields.
func Translate(site Site, s translators.Submission) (*Workload, translators.Faults) {
	t := &translation{site: site, submission: s, task: s.Task, options: s.Task.GetKubernetes(), workload: &Workload{}}
	t.foreign()
	t.identify()
	t.program()
	t.podOptions()
	t.launcher()
	t.resources()
	t.manifests()
	if len(t.faults) > 0 {
		return nil, t.faults
	}
	return t.workload, nil
}

// translation is a Translate in progress.
type translation struct {
	site       Site
	submission translators.Submission
	task       *dagbridgev1.Task
	options    *dagbridgev1.KubernetesOptions
	workload   *Workload

	// labels and annotations of every object and pod.
	labels, annotations map[string]string
	// queue is Kueue's; "" when the workload does not queue.
	queue string
	// files are what the pod finds in its folder, by name.
	files map[string]string
	// pod and main are what the task itself says of a pod and of its program's container.
	pod  corev1.PodSpec
	main corev1.Container
	// manifest is the task's template, when it is of a kind of its own.
	manifest map[string]any
	kind     kind

	faults translators.Faults
}

func (t *translation) fault(field, format string, args ...any) { t.faults.Add(field, format, args...) }

func (t *translation) notice(format string, args ...any) {
	t.workload.Notices = append(t.workload.Notices, fmt.Sprintf(format, args...))
}

// isArray says whether the workload is an array.
func (t *translation) isArray() bool { return len(t.submission.Instances) > 0 }

// nodes is how many pods run the program together.
func (t *translation) nodes() int { return max(int(t.task.GetResources().GetNodes()), 1) }

// foreign tells what other schedulers would make of the task, and refuses what none here does.
func (t *translation) foreign() {
	if t.task.GetSlurm() != nil {
		t.notice("slurm: means nothing on Kubernetes")
	}
	if len(t.submission.Depends.Terms) > 0 {
		t.fault("upstream", "Kubernetes keeps no dependencies: submit the task when its upstreams have ended")
	}
	tasks := t.task.GetResources().GetTasksPerNode()
	perTask := t.task.GetLaunch() == dagbridgev1.Task_PER_TASK
	if tasks > 1 && perTask {
		t.fault("launch", "a pod starts its program once: PER_TASK needs tasksPerNode 1, or a program that starts %d processes itself", tasks)
	}
	if t.nodes() == 1 || t.options.GetTemplate() != nil {
		return
	}
	if !perTask {
		t.fault("launch", "ONCE would leave %d of the %d pods without a program, and there is no srun that reaches them: PER_TASK runs it in each, "+
			"a template with roles of its own some other", t.nodes()-1, t.nodes())
	}
	if t.isArray() {
		t.fault("resources.nodes", "an instance of an array is one pod here, and %d nodes are asked for: leave the array out, or the nodes", t.nodes())
	}
}

// identify sets what the workload is recognised and found by.
func (t *translation) identify() {
	token, key := t.submission.Token, t.submission.Job.GetKey()
	w := t.workload
	w.Namespace = cmp.Or(t.options.GetNamespace(), t.site.Namespace, "default")
	w.Name = Name(key.GetTask(), token)
	t.labels = Labels(key, token)
	t.annotations = Annotations(key)
	t.checkToken(token)
	t.checkNames()
	t.queueUp()
	t.userLabels()
}

// decode reads JSON of the user's as the API's own structure, strictly.
func (t *translation) decode(field string, value *dagbridgev1.Json, into any) {
	if value != nil {
		t.decodeText(field, value.GetText(), into)
	}
}

// text is a value as JSON.
func text(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("an API object has no JSON form: %v", err)) // they all have one
	}
	return encoded
}

// oneOf is a list for a sentence.
func oneOf(words []string) string { return strings.Join(words, ", ") }
