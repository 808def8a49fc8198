package graph

import (
	"fmt"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func (c *checker) checkEdges(i int, at string, t *dagbridgev1.Task) {
	for j, e := range t.GetUpstream() {
		at := fmt.Sprintf("%s.upstream[%d]", at, j)
		if e.GetDelay() != nil && e.GetCondition() != dagbridgev1.Edge_STARTED {
			c.add(at+".delay", "means something only with condition STARTED")
		}
		targets := 0
		for _, set := range []bool{e.GetTask() != "", e.GetKey() != nil, e.GetNative() != nil} {
			if set {
				targets++
			}
		}
		if targets != 1 {
			c.add(at, "needs exactly one of task, key and native, and has %d", targets)
			continue
		}
		if e.GetNative() != nil {
			continue
		}
		field := at + ".task"
		if e.GetKey() != nil {
			field = at + ".key"
			before := len(c.faults)
			c.checkKeyParts(field, e.GetKey())
			if len(c.faults) > before {
				continue
			}
		}
		c.checkTarget(i, field, t, e, c.upstream[i][j])
	}
}

// checkTarget checks where an edge leads, target being the position of the upstream, -1 outside the workflow.
func (c *checker) checkTarget(i int, field string, t *dagbridgev1.Task, e *dagbridgev1.Edge, target int) {
	key := Upstream(t, e)
	switch {
	case target == i:
		c.add(field, "task %s waits for itself", quote(label(t.GetKey())))
	case e.GetInstances() == dagbridgev1.Edge_SAME_INDEX && len(t.GetKey().GetMapIndex()) == 0:
		c.checkSameIndex(field, t, e, target)
	case target >= 0 || e.GetOptional() || c.known(key):
	case len(key.GetMapIndex()) == 0 && c.names[key.GetTask()] && e.GetKey() == nil:
		c.add(field, "task %s waits for %s, which is there only under another map index: give each instance as a key with its "+
			"mapIndex, or submit %s as one array", quote(label(t.GetKey())), quote(label(key)), quote(key.GetTask()))
	case e.GetKey() != nil:
		c.add(field, "task %s waits for %s, which was never submitted: submit it first, or make the edge optional",
			quote(label(t.GetKey())), quote(FormatKey(key)))
	default:
		c.add(field, "task %s waits for %s, and there is no such task%s", quote(label(t.GetKey())), quote(label(key)),
			c.nearest.hint(key.GetTask(), c.names))
	}
}

// checkSameIndex wants the instances of both ends to pair off.
func (c *checker) checkSameIndex(field string, t *dagbridgev1.Task, e *dagbridgev1.Edge, target int) {
	key := Upstream(t, e)
	n := len(t.GetArray().GetItems())
	if n == 0 {
		c.add(field, "SAME_INDEX needs a task with instances: task %s is no array and has no mapIndex", quote(label(t.GetKey())))
		return
	}
	if target >= 0 {
		if m := len(c.tasks[target].GetArray().GetItems()); m != n {
			c.add(field, "SAME_INDEX needs arrays of equal length: task %s has %d instances, its upstream %s has %d",
				quote(label(t.GetKey())), n, quote(label(key)), m)
		}
		return
	}
	if e.GetOptional() && !c.known(key) {
		return
	}
	last, beyond := unmapped(key), unmapped(key)
	last.MapIndex, beyond.MapIndex = []int32{int32(n - 1)}, []int32{int32(n)}
	if !c.known(last) || c.known(beyond) {
		c.add(field, "SAME_INDEX needs arrays of equal length: there is no array %s of %d instances", quote(label(key)), n)
	}
}
