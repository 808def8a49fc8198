package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// Node is a task that is to be submitted, or an earlier submission that one of those waits for.
type Node struct {
	Task    *dagbridgev1.Task
	Cluster string
	// User that its job runs as; "": the cluster's own. A job sees nothing of what another user's leaves.
	User string
	// KeepsDependencies: the cluster's scheduler keeps afterok and its kin.
	KeepsDependencies bool
	// Existing: an earlier submission. It is not judged itself.
	Existing bool
	// Ended is how an existing one ended; unspecified while it lives. One that has ended for good may be left out instead: then
	// it may have ended in any way that leaves the task's rule undecided, and fewer edges are native. One that failed and may
	// be tried again by its caller must not be left out: it is still waited for, by the gateway.
	Ended dagbridgev1.Job_State
}

// over says whether a node has ended for good.
func (n Node) over() bool {
	switch n.Ended {
	case failed, cancelled, upstreamFailed, lost:
		return n.Task.GetMaxTries() <= 1
	}
	return IsTerminal(n.Ended)
}

// EdgeVerdict says what becomes of one edge.
type EdgeVerdict struct {
	// From names the upstream for a person.
	From string
	// Upstream is its position among the nodes; of an array's instance the array's. -1: not among them.
	Upstream int
	Native   bool
	// Foreign: see Foreign. It is native also of a task that is held.
	Foreign bool
	// Type of a native edge.
	Type translators.DependencyType
	// Why: the native dependency, or a sentence on what the scheduler cannot say.
	Why string
}

// Verdict says whether the scheduler can keep all that a task waits for.
type Verdict struct {
	// Held: the gateway submits the task when its rule says so; no edge is native then but the foreign ones. Otherwise the task
	// goes to its scheduler together with its native edges; they are all it waits for. An edge that is not native then needs none: its
	// upstream has ended, or the rule waits for nothing.
	Held bool
	// Why it is held.
	Why string
	// Any: the native edges are alternatives, the first to be satisfied starts the task. None is foreign then.
	Any bool
	// Edges, one for each edge of the task, in order.
	Edges []EdgeVerdict
}

// Natives judges nodes, and answers for each in the same order; for existing ones with the zero value.
//
// A task goes natively if, whatever its upstreams come to, there is a dependency expression that starts it in the same
// moment as its rule does, or withholds it. It goes natively as a whole or not at all. A native edge whose upstream is held
// itself is kept from the moment on in which the upstream is submitted.
//
// LOST is no end here: a native job that vanished is the engine's to mend. Nor is a retry that a person asks for later.
//
// A task with nothing to run that waits for nothing has succeeded as soon as it is there.
func Natives(nodes []Node) []Verdict {
	nodes = slices.Clone(nodes)
	tasks := make([]*dagbridgev1.Task, len(nodes))
	for i, node := range nodes {
		tasks[i] = node.Task
		if node.Task.GetEmpty() && len(node.Task.GetUpstream()) == 0 {
			nodes[i].Ended = succeeded
		}
	}
	x := newIndex(tasks)
	n := natives{nodes: nodes, upstream: x.edges(), ends: make([]fates, len(nodes)), grouped: make([]grouping, len(nodes)), judgements: judgements{}}
	for i := range nodes {
		n.ends[i] = anyEnd
	}
	for _, i := range order(n.upstream) {
		n.ends[i] = n.endsOf(i)
	}
	verdicts := make([]Verdict, len(nodes))
	for i, node := range nodes {
		if !node.Existing {
			verdicts[i] = n.verdict(i)
		}
	}
	return verdicts
}

// natives is the work of one call.
type natives struct {
	nodes    []Node
	upstream [][]int
	// ends that each node, or each of its instances, can come to.
	ends []fates
	// grouped are the upstreams of each.
	grouped    []grouping
	judgements judgements
}

// endsOf are the ends that a node can come to: by its program, by a cancel, by its rule.
func (n *natives) endsOf(i int) fates {
	t := n.nodes[i].Task
	ends := setOf(fateSucceeded, fateFailed)
	if len(t.GetSkipExitCodes()) > 0 || branches(t) {
		ends |= setOf(fateSkipped)
	}
	if t.GetArray().GetFrom() != nil {
		ends |= setOf(fateSkipped, fateUpstreamFailed)
	}
	for _, e := range t.GetUpstream() {
		if Foreign(t, e).Type == translators.AfterOK {
			ends |= setOf(fateUpstreamFailed)
		}
		if required(e) {
			ends |= setOf(fateUpstreamFailed, fateSkipped)
		}
	}
	n.grouped[i] = n.groups(i)
	return ends | endings(t.GetTriggerRule(), n.grouped[i].list)
}

func (n *natives) verdict(i int) Verdict {
	node := n.nodes[i]
	t := node.Task
	v := Verdict{Edges: make([]EdgeVerdict, len(t.GetUpstream()))}
	// Edges to what lives: those that the rule counts, and those with a condition of their own.
	var counted, conditional []int
	foreign := false
	for j, e := range t.GetUpstream() {
		u := n.upstream[i][j]
		v.Edges[j] = EdgeVerdict{From: from(t, e), Upstream: u}
		switch {
		case isForeign(e):
			foreign = true
			v.Edges[j].keep(Foreign(t, e).Type, false)
			v.Edges[j].Foreign = true
		case u < 0 && e.GetOptional():
			v.Edges[j].Why = "optional: it has ended, or was never submitted"
		case u < 0 || n.nodes[u].over():
			v.Edges[j].Why = "it has ended"
		case e.GetCondition() == dagbridgev1.Edge_CONDITION_UNSPECIFIED:
			counted = append(counted, j)
		default:
			conditional = append(conditional, j)
		}
	}
	if t.GetEmpty() {
		return v.hold("there is nothing to run: it ends here, without a native job")
	}
	if i := slices.IndexFunc(t.GetUpstream(), required); i >= 0 {
		return v.hold(fmt.Sprintf("%s has to succeed, whatever %s says of the others", v.Edges[i].From, t.GetTriggerRule()))
	}
	if len(counted)+len(conditional) == 0 {
		return v
	}
	if why := n.branch(t); why != "" {
		return v.hold(why)
	}

	groups := n.grouped[i]
	judged := n.judgements.of(t.GetTriggerRule(), groups.list)
	if judged.decided {
		if judged.decision != Run {
			return v.hold(fmt.Sprintf("%s does not hold with what has ended already", t.GetTriggerRule()))
		}
		for _, j := range counted {
			v.Edges[j].Why = t.GetTriggerRule() + " does not wait for it"
		}
		counted = nil
	}
	blocked := false
	for _, j := range append(counted, conditional...) {
		if why := n.block(i, j); why != "" {
			v.Edges[j].Why = why
			if !blocked {
				blocked, v.Why = true, why
			}
		}
	}
	switch {
	case blocked:
		return v.hold(v.Why)
	case !judged.decided && !judged.native:
		return v.hold(n.explain(i, groups, judged))
	case judged.expression.any && len(conditional) > 0:
		return v.hold("a scheduler takes any of several dependencies or all of them, and STARTED is needed beside any of the others")
	case judged.expression.any && foreign:
		return v.hold("a scheduler takes any of several dependencies or all of them, and somebody else's job is needed beside any of the others")
	}

	v.Any = judged.expression.any && len(counted) > 1
	for _, j := range counted {
		c := groups.list[groups.of[j]].class
		v.Edges[j].keep(judged.expression.of(c.setup), v.Any)
		if c.corresponding {
			v.Edges[j].keep(translators.AfterCorr, false)
		}
	}
	for _, j := range conditional {
		v.Edges[j].keep(translators.After, false)
	}
	return v
}

// from names the upstream of an edge.
func from(t *dagbridgev1.Task, e *dagbridgev1.Edge) string {
	switch {
	case e.GetCondition() == dagbridgev1.Edge_SINGLETON:
		return "other jobs of this name"
	case e.GetNative() != nil:
		return strings.TrimPrefix(e.GetNative().GetCluster()+":"+e.GetNative().GetId(), ":")
	}
	return cmp.Or(e.GetTask(), e.GetKey().GetTask()) + indexText(upstreamIndex(t, e))
}

func (e *EdgeVerdict) keep(t translators.DependencyType, anyOf bool) {
	e.Native, e.Type, e.Why = true, t, string(t)
	if anyOf {
		e.Why += ", or any of the others"
	}
}

// hold holds the task as a whole; edges without a reason of their own have the task's.
func (v Verdict) hold(why string) Verdict {
	v.Held, v.Why = true, why
	for j := range v.Edges {
		if v.Edges[j].Why == "" {
			v.Edges[j].Why = why
		}
	}
	return v
}

// branch says why no scheduler can keep a task whatever its rule.
func (n *natives) branch(t *dagbridgev1.Task) string {
	switch {
	case branches(t):
		return "behind a branch: whether it runs is known from an upstream's output"
	case t.GetArray().GetFrom() != nil:
		return "its instances are known from an upstream's output"
	case len(t.GetFallbacks()) > 0:
		return "it has fallbacks: it may have to move to another cluster"
	}
	return ""
}

// required: the upstream has to succeed, whatever the rule says of the others.
func required(e *dagbridgev1.Edge) bool { return e.GetCondition() == dagbridgev1.Edge_SUCCEEDED }

// block says why no scheduler can keep an edge whatever the rule.
func (n *natives) block(i, j int) string {
	node, e := n.nodes[i], n.nodes[i].Task.GetUpstream()[j]
	upstream := n.nodes[n.upstream[i][j]]
	name := from(node.Task, e)
	switch {
	case IsTerminal(upstream.Ended):
		return fmt.Sprintf("%s is %s and may be tried again", name, upstream.Ended)
	case upstream.Task.GetArray().GetFrom() != nil:
		return fmt.Sprintf("%s has instances that are known only when it runs", name)
	case upstream.Task.GetEmpty():
		return fmt.Sprintf("%s has nothing to run, and so no native job to wait for", name)
	case upstream.Cluster != node.Cluster:
		return fmt.Sprintf("%s is on cluster %s, this one on %s", name, upstream.Cluster, node.Cluster)
	case upstream.User != node.User:
		return fmt.Sprintf("%s runs as another user, whose files this one does not see", name)
	case !node.KeepsDependencies:
		return fmt.Sprintf("cluster %s keeps no dependencies", node.Cluster)
	case len(upstream.Task.GetFallbacks()) > 0:
		return fmt.Sprintf("%s has fallbacks: it may have to move to another cluster", name)
	case e.GetCondition() == dagbridgev1.Edge_CONDITION_UNSPECIFIED:
		return ""
	case upstream.Task.GetArray() != nil:
		return fmt.Sprintf("%s is an array, of which a scheduler does not say when it has started", name)
	case retries(upstream.Task):
		return fmt.Sprintf("%s may be tried again, and only a first start counts natively", name)
	case e.GetDelay().AsDuration()%time.Minute != 0:
		return "a scheduler counts delays in whole minutes"
	}
	return ""
}
