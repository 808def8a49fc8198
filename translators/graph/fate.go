package graph

import (
	"math/bits"

	"github.com/dagbridge/dagbridge/translators"
)

// fate is a state that an upstream can be in, as far as a trigger rule and a scheduler tell states apart. CANCELLED and LOST
// are failures to both.
type fate uint8

const (
	fateSucceeded fate = iota
	fateFailed
	fateUpstreamFailed
	fateSkipped
	// fateLive: not ended.
	fateLive
	// fateRetrying: its native job has failed and another attempt or try follows. To the rule it lives; to the scheduler it
	// has ended.
	fateRetrying
)

// fates is a set of them.
type fates uint8

func setOf(all ...fate) fates {
	var set fates
	for _, f := range all {
		set |= 1 << f
	}
	return set
}

func (s fates) has(f fate) bool { return s&(1<<f) != 0 }

func (s fates) list() []fate {
	list := make([]fate, 0, bits.OnesCount8(uint8(s)))
	for f := fateSucceeded; f <= fateRetrying; f++ {
		if s.has(f) {
			list = append(list, f)
		}
	}
	return list
}

var anyEnd = setOf(fateSucceeded, fateFailed, fateUpstreamFailed, fateSkipped)

// satisfied says whether a dependency on a job, or on a whole array, is satisfied when its instances have these fates. A
// scheduler judges an array once all of it has ended: it is ok when all instances are. A job that is skipped or
// upstream_failed here has left its scheduler by a failing exit code or by our cancelling it: it has ended, and is not ok.
func satisfied(t translators.DependencyType, instances fates) bool {
	allOK := instances == setOf(fateSucceeded)
	allEnded := !instances.has(fateLive)
	switch t {
	case translators.AfterOK:
		return allOK
	case translators.AfterNotOK:
		return allEnded && !allOK
	case translators.AfterAny:
		return allEnded
	}
	return false
}

// presence says which fates there are among a task's upstreams, and separately among those that are set-ups. Every trigger
// rule asks only whether there is one of a kind, or nothing but that kind, never how many; so presence decides it.
type presence struct{ work, setups fates }

func (p presence) with(seen fates, setup bool) presence {
	if setup {
		p.setups |= seen
	} else {
		p.work |= seen
	}
	return p
}

func (p presence) decide(rule string) Decision {
	var c Counts
	for _, group := range []struct {
		seen  fates
		setup bool
	}{{p.work, false}, {p.setups, true}} {
		for _, f := range group.seen.list() {
			switch f {
			case fateSucceeded:
				c.Add(succeeded, group.setup)
			case fateFailed:
				c.Add(failed, group.setup)
			case fateUpstreamFailed:
				c.Add(upstreamFailed, group.setup)
			case fateSkipped:
				c.Add(skipped, group.setup)
			default:
				c.Add(running, group.setup)
			}
		}
	}
	return Decide(rule, c)
}
