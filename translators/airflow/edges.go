package airflow

import (
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// edges writes what a task waits for, and how.
func (t *translator) edges(op *operator, task *dagbridgev1.Task) {
	for _, up := range op.upstream {
		task.Upstream = append(task.Upstream, t.edge(op, up))
	}
	for _, setup := range op.setups {
		e := t.edge(op, setup)
		e.Condition = dagbridgev1.Edge_SUCCEEDED
		task.Upstream = append(task.Upstream, e)
	}
	rule := op.rule
	if rule != graph.AllSuccess && !slices.Contains(graph.Rules(), rule) {
		t.fault(op, "trigger_rule", "is %s, which is no trigger rule", brief(rule))
	}
	task.Setup = op.setup
	if op.teardown {
		task.Teardown = &dagbridgev1.Teardown{}
		for _, up := range op.upstream {
			if up.setup && t.takes(up.id) {
				task.Teardown.Of = append(task.Teardown.Of, up.id)
			}
		}
		if rule == graph.AllSuccess && op.get("trigger_rule") == nil {
			rule = graph.AllDoneSetupSuccess
		}
	}
	if rule != graph.AllSuccess && (task.Teardown == nil || rule != graph.AllDoneSetupSuccess) {
		task.TriggerRule = rule
	}
	t.branches(op, task)
}

func (t *translator) edge(op, up *operator) *dagbridgev1.Edge {
	e := &dagbridgev1.Edge{Task: up.id, Optional: !t.takes(up.id)}
	if op.group != nil && up.group == op.group {
		e.Instances = dagbridgev1.Edge_SAME_INDEX
	}
	return e
}

// setups finds, for work in the scope of a set-up that is not directly before it, that it runs only if that has succeeded, whatever its own rule.
func (t *translator) setups() {
	for _, setup := range t.dag.operators {
		if !setup.setup || len(setup.downstream) == 0 || !t.takes(setup.id) {
			continue
		}
		if t.work += t.dag.length / 8; t.exhausted { // all tasks are gone through for each
			return
		}
		after, sharing := t.reach(setup, downstreamOf), t.sharing(setup)
		teardowns := slices.DeleteFunc(slices.Clone(setup.downstream), func(o *operator) bool { return !o.teardown })
		before := make([]bool, t.dag.length) // a tear-down of it
		for _, teardown := range teardowns {
			for i, is := range t.reach(teardown, upstreamOf) {
				before[i] = before[i] || is
			}
		}
		for _, op := range t.dag.operators {
			if !after[op.index] || sharing[op.index] || op == setup || op.teardown || op.rule == graph.Always || slices.Contains(op.upstream, setup) {
				continue
			}
			if inScope := len(teardowns) == 0 || before[op.index]; inScope {
				op.setups = append(op.setups, setup)
			}
		}
	}
}

// sharing are the tasks that end as a set-up does when that does not succeed, by their rules alone: all that comes before them does.
func (t *translator) sharing(setup *operator) []bool {
	is, shared := make([]bool, t.dag.length), make([]int, t.dag.length)
	todo := []*operator{setup}
	for len(todo) > 0 {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, down := range o.downstream {
			t.work++
			if down.rule != graph.AllSuccess || down.teardown || !t.takes(down.id) {
				continue
			}
			if shared[down.index]++; shared[down.index] == len(down.upstream) {
				is[down.index] = true
				todo = append(todo, down)
			}
		}
	}
	return is
}

// branches makes tasks that come after one that chooses depend on what it has chosen. Such a task says so in its result: the id, or the ids, of
// those that are to run.
func (t *translator) branches(op *operator, task *dagbridgev1.Task) {
	for _, up := range op.upstream {
		if !up.flag("_can_skip_downstream") {
			continue
		}
		if !t.takes(up.id) {
			t.notice(op, "Airflow's %s decides whether it runs; without that task, it runs", up.id)
			continue
		}
		if task.SkipUnless != nil {
			t.fault(op, "", "comes after two tasks that choose, %s and %s, and only one is supported", brief(task.SkipUnless.Task), brief(up.id))
			return
		}
		// A branch does not skip what also comes after one that it has chosen.
		for _, other := range up.downstream {
			if other != op && t.reach(other, downstreamOf)[op.index] {
				t.fault(op, "", "comes after the branch %s and after one of its choices, %s, too, which is not supported: let it come after the choices alone, "+
					"with the rule none_failed_min_one_success", brief(up.id), brief(other.id))
				return
			}
		}
		task.SkipUnless = &dagbridgev1.SkipUnless{Task: up.id, Output: returnValue, Contains: op.id}
	}
}

func upstreamOf(o *operator) []*operator   { return o.upstream }
func downstreamOf(o *operator) []*operator { return o.downstream }

// maxWork is how many edges are followed for one DAG.
const maxWork = 5_000_000

// reach says of each operator, by its index, whether edges lead to it.
func (t *translator) reach(from *operator, next func(*operator) []*operator) []bool {
	reached := make([]bool, t.dag.length)
	t.work += len(reached) / 64
	todo := []*operator{from}
	for len(todo) > 0 && t.work < maxWork {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, each := range next(o) {
			t.work++
			if !reached[each.index] {
				reached[each.index] = true
				todo = append(todo, each)
			}
		}
	}
	if t.work >= maxWork && !t.exhausted {
		t.exhausted = true
		t.faults.Add("airflowDag", "has more set-ups, branches and results of other tasks than can be followed through its edges")
	}
	return reached
}

// implied: that a task runs says that an earlier one has succeeded, since a way of all_success leads from one to the other.
func (t *translator) implied(earlier, op *operator) bool {
	return t.reach(op, func(o *operator) []*operator {
		if o.rule != graph.AllSuccess || o.teardown || !t.takes(o.id) {
			return nil
		}
		return o.upstream
	})[earlier.index]
}

// isUpstream: the other is before this one, however far.
func (x *translating) isUpstream(of *operator) bool {
	if slices.Contains(x.operator.upstream, of) {
		return true
	}
	if x.before == nil {
		x.before = x.reach(x.operator, upstreamOf)
	}
	return x.before[of.index]
}

// waitForPulled makes a task wait for those whose results it needs and that are not directly before it. That must not change when it runs: the edge is
// one of its rule's only where that follows anyway; else it says that the other has started, which rules do not count.
func (x *translating) waitForPulled() {
	for _, id := range x.pulled {
		of := x.dag.byID[id]
		if slices.Contains(x.operator.upstream, of) || slices.Contains(x.operator.setups, of) {
			continue
		}
		e := x.edge(x.operator, of)
		if !x.implied(of, x.operator) {
			e.Condition = dagbridgev1.Edge_STARTED
		}
		x.task.Upstream = append(x.task.Upstream, e)
	}
}
