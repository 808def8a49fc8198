package slurm

import (
	"context"
	"math/rand/v2"
	"time"
)

// longestPause between two looks, unless the shortest is longer.
const longestPause = 30 * time.Second

// pace is how often a cluster is looked at: at the shortest interval while something moves, and ever more seldom, up to the
// longest, while nothing does. What was ordered is expected to show, so an order brings the shortest back.
type pace struct {
	shortest, longest, now time.Duration
}

// newPace makes the pace of an interval. Ended jobs must not be forgotten between two looks.
func newPace(interval, minJobAge time.Duration) pace {
	return pace{shortest: interval, longest: max(interval, min(4*interval, longestPause, minJobAge/2)), now: interval}
}

// told takes in whether a look has told anything new.
func (p *pace) told(something bool) {
	if something {
		p.now = p.shortest
	} else {
		p.now = min(p.now*3/2, p.longest)
	}
}

// wait waits until the next look is due, and says whether there is to be one: not once the context has ended.
func (p *pace) wait(ctx context.Context, ordered <-chan struct{}) bool {
	due := time.Now().Add(spread(p.now))
	for {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
			return true
		case <-ordered:
			timer.Stop()
			p.now = p.shortest
			if soon := time.Now().Add(spread(p.now)); soon.Before(due) {
				due = soon
			}
		}
	}
}

// spread makes an interval a tenth longer or shorter by chance: several gateways, and the site's own pollers, must not fall
// into step.
func spread(d time.Duration) time.Duration { return d*9/10 + rand.N(d/5+1) }
