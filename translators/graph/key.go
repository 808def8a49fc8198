package graph

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

const (
	maxPartBytes  = 1024
	maxMapIndices = 16
)

// KeyString is a key as one string, different for different keys: each part is preceded by its length.
func KeyString(k *dagbridgev1.TaskKey) string {
	parts := [...]string{k.GetDeployment(), k.GetOrchestrator(), k.GetWorkflow(), k.GetRun(), k.GetTask()}
	size := 0
	for _, part := range parts {
		size += len(part) + 5
	}
	b := make([]byte, 0, size)
	for _, part := range parts {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(b, ':')
		b = append(b, part...)
	}
	return string(b) + indexText(k.GetMapIndex())
}

// FormatKey writes a key the way people type it: orchestrator/workflow/run/task, and a further part for each map index, all
// of them percent-encoded. The deployment is no part of it.
func FormatKey(k *dagbridgev1.TaskKey) string {
	var b strings.Builder
	for i, part := range []string{k.GetOrchestrator(), k.GetWorkflow(), k.GetRun(), k.GetTask()} {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(url.PathEscape(part))
	}
	for _, index := range k.GetMapIndex() {
		fmt.Fprintf(&b, "/%d", index)
	}
	return b.String()
}

// ParseKey reads what FormatKey writes. Its error is a sentence.
func ParseKey(s string) (*dagbridgev1.TaskKey, error) {
	segments := strings.Split(s, "/")
	if len(segments) < 4 || len(segments) > 4+maxMapIndices {
		return nil, fmt.Errorf("key %s is not of the form orchestrator/workflow/run/task[/index]: "+
			"a slash inside a part is written %%2F", quote(s))
	}
	var parts [4]string
	for i, name := range []string{"orchestrator", "workflow", "run", "task"} {
		part, err := url.PathUnescape(segments[i])
		switch {
		case err != nil:
			return nil, fmt.Errorf("key %s: the %s is not percent-encoded: a percent sign is written %%25", quote(s), name)
		case part == "":
			return nil, fmt.Errorf("key %s: the %s is empty", quote(s), name)
		case len(part) > maxPartBytes:
			return nil, fmt.Errorf("key %s: the %s has %d bytes, at most %d are allowed", quote(s), name, len(part), maxPartBytes)
		case !utf8.ValidString(part):
			return nil, fmt.Errorf("key %s: the %s is not UTF-8", quote(s), name)
		case strings.ContainsFunc(part, unicode.IsControl):
			return nil, fmt.Errorf("key %s: the %s has a control character", quote(s), name)
		}
		parts[i] = part
	}
	key := &dagbridgev1.TaskKey{Orchestrator: parts[0], Workflow: parts[1], Run: parts[2], Task: parts[3]}
	for _, segment := range segments[4:] {
		index, err := strconv.ParseUint(segment, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("key %s: the index %s is not a number from 0 on", quote(s), quote(segment))
		}
		key.MapIndex = append(key.MapIndex, int32(index))
	}
	return key, nil
}

// Upstream is the full key that an edge of a task points at: a bare task name is resolved against the task's own key. With
// SAME_INDEX it has the task's own map index. Nil for an edge to a native job.
func Upstream(t *dagbridgev1.Task, e *dagbridgev1.Edge) *dagbridgev1.TaskKey {
	own := t.GetKey()
	var key *dagbridgev1.TaskKey
	switch {
	case e.GetKey() != nil:
		key = e.GetKey()
	case e.GetTask() != "":
		key = unmapped(own)
		key.Task = e.GetTask()
	default:
		return nil
	}
	if e.GetInstances() == dagbridgev1.Edge_SAME_INDEX && len(own.GetMapIndex()) > 0 {
		key = unmapped(key)
		key.MapIndex = own.GetMapIndex()
	}
	return key
}

// upstreamIndex is the map index of Upstream's key.
func upstreamIndex(t *dagbridgev1.Task, e *dagbridgev1.Edge) []int32 {
	if e.GetInstances() == dagbridgev1.Edge_SAME_INDEX && len(t.GetKey().GetMapIndex()) > 0 {
		return t.GetKey().GetMapIndex()
	}
	return e.GetKey().GetMapIndex()
}

// unmapped is a key without its map index.
func unmapped(k *dagbridgev1.TaskKey) *dagbridgev1.TaskKey {
	return &dagbridgev1.TaskKey{
		Deployment: k.GetDeployment(), Orchestrator: k.GetOrchestrator(), Workflow: k.GetWorkflow(), Run: k.GetRun(), Task: k.GetTask(),
	}
}

// label is how a sentence names a task: its task id, and its map index if it has one.
func label(k *dagbridgev1.TaskKey) string { return k.GetTask() + indexText(k.GetMapIndex()) }

// indexText is a map index as text: "[3]", "[1][2]", or nothing.
func indexText(mapIndex []int32) string {
	if len(mapIndex) == 0 {
		return ""
	}
	var b []byte
	for _, i := range mapIndex {
		b = append(strconv.AppendInt(append(b, '['), int64(i), 10), ']')
	}
	return string(b)
}

// quote is a string in double quotes, cut where it is longer than a sentence bears.
func quote(s string) string { return strconv.Quote(cut(s, 0, 80)) }
