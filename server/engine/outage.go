package engine

import "context"

// heard keeps what people are told of a cluster, and logs when it ceases to answer and when it answers again. c.mu is held.
func (e *Engine) heard(c *cluster, reachable bool, message string) {
	switch {
	case c.reachable && !reachable:
		e.log.Warn("a cluster does not answer; nothing is concluded meanwhile", "cluster", c.Name, "error", message)
	case !c.reachable && reachable:
		e.log.Info("a cluster answers again", "cluster", c.Name)
	}
	c.reachable, c.message = reachable, message
}

// tellOutage says of the jobs that may go, while their cluster does not answer, that this is what they wait for: nothing is
// submitted then, so no answer tells.
func (e *Engine) tellOutage(ctx context.Context, c *cluster) {
	c.mu.Lock()
	reachable, message := c.reachable, c.message
	c.mu.Unlock()
	if reachable {
		return
	}
	const chunk = 1000
	untold := func(n *node) bool { return n.mayBeSubmitted() && n.rec.GetJob().GetReason() != "CLUSTER_UNREACHABLE" }
	for rest := e.mem.pick(c.Name, toSubmit, untold); len(rest) > 0; {
		some := rest[:min(chunk, len(rest))]
		rest = rest[len(some):]
		err := e.update(ctx, func(t *txn) error {
			for _, n := range some {
				if e.mem.holds(n, (*node).mayBeSubmitted) {
					t.waits(n, "CLUSTER_UNREACHABLE", message)
				}
			}
			return nil
		})
		if err != nil {
			e.log.Error("recording what jobs wait for", "cluster", c.Name, "error", err)
			return
		}
	}
}
