package kubernetes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/kubernetes"
)

// taskOf reads a task as people write it.
func taskOf(t *testing.T, text string) *dagbridgev1.Task {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	task := &dagbridgev1.Task{}
	require.NoError(t, jsoncodec.Unmarshal(encoded, task), text)
	return task
}

func TestWhatKubernetesCannotSayIsRefusedWithASentence(t *testing.T) {
	t.Parallel()
	const program = `command: {argv: ["true"]}, `
	for name, c := range map[string]struct {
		task string
		want []string
	}{
		"quantities that are none":           {program + `resources: {cpu: many, memory: 100K}`, []string{`resources.cpu: "many" is not a number of CPUs`, `resources.memory: "100K" is no amount of memory: write 100k or 100Ki`}},
		"a negative quantity, and a half":    {program + `resources: {cpu: "-1", memory: 1000mi}`, []string{`resources.cpu: "-1" is negative`, `resources.memory: "1000mi" is`}},
		"a request beyond its limit":         {program + `resources: {cpu: "4"}, kubernetes: {template: {spec: {containers: [{name: main, resources: {limits: {cpu: "2"}}}]}}}`, []string{`resources: container main requests 4 of cpu, and its limit is 2`}},
		"a type of GPU that nobody knows":    {program + `resources: {gpus: [{type: a100}]}`, []string{`resources.gpus[0].type: the cluster's configuration does not say how GPUs of the type "a100" are asked for: leave the type out for any`}},
		"GPUs of two types":                  {program + `resources: {gpus: [{}, {}]}`, []string{`resources.gpus[1]: nvidia.com/gpu is asked for twice`}},
		"names that are none":                {program + `kubernetes: {namespace: My_Space, serviceAccount: "a b", priorityClass: "-", queue: "/", imagePullSecrets: ["A"], nodeSelector: {"a b": "c d"}, annotations: {"a b": x}}`, []string{`kubernetes.namespace: "My_Space": `, `kubernetes.serviceAccount: "a b": `, `kubernetes.priorityClass: "-": `, `kubernetes.queue: "/": `, `kubernetes.imagePullSecrets[0]: "A": `, `kubernetes.nodeSelector["a b"]: name part`, `kubernetes.nodeSelector["a b"]: a valid label`, `kubernetes.annotations["a b"]: `}},
		"what is the gateway's":              {program + `labels: {dagbridge.io/token: x}, kubernetes: {annotations: {dagbridge.io/inputs: x}, env: [{name: DAGBRIDGE_TASK, value: x}], volumes: [{name: dagbridge, emptyDir: {}}], volumeMounts: [{name: x, mountPath: /dagbridge}]}`, []string{`labels["dagbridge.io/token"]: labels beginning with dagbridge.io/ are the gateway's`, `kubernetes.annotations["dagbridge.io/inputs"]: `, `kubernetes.env[0]: names beginning with DAGBRIDGE_`, `kubernetes.volumes[0].name: dagbridge is the gateway's own`, `kubernetes.volumeMounts[0].mountPath: /dagbridge is the gateway's own`}},
		"a field that a pod has not":         {program + `kubernetes: {volumes: [{name: a, hostpath: {path: /x}}], tolerations: [{keys: a}]}`, []string{`kubernetes.volumes: unknown field "[0].hostpath"`, `kubernetes.tolerations: unknown field "[0].keys"`}},
		"a structure of another shape":       {program + `kubernetes: {volumes: {name: a}, affinity: [1], envFrom: "x", env: [{name: 1}]}`, []string{`kubernetes.volumes: is an object, and Kubernetes wants a list there`, `kubernetes.affinity: is a list, and Kubernetes wants an object there`, `kubernetes.envFrom: is a string, and Kubernetes wants a list there`, `kubernetes.env: name is a number, and Kubernetes wants a string there`}},
		"a quantity in a template":           {program + `kubernetes: {template: {spec: {containers: [{name: main, resources: {limits: {memory: 16GB}}}]}}}`, []string{`kubernetes.template: is not what Kubernetes wants there: quantities must match`}},
		"a template that is none":            {program + `kubernetes: {template: [1]}`, []string{`kubernetes.template: is not an object`}},
		"a template with an unknown field":   {program + `kubernetes: {template: {spec: {container: []}}}`, []string{`kubernetes.template: unknown field "spec.container"`}},
		"several containers, none of it":     {program + `kubernetes: {template: {spec: {containers: [{name: a}, {name: b}]}}}`, []string{`kubernetes.template: it has 2 containers and none of them is called main`}},
		"a kind that nobody knows":           {program + `kubernetes: {template: {kind: Widget}}`, []string{`kubernetes.template.apiVersion: is missing`, `kubernetes.podTemplatePaths: is needed with a template of kind Widget, of which nothing is known here; known are batch/Job, `, `kubernetes.successConditions: `, `kubernetes.failureConditions: `}},
		"paths and conditions that are none": {program + `kubernetes: {template: {apiVersion: a/v1, kind: Widget, spec: {}}, podTemplatePaths: ["spec..a"], successConditions: [done], failureConditions: ["a[b=c"]}`, []string{`kubernetes.podTemplatePaths[0]: "spec..a" is not a path`, `kubernetes.successConditions[0]: "done" is not a condition`, `kubernetes.failureConditions[0]: "a[b=c"`}},
		"a path to nothing":                  {program + `kubernetes: {template: {apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {}}}`, []string{`kubernetes.template: it has nothing at spec.pytorchReplicaSpecs.*.template`}},
		"what is about another kind":         {program + `kubernetes: {successConditions: ["a=b"]}`, []string{`kubernetes.template: podTemplatePaths, successConditions and failureConditions are about a template of another kind`}},
		"a gang of Kueue's without a queue":  {program + `kubernetes: {gang: kueue}`, []string{`kubernetes.queue: gang kueue needs a queue`}},
		"pods without a program":             {program + `resources: {nodes: 3}, launch: ONCE`, []string{`launch: ONCE would leave 2 of the 3 pods without a program`}},
		"several programs in a pod":          {program + `resources: {tasksPerNode: 4}, launch: PER_TASK`, []string{`launch: a pod starts its program once`}},
		"a prologue without a command line":  {`container: {image: x}, prologue: "module load x"`, []string{`prologue: it needs a command line, and of this image's own program there is none`}},
		"variables that sh drops":            {program + `prologue: "true", env: {with.dot: "1"}`, []string{`env["with.dot"]: with a prologue or an array it is sh that starts the program`}},
		"a variable with no name for it":     {program + `env: {größe: "1"}`, []string{`env["größe"]: Kubernetes takes printable ASCII alone`}},
		"a variable said twice":              {program + `env: {A: "1"}, kubernetes: {env: [{name: A, value: "2"}]}`, []string{`kubernetes.env[0]: env says A already`}},
		"a script that cannot run":           {`script: {text: "#!/bin/sh\r\ntrue\n"}`, []string{`script.text: the script has DOS line ends`}},
		"a container that is there twice":    {program + `kubernetes: {initContainers: [{name: a}], sidecars: [{name: a}]}`, []string{`kubernetes.initContainers: the container "a" is there twice, sidecars included`}},
	} {
		w, faults := kubernetes.Translate(site, submission(taskOf(t, "{"+c.task+"}")))
		require.Nil(t, w, name)
		for _, want := range c.want {
			require.Contains(t, faults.Error(), want, name)
		}
		require.Len(t, faults, len(c.want), "%s: %v", name, faults)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(strings.Split(faults.Error(), "\n")))), len(faults), "each fault is a line: %s", name)
	}
}

func TestWhatIsTooLargeIsRefusedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	args := make([]string, 12)
	for i := range args {
		args[i] = strings.Repeat("x", 131_000)
	}
	_, faults := kubernetes.Translate(site, submission(command(args...)))
	require.ErrorContains(t, faults.OrNil(), "command: the task has 1574")

	_, faults = kubernetes.Translate(site, submission(command(args[:9]...)))
	require.NoError(t, faults.OrNil(), "long, and not too long")

	_, faults = kubernetes.Translate(site, submission(&dagbridgev1.Task{Script: &dagbridgev1.Script{Text: strings.Repeat("x", 300<<10)}}))
	require.ErrorContains(t, faults.OrNil(), "script.text: 307212 of 307")

	s := submission(command("true"))
	s.Inputs = []translators.Input{{Task: "a", JSON: `"` + strings.Repeat("x", 300<<10) + `"`}}
	_, faults = kubernetes.Translate(site, s)
	require.ErrorContains(t, faults.OrNil(), "upstream: 307")

	s = submission(command("true"))
	s.Instances = make([]translators.Instance, kubernetes.MaxArraySize+1)
	_, faults = kubernetes.Translate(site, s)
	require.EqualError(t, faults.OrNil(), "array.items: 1001 instances are more than the 1000 that one array has here")
}

func TestAnArrayOfTheGreatestSizeFits(t *testing.T) {
	t.Parallel()
	s := submission(command("simulate"))
	for i := range kubernetes.MaxArraySize {
		s.Instances = append(s.Instances, translators.Instance{Position: i, JobID: jobID, MapIndex: []int32{int32(i)}, Item: &dagbridgev1.Array_Item{
			Env: map[string]string{"SEED": strings.Repeat("1", 40)}, Argv: []string{strings.Repeat("x", 60)},
		}})
	}
	_, faults := kubernetes.Translate(site, s)
	require.NoError(t, faults.OrNil())
}

func TestWhatOnlyOthersKeepIsRefused(t *testing.T) {
	t.Parallel()
	s := submission(command("true"))
	s.Token = "x"
	s.Depends.Terms = []translators.Dependency{{Type: translators.AfterOK}}
	s.Inputs = []translators.Input{{Task: "a", Jobs: []translators.InputJob{{JobID: "j", Position: -1}}}}
	_, faults := kubernetes.Translate(site, s)
	require.EqualError(t, faults.OrNil(), `upstream: Kubernetes keeps no dependencies: submit the task when its upstreams have ended
token: "x" is not a job id, a dot and an attempt number
upstream: the outputs of "a" are not known yet: submit the task when its upstreams have ended`)
}

// TestATaskWithoutAnImageIsShownAndNotRun: what images a cluster has does not matter to what a task is.
func TestATaskWithoutAnImageIsShownAndNotRun(t *testing.T) {
	t.Parallel()
	w, faults := kubernetes.Translate(kubernetes.Site{}, submission(command("true")))
	require.NoError(t, faults.OrNil())
	require.EqualError(t, w.Lacking.OrNil(), "container.image: the task names no image, and the cluster's configuration has none for such tasks")
	w, _ = kubernetes.Translate(kubernetes.Site{Image: "x"}, submission(command("true")))
	require.NoError(t, w.Lacking.OrNil())
}

func TestTranslatingLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	task := taskOf(t, `{command: {argv: [a]}, resources: {gpus: [{type: a100}]}, labels: {a: b}, kubernetes: {nodeSelector: {a: b}, annotations: {a: b}}}`)
	site := kubernetes.Site{Image: "x", GPUs: map[string]kubernetes.GPU{"a100": {NodeSelector: map[string]string{"c": "d"}}}}
	s := submission(task)
	before := task.String()
	w, faults := kubernetes.Translate(site, s)
	require.NoError(t, faults.OrNil())
	require.Equal(t, before, task.String())
	require.Equal(t, map[string]kubernetes.GPU{"a100": {NodeSelector: map[string]string{"c": "d"}}}, site.GPUs)
	require.Equal(t, "Job", w.Main()["kind"])
}

func TestParsePositions(t *testing.T) {
	t.Parallel()
	s := submission(command("true"))
	s.Instances = []translators.Instance{{Position: 3, JobID: "a"}, {Position: 7, JobID: "b"}}
	w, faults := kubernetes.Translate(site, s)
	require.NoError(t, faults.OrNil())
	text := w.Main()["metadata"].(map[string]any)["annotations"].(map[string]any)[kubernetes.PositionsAnnotation].(string)
	positions, err := kubernetes.ParsePositions(text)
	require.NoError(t, err)
	require.Equal(t, []int{3, 7}, positions)
	for _, text := range []string{"x", "1,", "-1", "1-2"} {
		_, err := kubernetes.ParsePositions(text)
		require.Error(t, err, text)
	}
	positions, err = kubernetes.ParsePositions("")
	require.NoError(t, err)
	require.Nil(t, positions)
}
