package graph

import dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"

// class is all that matters of one upstream for the question whether an edge is native. Upstreams of one class are alike.
type class struct {
	// fates that it, or each of its instances, can have.
	fates fates
	// setup: it is a set-up.
	setup bool
	// array: it has several instances. Two stand for any number: more can have no further mixture that a rule tells apart.
	array bool
	// ended: it is over, so the scheduler is told nothing of it.
	ended bool
	// absent: it may also never have been submitted, and then does not count.
	absent bool
	// corresponding: of an array, instance for instance.
	corresponding bool
}

// outcomes are the mixtures of fates that an upstream of a class can show.
func (c class) outcomes() []fates {
	var all []fates
	if c.absent {
		all = append(all, 0)
	}
	list := c.fates.list()
	for i, f := range list {
		all = append(all, setOf(f))
		if c.array {
			for _, other := range list[i+1:] {
				all = append(all, setOf(f, other))
			}
		}
	}
	return all
}

// group is some upstreams of one class.
type group struct {
	class class
	size  int
}

// maxGroup is the size beyond which a group shows nothing new: no more upstreams are needed to show every fate, in each
// role, and to decide "all satisfied" and "any satisfied".
const maxGroup = 16

// branches says whether a condition of its own may skip a task.
func branches(t *dagbridgev1.Task) bool { return t.GetSkipUnless() != nil || t.GetWhen() != nil }

// retries says whether a failure of a task may be followed by another attempt or try.
func retries(t *dagbridgev1.Task) bool {
	budgets := t.GetRetry().GetMaxRetries() + t.GetRetry().GetMaxInfrastructureRetries()
	return budgets > 0 || t.GetMaxTries() > 1 || t.AtMostOnce != nil && !t.GetAtMostOnce()
}

// grouping is the upstreams of a task by class. Edges with a condition, and foreign ones, are no part of it: the rule does
// not count them.
type grouping struct {
	list []group
	// members are the edges of each group, and of is the group of each edge.
	members [][]int
	of      []int
}

func (n *natives) groups(i int) grouping {
	upstream := n.nodes[i].Task.GetUpstream()
	g := grouping{of: make([]int, len(upstream))}
	at, k := map[class]int{}, 0
	for j, e := range upstream {
		if e.GetCondition() != dagbridgev1.Edge_CONDITION_UNSPECIFIED || isForeign(e) {
			continue
		}
		c := n.classOf(i, j)
		if k >= len(g.list) || g.list[k].class != c { // else it is like the one before, as most are
			var ok bool
			if k, ok = at[c]; !ok {
				k = len(g.list)
				at[c] = k
				g.list = append(g.list, group{class: c})
				g.members = append(g.members, nil)
			}
		}
		g.list[k].size = min(g.list[k].size+1, maxGroup)
		g.members[k] = append(g.members[k], j)
		g.of[j] = k
	}
	return g
}

func (n *natives) classOf(i, j int) class {
	t := n.nodes[i].Task
	e := t.GetUpstream()[j]
	u := n.upstream[i][j]
	if u < 0 {
		return class{fates: anyEnd, ended: true, absent: e.GetOptional()}
	}
	node := n.nodes[u]
	whole := len(upstreamIndex(t, e)) == len(node.Task.GetKey().GetMapIndex())
	same := e.GetInstances() == dagbridgev1.Edge_SAME_INDEX
	c := class{
		fates: n.ends[u],
		setup: node.Task.GetSetup(),
		array: whole && !same && len(node.Task.GetArray().GetItems()) != 1 && node.Task.GetArray() != nil,
		ended: node.over(),
	}
	switch {
	case c.ended && node.Task.GetArray() == nil:
		c.fates = setOf(fateOf(node.Ended))
	case c.ended:
		// The array's state says little of how each instance ended.
	default:
		c.corresponding = whole && same
		c.fates |= setOf(fateLive)
		if retries(node.Task) {
			c.fates |= setOf(fateRetrying)
		}
	}
	return c
}

func fateOf(end dagbridgev1.Job_State) fate {
	switch end {
	case succeeded:
		return fateSucceeded
	case skipped:
		return fateSkipped
	case upstreamFailed:
		return fateUpstreamFailed
	}
	return fateFailed
}
