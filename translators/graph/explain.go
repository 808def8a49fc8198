package graph

import (
	"fmt"
	"slices"
	"strings"
)

// maxPhrases is how many upstreams a sentence speaks of.
const maxPhrases = 3

var fatePhrases = map[fate]string{
	fateSucceeded:      "has succeeded",
	fateFailed:         "has failed",
	fateUpstreamFailed: "is upstream_failed",
	fateSkipped:        "is skipped",
	fateLive:           "has not ended",
	fateRetrying:       "has failed and is to be tried again",
}

// explain is, as a sentence, the situation in which the scheduler would do something else than the rule of a task. Of
// upstreams that succeeded it speaks last: they are the least surprising.
func (n *natives) explain(i int, groups grouping, judged judgement) string {
	t := n.nodes[i].Task
	var steps []*way
	for w := judged.differs; w.before != nil; w = w.before {
		steps = append(steps, w)
	}
	slices.Reverse(steps)

	var phrases, well []string
	used := make([]int, len(groups.list))
	for _, w := range steps {
		// The n-th step within a group is its n-th member's.
		edge := t.GetUpstream()[groups.members[w.group][used[w.group]]]
		used[w.group]++
		name := from(t, edge)
		if groups.list[w.group].class.array {
			name = "every instance of " + name
			if len(w.outcome.list()) > 1 {
				name = "an instance of " + from(t, edge)
			}
		}
		for _, f := range w.outcome.list() {
			phrase := name + " " + fatePhrases[f]
			if w.outcome == setOf(fateSucceeded) {
				well = append(well, phrase)
			} else {
				phrases = append(phrases, phrase)
			}
		}
	}
	phrases = append(phrases, well...)
	situation := join(phrases[:min(len(phrases), maxPhrases)])
	if judged.runs {
		return fmt.Sprintf("when %s, %s starts it and %s does not", situation, t.GetTriggerRule(), judged.expression)
	}
	return fmt.Sprintf("when %s, %s starts it and %s does not", situation, judged.expression, t.GetTriggerRule())
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
