package graph

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/dagbridge/dagbridge/translators"
)

// candidate is a dependency expression: the type for edges from work and from set-ups, all of them or any one.
type candidate struct {
	work, setups translators.DependencyType
	any          bool
}

func (c candidate) of(setup bool) translators.DependencyType {
	if setup {
		return c.setups
	}
	return c.work
}

// candidates in the order in which they are tried: the plainest first.
var candidates = func() []candidate {
	types := []translators.DependencyType{translators.AfterOK, translators.AfterNotOK, translators.AfterAny}
	var all []candidate
	for _, anyOf := range []bool{false, true} {
		for _, t := range types {
			all = append(all, candidate{work: t, setups: t, any: anyOf})
		}
	}
	for _, work := range types {
		for _, setups := range types {
			if work != setups {
				all = append(all, candidate{work: work, setups: setups})
			}
		}
	}
	return all
}()

// point is one situation of all upstreams together: what the rule sees, and whether all or any dependencies of an expression
// are satisfied.
type point struct {
	seen     presence
	all, any bool
}

// way leads to a point: the outcome of one more upstream, which is a member of a group.
type way struct {
	point
	before  *way
	group   int
	outcome fates
}

// explore follows all outcomes of some groups from the given ways on, and returns one way to each point at which it can end.
func explore(from []*way, groups []group, of func(class) bool, expression candidate) []*way {
	for g, each := range groups {
		if !of(each.class) {
			continue
		}
		outcomes := each.class.outcomes()
		for n := range min(each.size, maxGroup) {
			var next []*way
			found := map[point]bool{}
			for _, before := range from {
				for _, outcome := range outcomes {
					p := before.point
					p.seen = p.seen.with(outcome, each.class.setup)
					if !each.class.ended {
						ok := satisfied(expression.of(each.class.setup), outcome)
						p.all, p.any = p.all && ok, p.any || ok
					}
					if !found[p] {
						found[p] = true
						next = append(next, &way{point: p, before: before, group: g, outcome: outcome})
					}
				}
			}
			// One more of a kind can always repeat what another did: points are only added, until there are no more.
			grown := n == 0 || len(next) > len(from)
			from = next
			if !grown {
				break
			}
		}
	}
	return from
}

var nowhere = []*way{{point: point{all: true}}}

func everyClass(class) bool { return true }
func isEnded(c class) bool  { return c.ended }
func isLive(c class) bool   { return !c.ended }

// endings are the ends, other than those that its own program brings about, to which the rule of a task can lead.
func endings(rule string, groups []group) fates {
	var ends fates
	for _, w := range explore(nowhere, groups, everyClass, candidate{}) {
		switch w.seen.decide(rule) {
		case Skip:
			ends |= setOf(fateSkipped)
		case UpstreamFail:
			ends |= setOf(fateUpstreamFailed)
		}
	}
	return ends
}

// judgement answers whether a scheduler can keep a rule over some groups.
type judgement struct {
	// decided: with what has ended already the rule is decided, and this is how.
	decided  bool
	decision Decision
	// native: the expression says exactly what the rule says.
	native bool
	// expression is it, or else the one that comes nearest.
	expression candidate
	// differs is a situation in which the nearest expression does something else than the rule; runs: the rule starts the
	// task there, the scheduler does not; otherwise the other way round.
	differs *way
	runs    bool
}

// judge compares a rule with every candidate in every situation that the upstreams can be in. What has ended is taken as it
// is; of what may have ended in several ways, only those count that leave the rule undecided, for otherwise the task would
// have been started, or ended, already.
func judge(rule string, groups []group) judgement {
	live := slices.ContainsFunc(groups, func(g group) bool { return isLive(g.class) })
	result := judgement{decided: true, decision: Wait}
	var start []*way
	for _, w := range explore(nowhere, groups, isEnded, candidate{}) {
		seen := w.seen
		if live {
			seen = seen.with(setOf(fateLive), false)
		}
		switch decision := seen.decide(rule); {
		case decision == Wait:
			start = append(start, w)
		case decision == Run || result.decision == Wait:
			result.decision = decision
		}
	}
	if !live || len(start) == 0 {
		return result
	}

	var best score
	for _, c := range candidates {
		if !c.fits(groups) {
			continue
		}
		var differ score
		var nearest *way
		for _, w := range explore(start, groups, isLive, c) {
			starts := w.all
			if c.any {
				starts = w.any
			}
			if starts != (w.seen.decide(rule) == Run) {
				differ.add(w)
				if nearest == nil || w.complexity() < nearest.complexity() {
					nearest = w
				}
			}
		}
		if nearest == nil {
			return judgement{native: true, expression: c}
		}
		if result.differs == nil || differ.less(best) {
			best = differ
			result = judgement{expression: c, differs: nearest, runs: nearest.seen.decide(rule) == Run}
		}
	}
	return result
}

// score is in how many situations an expression does something else than the rule: first of all once all has ended, then
// also on the way there. It only says which expression a person would have thought of.
type score struct{ ended, all int }

func (s *score) add(w *way) {
	s.all++
	if (w.seen.work|w.seen.setups)&^anyEnd == 0 {
		s.ended++
	}
}

func (s score) less(other score) bool {
	return s.ended < other.ended || s.ended == other.ended && s.all < other.all
}

// fits says whether an expression can be written for these groups: instance for instance there is only aftercorr, which is
// an afterok, and types differ only where there are both set-ups and others.
func (c candidate) fits(groups []group) bool {
	setups, work := false, false
	for _, g := range groups {
		if g.class.ended {
			continue
		}
		if g.class.corresponding && (c.any || c.of(g.class.setup) != translators.AfterOK) {
			return false
		}
		setups, work = setups || g.class.setup, work || !g.class.setup
	}
	return c.work == c.setups || setups && work
}

// complexity is how much there is to say about a situation: the fewer different fates the better, and ends rather than
// states on the way.
func (w *way) complexity() int {
	seen := w.seen.work | w.seen.setups
	cost := 2 * bits.OnesCount8(uint8(seen))
	if seen.has(fateLive) {
		cost++
	}
	return cost
}

// judgements are remembered: a DAG has many tasks and few kinds of them.
type judgements map[string]judgement

func (j judgements) of(rule string, groups []group) judgement {
	key := fmt.Sprint(rule, groups)
	found, ok := j[key]
	if !ok {
		found = judge(rule, groups)
		j[key] = found
	}
	return found
}
