package graph

import (
	"fmt"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func (c *checker) checkEdges(i int, task string, t *dagbridgev1.Task) {
	for j, e := range t.GetUpstream() {
		// Edges are many: what a fault would need is made only for a fault.
		at := func(field string) string { return fmt.Sprintf("%s.upstream[%d]%s", task, j, field) }
		if e.GetDelay() != nil && e.GetCondition() != dagbridgev1.Edge_STARTED {
			c.add(at(".delay"), "means something only with condition STARTED")
		}
		targets := 0
		for _, set := range [...]bool{e.GetTask() != "", e.GetKey() != nil, e.GetNative() != nil} {
			if set {
				targets++
			}
		}
		if e.GetCondition() == dagbridgev1.Edge_SINGLETON {
			if targets != 0 {
				c.add(at(""), "SINGLETON waits for all other jobs of the task's own name: leave task, key and native out")
			}
			continue
		}
		if targets != 1 {
			c.add(at(""), "needs exactly one of task, key and native, and has %d", targets)
			continue
		}
		target := c.upstream[i][j]
		pairs := e.GetInstances() == dagbridgev1.Edge_SAME_INDEX && len(t.GetKey().GetMapIndex()) == 0
		switch {
		case e.GetNative() != nil || target >= 0 && target != i && !pairs:
		case e.GetKey() == nil:
			c.checkTarget(i, at(".task"), t, e, target, pairs)
		case c.checkKeyParts(at(".key"), e.GetKey()):
			c.checkTarget(i, at(".key"), t, e, target, pairs)
		}
	}
}

// checkTarget checks where an edge leads: target is the position of the upstream, -1 outside the workflow. Pairs: from an
// array, instance for instance.
func (c *checker) checkTarget(i int, field string, t *dagbridgev1.Task, e *dagbridgev1.Edge, target int, pairs bool) {
	key, own := Upstream(t, e), quote(label(t.GetKey()))
	switch {
	case target == i:
		c.add(field, "task %s waits for itself", own)
	case pairs:
		c.checkPairs(field, t, e, target)
	case e.GetOptional() || c.known(key):
	case e.GetKey() != nil:
		c.add(field, "task %s waits for %s, which was never submitted: submit it first, or make the edge optional",
			own, quote(FormatKey(key)))
	case len(key.GetMapIndex()) == 0 && c.names[key.GetTask()]:
		c.add(field, "task %s waits for %s, which is there only under a map index: give each instance as a key with its "+
			"mapIndex, or submit them as one array", own, quote(key.GetTask()))
	default:
		c.add(field, "task %s waits for %s, and there is no such task%s", own, quote(label(key)), c.nearest.hint(key.GetTask(), c.names))
	}
}

// checkPairs wants the instances of both ends of an edge to pair off.
func (c *checker) checkPairs(field string, t *dagbridgev1.Task, e *dagbridgev1.Edge, target int) {
	key, own := Upstream(t, e), quote(label(t.GetKey()))
	n := len(t.GetArray().GetItems())
	if n == 0 {
		c.add(field, "SAME_INDEX needs a task with instances: task %s is no array and has no mapIndex", own)
		return
	}
	if target >= 0 {
		if m := len(c.tasks[target].GetArray().GetItems()); m != n {
			c.add(field, "SAME_INDEX needs arrays of equal length: task %s has %d instances, its upstream %s has %d",
				own, n, quote(label(key)), m)
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
