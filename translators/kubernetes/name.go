package kubernetes

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// The prefix of labels and annotations, and those that others read.
const (
	prefix = "dagbridge.io/"
	// TokenLabel is by what the gateway recognises its objects and pods.
	TokenLabel = prefix + "token"
	// JobLabel is the id of the job.
	JobLabel = prefix + "job"
	// PositionsAnnotation has the array positions of a workload's indices, with commas between them: that of index 0 is the first.
	PositionsAnnotation = prefix + "positions"
	// QueueAnnotation has the queue of a workload that is held, and in it the gateway's hold.
	QueueAnnotation = prefix + "queue"
	// SuccessAnnotation and FailureAnnotation have the conditions of a workload of another kind, a line each.
	SuccessAnnotation = prefix + "success"
	FailureAnnotation = prefix + "failure"
	keyAnnotation     = prefix + "key"
	// containerAnnotation is kubectl's own: which container is meant when none is named.
	containerAnnotation = "kubectl.kubernetes.io/default-container"
	// queueLabel is Kueue's.
	queueLabel = "kueue.x-k8s.io/queue-name"
)

const (
	// maxNameBytes leaves room for what controllers add: a JobSet's pods are <name>-node-0-<index>-<5 letters>, of 63 bytes at most.
	maxNameBytes = 40
	// hashBytes is 80 bits: of a billion names in one namespace two are alike with a chance of one in a million.
	hashBytes = 16
)

// Name is a DNS label that people can read and that is as unique as the token: the last part of the task's path, made safe
// and shortened, a dash, and a digest of the token. It begins with a letter, as names of services must.
func Name(task, token string) string {
	return readable(task[strings.LastIndexByte(task, '/')+1:], maxNameBytes-hashBytes-1) + "-" + digest(token)
}

// readable is a text in lower case, digits and dashes.
func readable(s string, room int) string {
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(s)) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteByte(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == room {
			break
		}
	}
	name := strings.Trim(b.String(), "-")
	switch {
	case name == "":
		return "task"
	case name[0] <= '9':
		return strings.TrimRight(("task-" + name)[:min(len(name)+5, room)], "-")
	}
	return name
}

// digest is a text's SHA-256, cut, in what names and labels may have.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:hashBytes]
}

// LabelValue is a text as the value of a label. What is valid stays as it is. What is not is made safe and cut, and has a
// digest of the whole behind it, so that no two texts have one value; so has what only looks like that.
func LabelValue(s string) string {
	if len(validation.IsValidLabelValue(s)) == 0 && !looksDigested(s) {
		return s
	}
	safe := []byte(s)
	for i, c := range safe {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			safe[i] = '_'
		}
	}
	front := string(safe[:min(len(safe), validation.LabelValueMaxLength-hashBytes-1)])
	if front = strings.TrimLeft(front, "-_."); front == "" {
		return digest(s)
	}
	return front + "-" + digest(s)
}

// looksDigested says whether a text ends as LabelValue's digests do.
func looksDigested(s string) bool {
	end := s[strings.LastIndexByte(s, '-')+1:]
	return len(end) == hashBytes && strings.Trim(end, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Labels are by what a workload and its pods are found: by the gateway, and by people.
func Labels(key *dagbridgev1.TaskKey, token string) map[string]string {
	id, _, _ := strings.Cut(token, ".")
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "dagbridge",
		TokenLabel:                     token,
		JobLabel:                       id,
		prefix + "orchestrator":        LabelValue(key.GetOrchestrator()),
		prefix + "deployment":          LabelValue(key.GetDeployment()),
		prefix + "workflow":            LabelValue(key.GetWorkflow()),
		prefix + "run":                 LabelValue(key.GetRun()),
		prefix + "task":                LabelValue(key.GetTask()),
		prefix + "map-index":           mapIndex(key.GetMapIndex(), "-"),
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// Annotations have the key in full, for people.
func Annotations(key *dagbridgev1.TaskKey) map[string]string {
	return map[string]string{keyAnnotation: graph.FormatKey(key)}
}

// mapIndex is a map index as text.
func mapIndex(index []int32, separator string) string {
	words := make([]string, len(index))
	for i, n := range index {
		words[i] = strconv.Itoa(int(n))
	}
	return strings.Join(words, separator)
}

func (t *translation) checkToken(token string) {
	if !strings.Contains(token, ".") || len(validation.IsValidLabelValue(token)) > 0 {
		t.fault("token", "%q is not a job id, a dot and an attempt number", token)
	}
}

// checkNames checks names that the user gives.
func (t *translation) checkNames() {
	o := t.options
	for _, name := range []struct {
		field, value string
		check        func(string) []string
	}{
		{"namespace", o.GetNamespace(), validation.IsDNS1123Label},
		{"serviceAccount", o.GetServiceAccount(), validation.IsDNS1123Subdomain},
		{"priorityClass", o.GetPriorityClass(), validation.IsDNS1123Subdomain},
		{"queue", o.GetQueue(), validation.IsDNS1123Subdomain},
	} {
		if name.value != "" {
			for _, why := range name.check(name.value) {
				t.fault("kubernetes."+name.field, "%q: %s", name.value, why)
			}
		}
	}
	for i, name := range o.GetImagePullSecrets() {
		for _, why := range validation.IsDNS1123Subdomain(name) {
			t.fault("kubernetes.imagePullSecrets["+strconv.Itoa(i)+"]", "%q: %s", name, why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.GetNodeSelector())) {
		value := o.GetNodeSelector()[name]
		for _, why := range append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...) {
			t.fault("kubernetes.nodeSelector["+strconv.Quote(name)+"]", "%s", why)
		}
	}
}

// userLabels takes over the task's labels, as far as Kubernetes has such, and its annotations.
func (t *translation) userLabels() {
	given := t.task.GetLabels()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field := "labels[" + strconv.Quote(name) + "]"
		switch {
		case strings.HasPrefix(name, prefix):
			t.fault(field, "labels beginning with %s are the gateway's: choose another name", prefix)
		case len(validation.IsQualifiedName(name)) > 0:
			t.notice("%s: Kubernetes takes no such name for a label; the gateway keeps it all the same", field)
		default:
			t.labels[name] = LabelValue(given[name])
			if t.labels[name] != given[name] {
				t.notice("%s: Kubernetes takes no such value; its label is %s", field, t.labels[name])
			}
		}
	}
	notes := t.options.GetAnnotations()
	for _, name := range slices.Sorted(maps.Keys(notes)) {
		field := "kubernetes.annotations[" + strconv.Quote(name) + "]"
		for _, why := range validation.IsQualifiedName(strings.ToLower(name)) {
			t.fault(field, "%s", why)
		}
		if strings.HasPrefix(name, prefix) {
			t.fault(field, "annotations beginning with %s are the gateway's: choose another name", prefix)
		}
		t.annotations[name] = notes[name]
	}
}
