package kubernetes

import "strings"

// Release is a merge patch that lets go what the gateway holds: of a workload that queues, into its queue, which then decides
// when it starts. It is nil when nothing is held.
func Release(o map[string]any) []byte {
	meta, _ := o["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	queue, held := annotations[QueueAnnotation].(string)
	if !held {
		return nil
	}
	// By its version, so that what somebody else has changed meanwhile is looked at first.
	change := map[string]any{"resourceVersion": meta["resourceVersion"], "annotations": map[string]any{QueueAnnotation: nil}}
	patch := map[string]any{"metadata": change}
	if queue != "" {
		change["labels"] = map[string]any{queueLabel: queue}
		return text(patch)
	}
	at := patch
	path := strings.Split(suspendPath(o), ".")
	for _, name := range path[:len(path)-1] {
		next := map[string]any{}
		at[name] = next
		at = next
	}
	at[path[len(path)-1]] = false
	return text(patch)
}

// suspendPath is where a workload's switch is.
func suspendPath(o map[string]any) string {
	if k, ok := kinds[groupKind(o)]; ok {
		return k.suspend
	}
	return "spec.suspend"
}
