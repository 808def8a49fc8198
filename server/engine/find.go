package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// findPause is how long a look that could not tell is not repeated.
const findPause = 2 * time.Second

// find looks for native jobs that may or may not be there: attempts whose submission has an unknown outcome, and those
// submitted a second time, before they are released.
func (e *Engine) find(ctx context.Context, c *cluster) {
	nodes := e.mem.claim(c.Name, toFind, func(n *node) bool {
		return n.unit() && n.toFind() && !n.inFlight && !e.now().Before(n.findAfter)
	})
	if len(nodes) == 0 {
		return
	}
	wants := make([]backend.Want, len(nodes))
	e.mem.mu.RLock()
	for i, n := range nodes {
		wants[i] = backend.Want{
			Token: current(n.rec).GetToken(), Job: n.rec.GetJob(), Since: n.rec.GetJob().GetCreateTime().AsTime(), Positions: n.positions(),
		}
	}
	e.mem.mu.RUnlock()
	findings := c.Backend.Find(ctx, wants)
	var doubles []backend.Known
	err := e.update(context.WithoutCancel(ctx), func(t *txn) error {
		doubles = doubles[:0] // a transaction may be run again
		for i, f := range findings {
			doubles = append(doubles, t.found(c, nodes[i], wants[i], f)...)
		}
		return nil
	})
	if err != nil {
		e.log.Error("recording what was found", "cluster", c.Name, "error", err)
	}
	e.mem.mu.Lock()
	for i, n := range nodes {
		n.inFlight = false
		if err == nil && findings[i].Presence != backend.Uncertain {
			n.rechecked, n.recheck = n.recheck || n.rechecked, false
		}
		if err == nil && findings[i].Presence != backend.Uncertain && !n.awaitsProof() {
			n.maybe = false
		} else {
			n.findAfter = e.now().Add(findPause)
		}
		e.mem.mark(n)
	}
	e.mem.mu.Unlock()
	if len(doubles) > 0 {
		e.cancel(ctx, c, doubles)
	}
}

// awaitsProof: one absence does not prove that a job which must not run never will: a late request may still arrive.
func (n *node) awaitsProof() bool {
	return n.goneSince != nil && current(n.rec).GetNativeId() == "" && (n.rec.GetJob().GetCancelRequestTime() != nil || n.rec.GetCleanup()) && live(n.rec)
}

// found records what was found of one token, and answers with the doubles that have to go.
func (t *txn) found(c *cluster, n *node, want backend.Want, f backend.Finding) []backend.Known {
	rec := t.rec(n.id())
	if current(rec).GetToken() != want.Token {
		return nil
	}
	refs := slices.DeleteFunc(slices.Clone(f.Refs), func(r backend.NativeRef) bool {
		given, of := t.e.mem.givenUp(n, r.ID)
		return given == of
	})
	switch {
	case f.Presence == backend.Uncertain:
		t.waits(n, "CLUSTER_UNREACHABLE", "whether the scheduler has it is being found out: "+f.Proof)
		return nil
	case len(refs) > 0:
		return t.adopt(c, n, want, refs, f.Held)
	case current(rec).GetNativeId() != "":
		return nil // submitted again, and gone already: the next look tells
	case f.Started || f.Presence == backend.Found:
		t.lost(n, "it had started, and "+f.Proof)
		return nil
	default:
		t.absent(n, f.Proof)
		return nil
	}
}

// adopt takes the native job that carries the token. Of several it takes the oldest that is not held, for that one may have
// started; held ones never have, and go. Others that are not held give themselves up when they find the start marker; of
// arrays, where each instance does so by itself, the one that has given up the fewest tells most.
func (t *txn) adopt(c *cluster, n *node, want backend.Want, refs []backend.NativeRef, held []string) []backend.Known {
	rec := t.rec(n.id())
	isHeld := func(r backend.NativeRef) bool { return slices.Contains(held, r.ID) }
	chosen := slices.MinFunc(refs, func(a, b backend.NativeRef) int {
		if isHeld(a) != isHeld(b) {
			if isHeld(a) {
				return 1
			}
			return -1
		}
		givenA, _ := t.e.mem.givenUp(n, a.ID)
		givenB, _ := t.e.mem.givenUp(n, b.ID)
		return cmp.Compare(givenA, givenB)
	})
	if current(rec).GetNativeId() != chosen.ID {
		sub := translators.Submission{Token: want.Token, Hold: isHeld(chosen)}
		for _, p := range want.Positions {
			if t.rec(n.kids[p]).GetCarrier() == n.id() {
				sub.Instances = append(sub.Instances, translators.Instance{Position: p, JobID: n.kids[p]})
			}
		}
		t.recorded(c, n, sub, backend.SubmitResult{Outcome: backend.Submitted, Ref: chosen, Digest: current(rec).GetNativeDigest()})
		// What a look has shown of another native job's dependencies says nothing of this one's.
		t.change(n.id(), func(rec *storev1.JobRecord) {
			rec.Hold = rec.GetHold() || rec.GetNative() && !guarded(rec.GetAnyDependency(), rec.GetDependencyTypes())
		})
	}
	if rec.GetSuspect() {
		t.change(n.id(), func(rec *storev1.JobRecord) { rec.Suspect = false })
	}
	var doubles []backend.Known
	for _, r := range refs {
		if r.ID != chosen.ID && isHeld(r) {
			doubles = append(doubles, backend.Known{Ref: r, Job: rec.GetJob(), Positions: want.Positions, Double: true})
			t.e.mem.double(n, double{r.ID, -1})
		}
	}
	return doubles
}

// absent: it is proven that no native job carries the token now.
func (t *txn) absent(n *node, proof string) {
	rec := t.rec(n.id())
	job := rec.GetJob()
	ended := graph.IsTerminal(job.GetState()) || n.isArray() && rec.GetCleanup()
	if !ended && job.GetCancelRequestTime() == nil {
		if !rec.GetSuspect() {
			t.change(n.id(), func(rec *storev1.JobRecord) { rec.Suspect = true })
		}
		return
	}
	if !t.e.mem.goneFor(n, -1, t.now, t.e.grace) {
		return
	}
	if !ended {
		t.endByRule(n, dagbridgev1.Job_CANCELLED, "CANCELLED", "cancelled before the scheduler had it: "+proof)
	}
	clean := func(_ int, id string) {
		if t.rec(id).GetCleanup() {
			t.change(id, func(rec *storev1.JobRecord) { rec.Cleanup = false })
		}
	}
	clean(-1, n.id())
	t.elements(n, clean)
}

// goneFor notes that a complete answer had no trace of a native job, and says whether that has been so for the grace.
func (m *memory) goneFor(n *node, position int, asOf time.Time, grace time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n.goneSince == nil {
		n.goneSince = map[int]time.Time{}
	}
	since, ok := n.goneSince[position]
	if !ok {
		n.goneSince[position] = asOf
		since = asOf
	}
	return asOf.Sub(since) >= grace
}
