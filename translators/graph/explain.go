package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxPhrases is how many upstreams a sentence speaks of.
const maxPhrases = 3

// explain is the situation in which the scheduler would do something else than the rule, as a sentence.
func (n *natives) explain(i int, groups grouping, judged judgement) string {
	t := n.nodes[i].Task
	type member struct {
		edge  int
		class class
		seen  fates
	}
	var members []member
	used := make([]int, len(groups.list))
	var steps []*way
	for w := judged.differs; w.before != nil; w = w.before {
		steps = append(steps, w)
	}
	slices.Reverse(steps)
	for _, w := range steps {
		// The n-th step within a group is its n-th member's.
		edge := groups.members[w.group][used[w.group]]
		used[w.group]++
		if w.outcome != 0 {
			members = append(members, member{edge, groups.list[w.group].class, w.outcome})
		}
	}
	// What went well is said last.
	slices.SortStableFunc(members, func(a, b member) int {
		ok := setOf(fateSucceeded)
		return cmp.Compare(btoi(a.seen == ok), btoi(b.seen == ok))
	})
	var phrases []string
	for _, m := range members {
		if len(phrases) == maxPhrases {
			break
		}
		name := from(t, t.GetUpstream()[m.edge])
		for _, f := range m.seen.list() {
			if m.class.array {
				name = "an instance of " + from(t, t.GetUpstream()[m.edge])
				if len(m.seen.list()) == 1 {
					name = "every instance of " + from(t, t.GetUpstream()[m.edge])
				}
			}
			phrases = append(phrases, name+" "+fatePhrases[f])
		}
	}
	rule, native := t.GetTriggerRule(), judged.expression.String()
	if judged.runs {
		return fmt.Sprintf("when %s, %s starts it and %s does not", join(phrases), rule, native)
	}
	return fmt.Sprintf("when %s, %s starts it and %s does not", join(phrases), native, rule)
}

var fatePhrases = map[fate]string{
	fateSucceeded:      "has succeeded",
	fateFailed:         "has failed",
	fateUpstreamFailed: "is upstream_failed",
	fateSkipped:        "is skipped",
	fateLive:           "has not ended",
	fateRetrying:       "has failed and is to be tried again",
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func join(phrases []string) string {
	if len(phrases) < 2 {
		return strings.Join(phrases, "")
	}
	last := len(phrases) - 1
	return strings.Join(phrases[:last], ", ") + " and " + phrases[last]
}

func (c candidate) String() string {
	switch {
	case c.any:
		return "any " + string(c.work)
	case c.work != c.setups:
		return fmt.Sprintf("%s (%s for set-ups)", c.work, c.setups)
	}
	return string(c.work)
}
