package engine

import (
	"context"
	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// review looks again at jobs whose upstreams changed outside a transaction that knew them, ends cancelled jobs that no
// scheduler has, and drops clean-ups that have nothing to clean.
func (e *Engine) review(ctx context.Context, c *cluster) {
	now := e.now()
	nodes := e.mem.pick(c.Name, toReview, func(n *node) bool {
		return n.review && !now.Before(n.reviewAfter) || n.unit() && n.cancelledUnsent() || n.thinnedUnsent() || n.nothingToClean()
	})
	if len(nodes) == 0 {
		return
	}
	e.setReview(nodes, false)
	err := e.update(ctx, func(t *txn) error {
		for _, n := range nodes {
			if e.mem.holds(n, (*node).cancelledUnsent) && n.unit() {
				t.endByRule(n, dagbridgev1.Job_CANCELLED, "CANCELLED", "cancelled before it was submitted")
			}
			if e.mem.holds(n, (*node).thinnedUnsent) {
				t.elements(n, func(_ int, id string) {
					if t.rec(id).GetJob().GetCancelRequestTime() != nil {
						t.end(id, dagbridgev1.Job_CANCELLED, "CANCELLED", "cancelled before it was submitted")
					}
					if t.rec(id).GetCleanup() {
						t.change(id, func(rec *storev1.JobRecord) { rec.Cleanup = false })
					}
				})
				t.e.mem.touch(n, func() { n.thinned = false })
			}
			if e.mem.holds(n, (*node).nothingToClean) {
				t.change(n.id(), func(rec *storev1.JobRecord) { rec.Cleanup = false })
			}
			t.evaluate(n)
		}
		return nil
	})
	if err != nil {
		e.log.Error("reviewing jobs", "cluster", c.Name, "error", err)
		e.setReview(nodes, true)
	}
}

func (e *Engine) setReview(nodes []*node, review bool) {
	e.mem.mu.Lock()
	defer e.mem.mu.Unlock()
	for _, n := range nodes {
		n.review = review
		e.mem.mark(n)
	}
}

// holds: a predicate on a node, under the lock.
func (m *memory) holds(n *node, is func(*node) bool) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return is(n)
}

// orders are what a cluster is to be told now.
type orders struct {
	cancels []backend.Known
	changes []backend.Change
	marks   []mark
	// shown are jobs held until the scheduler has shown their dependencies, which it has.
	shown []*node
}

// mark is a native job that is gone and must not start late.
type mark struct {
	node  *node
	known backend.Known
}

// toMark is what of a unit must not start any more. mu is held.
func (m *memory) toMark(n *node) (backend.Known, bool) {
	k := m.known(n)
	k.Positions = nil
	some := false
	for pos, left := range n.marks {
		if some = some || !left; !left && pos >= 0 {
			k.Positions = append(k.Positions, pos)
		}
	}
	slices.Sort(k.Positions)
	return k, some
}

// converge orders what is wanted: once when it comes to be wanted, and again after every look that shows it is not so.
func (e *Engine) converge(ctx context.Context, c *cluster) {
	o := e.orders(c)
	e.cancel(ctx, c, o.cancels)
	e.leaveMarks(ctx, c, o.marks)
	if len(o.changes) > 0 {
		for i, err := range c.Backend.Alter(ctx, o.changes) {
			e.altered(o.changes[i].Ref.Token, err)
			if err != nil {
				e.log.Warn("a native job could not be changed; it is tried again after the next look", "token", o.changes[i].Ref.Token, "error", err)
			}
		}
	}
	if len(o.shown) == 0 {
		return
	}
	err := e.update(ctx, func(t *txn) error {
		for _, n := range o.shown {
			t.change(n.id(), func(rec *storev1.JobRecord) { rec.Hold = false })
		}
		return nil
	})
	if err != nil {
		e.log.Error("recording releases", "cluster", c.Name, "error", err)
	}
}

// leaveMarks sees to it that tokens which are to be followed by others never start.
func (e *Engine) leaveMarks(ctx context.Context, c *cluster, marks []mark) {
	if len(marks) == 0 {
		return
	}
	known := make([]backend.Known, len(marks))
	for i, m := range marks {
		known[i] = m.known
	}
	errs := c.Backend.Cancel(ctx, known)
	e.mem.mu.Lock()
	defer e.mem.mu.Unlock()
	for i, err := range errs {
		n := marks[i].node
		if err != nil || current(n.rec).GetToken() != known[i].Ref.Token {
			continue
		}
		for _, pos := range known[i].Positions {
			n.marks[pos] = true
		}
		if len(known[i].Positions) == 0 {
			n.marks[-1] = true
		}
		e.mem.mark(n)
	}
}

func (e *Engine) cancel(ctx context.Context, c *cluster, known []backend.Known) {
	if len(known) == 0 {
		return
	}
	for i, err := range c.Backend.Cancel(ctx, known) {
		if err != nil {
			e.log.Warn("a native job could not be cancelled; it is tried again after the next look", "token", known[i].Ref.Token, "error", err)
		}
	}
}

// orders collects what is to be told, and notes that it has been.
func (e *Engine) orders(c *cluster) orders {
	var o orders
	nodes := e.mem.pick(c.Name, toOrder, func(n *node) bool {
		return n.unit() && !n.inFlight && (n.fresh && current(n.rec).GetNativeId() != "" || n.wantsOrder())
	})
	m := e.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range nodes {
		// That an instance still runs is no reason to order more than another cancel.
		fresh, due := n.fresh, n.fresh || !n.ordered
		n.fresh, n.ordered, n.stillRuns = false, true, false
		if k, ok := m.toMark(n); ok {
			o.marks = append(o.marks, mark{n, k})
		}
		if k, ok := m.toCancel(n); ok {
			o.cancels = append(o.cancels, k)
		} else if due && !n.unwanted() {
			if change, ok := m.toChange(n, fresh); ok {
				o.changes = append(o.changes, change)
			}
			if fresh && m.dependenciesShown(n) {
				o.shown = append(o.shown, n)
			}
		}
		m.mark(n)
	}
	return o
}

// toCancel is what of a unit's native job has to go. mu is held.
func (m *memory) toCancel(n *node) (backend.Known, bool) {
	k := m.known(n)
	if !n.isArray() {
		return k, (n.unwanted() || n.stuck) && !n.isDead()
	}
	k.Positions = slices.DeleteFunc(k.Positions, func(pos int) bool { return !m.hasToGo(n, pos) })
	return k, len(k.Positions) > 0
}

// hasToGo: an element of an array is not wanted, and is not known to be dead. mu is held.
func (m *memory) hasToGo(n *node, position int) bool {
	if position < 0 || position >= len(n.kids) {
		return false
	}
	kid := m.element(n, position)
	return !n.deadAt(position) && ((n.unwanted() || n.stuck) && n.kids[position] != "" || kid != nil && kid.unwanted())
}

// element is the live job at a place of a native array; nil when it has ended, or has gone on by itself. mu is held.
func (m *memory) element(n *node, position int) *node {
	if position < 0 || position >= len(n.kids) {
		return nil
	}
	if kid := m.nodes[n.kids[position]]; kid != nil && kid.rec.GetCarrier() == n.id() {
		return kid
	}
	return nil
}

// toChange is how a unit's pending native job has to change. mu is held.
func (m *memory) toChange(n *node, fresh bool) (backend.Change, bool) {
	at := current(n.rec)
	change := backend.Change{
		Ref: backend.NativeRef{ID: at.GetNativeId(), Token: at.GetToken(), SubmitTime: at.GetSubmitTime().AsTime()}, Job: n.rec.GetJob(),
	}
	if !fresh {
		change.Release = n.toRelease()
		return change, change.Release
	}
	if n.seen.State != dagbridgev1.Job_SUBMITTED {
		return change, false
	}
	// After a launch that failed the scheduler has requeued it, but for the hold: it is the same attempt, and may go on.
	change.Release = n.toRelease() && n.seen.Held || n.seen.LaunchFailed
	if n.rec.GetNative() {
		if depends, ok := m.depends(n); ok && m.stale(n, depends) {
			change.Depends = &depends
		}
	}
	return change, change.Release || change.Depends != nil
}

// stale: the scheduler waits for a native job that does not count any more, an earlier attempt or a double of an upstream; or
// it does not wait, as it has shown of a job that is still held, for one that the same look has shown to live. mu is held.
func (m *memory) stale(n *node, now translators.Dependencies) bool {
	if !n.seen.DependenciesKnown {
		return false
	}
	counts := func(id string) bool {
		return slices.ContainsFunc(waitsFor(now), func(other string) bool { return alike(id, other) })
	}
	if slices.ContainsFunc(n.seen.Dependencies, func(id string) bool { return !counts(id) }) {
		return true
	}
	if n.seen.NeverSatisfied && !slices.ContainsFunc(waitsFor(now), func(id string) bool { return slices.Contains(n.seen.Dependencies, id) }) {
		return true // an element of the array it waits for has failed, and goes on by itself
	}
	return n.rec.GetHold() && !n.shows(now) && m.upstreamsShown(n)
}

// alike: two native ids are the same, or one is an array and the other an element of it. Whether all of an array is waited for
// or each of its elements that still run is one.
func alike(a, b string) bool {
	baseA, elementA := cutInstance(a)
	baseB, elementB := cutInstance(b)
	return baseA == baseB && (elementA == elementB || elementA == "" || elementB == "")
}

// shows: the last look has shown every one of some dependencies.
func (n *node) shows(d translators.Dependencies) bool {
	return !slices.ContainsFunc(waitsFor(d), func(want string) bool {
		return !slices.ContainsFunc(n.seen.Dependencies, func(id string) bool { return alike(id, want) })
	})
}

// dependenciesShown: a job that is held only until the scheduler has shown its dependencies may be released. mu is held.
func (m *memory) dependenciesShown(n *node) bool {
	if !n.rec.GetHold() || !n.rec.GetNative() || n.seen.State != dagbridgev1.Job_SUBMITTED {
		return false
	}
	depends, ok := m.depends(n)
	if !ok || !n.seen.DependenciesKnown {
		return false
	}
	// One that is not shown may have ended this very moment: its own news tells.
	return n.shows(depends) && m.upstreamsShown(n)
}

// upstreamsShown: the look that showed the job showed its upstreams too, each under its own token; their ids are not
// somebody else's by now. mu is held.
func (m *memory) upstreamsShown(n *node) bool {
	for _, u := range n.ups {
		if up := m.nodes[u.id]; up != nil && !graph.IsTerminal(up.rec.GetJob().GetState()) && !up.shownWith(m, n) {
			return false
		}
	}
	return true
}

// shownWith: the last look that showed a native job showed the other too; an instance is shown with its array. mu is held.
func (n *node) shownWith(m *memory, other *node) bool {
	if n.rec.GetUnrolled() {
		for _, id := range n.kids {
			if kid := m.nodes[id]; kid != nil && !graph.IsTerminal(kid.rec.GetJob().GetState()) && !kid.shownWith(m, other) {
				return false
			}
		}
		return true
	}
	if carrier := m.nodes[n.rec.GetCarrier()]; carrier != nil {
		return carrier.shownAt.Equal(other.shownAt)
	}
	return n.shownAt.Equal(other.shownAt)
}

// known is a unit's native job, with the positions of an array that live or are watched. mu is held.
func (m *memory) known(n *node) backend.Known {
	at := current(n.rec)
	k := backend.Known{Job: n.rec.GetJob(), Ref: backend.NativeRef{ID: at.GetNativeId(), Token: at.GetToken(), SubmitTime: at.GetSubmitTime().AsTime()}}
	for _, pos := range n.positions() {
		kid := m.element(n, pos)
		if kid != nil && live(kid.rec) || n.rec.GetCleanup() {
			k.Positions = append(k.Positions, pos)
		}
	}
	return k
}
