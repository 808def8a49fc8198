package graph

import (
	"fmt"
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// checkRetry wants what is to follow a failed attempt to make sense.
func (c *checker) checkRetry(task string, t *dagbridgev1.Task) {
	r, at := t.GetRetry(), task+".retry"
	if first, most := r.GetBackoff().AsDuration(), r.GetMaxBackoff().AsDuration(); first > most {
		c.add(at+".maxBackoff", "is %s, and the first pause, backoff, is %s already: make it at least as long", most, first)
	}
	for i, code := range r.GetFinalExitCodes() {
		if slices.Contains(t.GetSkipExitCodes(), code) {
			c.add(fmt.Sprintf("%s.finalExitCodes[%d]", at, i), "exit code %d is among skipExitCodes: it means that the task is skipped or that it has "+
				"failed for good, not both", code)
		}
	}
	if g := r.GetMemoryGrowth(); g != nil {
		asked, _ := Memory(t.GetResources().GetMemory()) // its own fault is told where it is
		most, err := memoryMax(g)
		c.checkGrowth(at+".memoryGrowth", g, "resources.memory", quote(t.GetResources().GetMemory()), err, asked > 0, most < asked)
	}
	if g := r.GetTimeLimitGrowth(); g != nil {
		asked := t.GetResources().GetTimeLimit().AsDuration()
		most, err := timeMax(g)
		c.checkGrowth(at+".timeLimitGrowth", g, "resources.timeLimit", asked.String(), err, asked > 0, most < asked)
	}
}

// checkGrowth checks one of them: field is what grows, asked its value; below says that max is less than that.
func (c *checker) checkGrowth(at string, g *dagbridgev1.Growth, field, asked string, maxErr error, set, below bool) {
	if g.GetFactor() != 0 && g.GetFactor() < 1 {
		c.add(at+".factor", "is %v, by which a request shrinks: give 1 or more", g.GetFactor())
	}
	switch {
	case !set:
		c.add(at, "there is nothing to grow from: set %s", field)
	case maxErr != nil:
		c.add(at+".max", "%s %v", quote(g.GetMax()), maxErr)
	case below:
		c.add(at+".max", "%s is less than what is asked for at first, %s of %s", quote(g.GetMax()), field, asked)
	}
}
