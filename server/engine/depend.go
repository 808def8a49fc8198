package engine

import (
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// depends is the dependency expression over the upstreams that have not ended, by their current native ids; false while one
// of them has none. mu is held.
func (m *memory) depends(n *node) (translators.Dependencies, bool) {
	d := translators.Dependencies{Any: n.rec.GetAnyDependency()}
	var elements []element
	for i, u := range n.ups {
		up, kind, state := m.nodes[u.id], translators.DependencyType(n.rec.GetDependencyTypes()[i]), u.ended
		if up != nil {
			state = up.rec.GetJob().GetState()
		}
		switch {
		case kind == "":
			continue // the rule does not wait for it, or it is foreign
		case kind == translators.AfterCorr && !m.succeeded(n, u):
			return d, false // an instance that has failed may be tried again
		case !graph.IsTerminal(state) && up != nil:
		case satisfies(kind, state) && d.Any:
			return translators.Dependencies{}, true // one is enough, and this is it
		case satisfies(kind, state) || d.Any:
			continue // resolved here
		default:
			return d, false // it may be tried again; else the job has ended with it
		}
		natives, ok := m.natives(n, up, kind)
		if !ok {
			return d, false
		}
		for _, up := range natives {
			if up.rec.GetCarrier() != "" && !d.Any && u.edge.GetDelay() == nil {
				elements = append(elements, element{len(d.Terms), kind, up.rec.GetCarrier()})
			}
			d.Terms = append(d.Terms, translators.Dependency{
				Type: kind, NativeID: current(up.rec).GetNativeId(), Delay: u.edge.GetDelay().AsDuration(),
			})
		}
	}
	d.Terms = append(m.together(d.Terms, elements), foreign(n)...)
	// Of alternatives that have all failed none may be dropped: what is left would be nothing to wait for.
	return d, !d.Any || len(d.Terms) > 0
}

// natives are the units, or elements of units, whose native ids stand for an upstream: itself, or of an array in several chunks
// those of the chunks that have not ended; false while one of them has no native id. An array that waits for another
// instance for instance has chunks at the same indices. mu is held.
func (m *memory) natives(n, up *node, kind translators.DependencyType) ([]*node, bool) {
	if !up.rec.GetUnrolled() {
		return []*node{up}, m.isThere(up)
	}
	waiting := up.kids
	if kind == translators.AfterCorr {
		waiting = m.corresponding(n, up.kids)
	}
	var chunks []*node
	for _, id := range waiting {
		kid := m.nodes[id]
		if kid == nil || graph.IsTerminal(kid.rec.GetJob().GetState()) {
			continue
		}
		chunk := m.nodes[kid.rec.GetCarrier()]
		if chunk == nil || !m.isThere(chunk) {
			return nil, false // not yet, or it goes one by one
		}
		if !slices.Contains(chunks, chunk) {
			chunks = append(chunks, chunk)
		}
	}
	return chunks, true
}

// corresponding are the instances of an array, of which kids are all, at the indices of the live ones in another's native
// array. mu is held.
func (m *memory) corresponding(n *node, kids []string) (ids []string) {
	for element := range n.kids {
		if kid := m.element(n, element); kid != nil && !graph.IsTerminal(kid.rec.GetJob().GetState()) && int(kid.rec.GetPosition()) < len(kids) {
			ids = append(ids, kids[kid.rec.GetPosition()])
		}
	}
	return ids
}

// succeeded: those of an upstream's instances that live ones of an array wait for have succeeded, as far as they have ended. mu
// is held.
func (m *memory) succeeded(n *node, u upstream) bool {
	kids := u.kids
	if up := m.nodes[u.id]; up != nil {
		kids = up.kids
	}
	return !slices.ContainsFunc(m.corresponding(n, kids), func(id string) bool {
		rec := m.ended[id]
		if kid := m.nodes[id]; kid != nil {
			rec = kid.rec
		}
		state := rec.GetJob().GetState()
		return graph.IsTerminal(state) && state != dagbridgev1.Job_SUCCEEDED
	})
}

// isThere: the scheduler has it, as far as is known. mu is held.
func (m *memory) isThere(n *node) bool {
	if carrier := m.nodes[n.rec.GetCarrier()]; carrier != nil {
		_, gone := carrier.goneSince[int(n.rec.GetElement())]
		return n.rec.GetJob().GetNativeId() != "" && !gone
	}
	if current(n.rec).GetNativeId() == "" {
		return false
	}
	for position := range n.goneSince {
		if kid := m.element(n, position); !n.isArray() || kid != nil && !graph.IsTerminal(kid.rec.GetJob().GetState()) {
			return false // what of an array has ended may be gone
		}
	}
	return true
}

// element is a term that names one element of a native array.
type element struct {
	term    int
	kind    translators.DependencyType
	carrier string
}

// together says of native arrays all of whose elements are waited for only that: a hundred tasks that went in as one array
// are one term. mu is held.
func (m *memory) together(terms []translators.Dependency, elements []element) []translators.Dependency {
	waited := map[element]int{}
	for _, e := range elements {
		e.term = 0
		waited[e]++
	}
	named := map[element]bool{}
	drop := map[int]bool{}
	for _, e := range elements {
		term := e.term
		e.term = 0
		if !m.isAll(m.nodes[e.carrier], e.kind, waited[e]) {
			continue
		}
		if drop[term] = named[e]; !named[e] {
			named[e] = true
			terms[term].NativeID, _ = cutInstance(terms[term].NativeID)
		}
	}
	kept := terms[:0]
	for i, term := range terms {
		if !drop[i] {
			kept = append(kept, term)
		}
	}
	return kept
}

// isAll: a dependency on a whole native array says the same as those on so many of its elements that have not ended. mu is held.
func (m *memory) isAll(carrier *node, kind translators.DependencyType, waited int) bool {
	if carrier == nil || slices.Contains(carrier.kids, "") || kind != translators.AfterOK && kind != translators.AfterAny {
		return false
	}
	live := 0
	for state, n := range states(carrier.rec.GetJob().GetCounts()) {
		switch {
		case !graph.IsTerminal(state):
			live += n
		case kind == translators.AfterOK && state != dagbridgev1.Job_SUCCEEDED:
			return false
		}
	}
	return live == waited
}

// satisfies: an upstream that ended so satisfies a dependency of this type.
func satisfies(kind translators.DependencyType, state dagbridgev1.Job_State) bool {
	switch kind {
	case translators.AfterAny, translators.After:
		return true
	case translators.AfterCorr:
		return true // as succeeded has found: instances whose own upstream has not have ended with it
	case translators.AfterNotOK:
		return state != dagbridgev1.Job_SUCCEEDED
	default:
		return state == dagbridgev1.Job_SUCCEEDED
	}
}

// guard are the jobs whose success a native job waits for, as their success markers are found. mu is held.
func (m *memory) guard(n *node) []translators.InputJob {
	var guard []translators.InputJob
	for i, u := range n.ups {
		up := m.nodes[u.id]
		if up == nil || graph.IsTerminal(up.rec.GetJob().GetState()) || n.rec.GetDependencyTypes()[i] != string(translators.AfterOK) {
			continue
		}
		switch {
		case up.isArray():
			for pos := range up.kids {
				guard = append(guard, translators.InputJob{JobID: up.id(), Position: pos})
			}
		case up.rec.GetUnrolled():
			for _, id := range up.kids {
				if kid := m.nodes[id]; kid != nil && !graph.IsTerminal(kid.rec.GetJob().GetState()) {
					guard = append(guard, inputJob(kid.rec))
				}
			}
		default:
			guard = append(guard, inputJob(up.rec))
		}
	}
	return guard
}
