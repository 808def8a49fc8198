package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// memory is the live jobs, and those ended ones that live jobs of the same run may still ask for.
type memory struct {
	mu sync.RWMutex
	// nodes by job id: not at their end, or with cleanup to do.
	nodes map[string]*node
	// byCluster: those of each set, by cluster.
	byCluster map[string][numSets]map[string]*node
	// ended records by id, kept while anything of their run lives.
	ended map[string]*storev1.JobRecord
	runs  map[string]*residentRun
	// waiting: the live jobs with an edge to a key, by the key's string.
	waiting map[string]map[string]*node
	// batches: the members of batches whose roots are still held.
	batches map[string]map[string]*node
	// byKey: the nodes of a key, by its string; several while an earlier try is not yet out of the way.
	byKey map[string]map[string]*node
	// liveKids counts the jobs of arrays' parents and of carriers, by their ids: these stay while one of them does.
	liveKids map[string]int
	// staged: nodes of jobs that a transaction is admitting, until the commit makes them live.
	staged map[string]*node
}

// set is some of a cluster's nodes: so a pass costs what there is to do, not what waits.
type set int

const (
	// units, and those of them that have a native id.
	units set = iota
	natives
	// What a pass may have to do: look again at upstreams, look for a token, order a change, submit. What is in none of these
	// is the scheduler's to move.
	toReview
	toFind
	toOrder
	toSubmit
	numSets
)

type residentRun struct {
	live  int
	ended []string
}

func newMemory() *memory {
	return &memory{
		nodes: map[string]*node{}, byCluster: map[string][numSets]map[string]*node{}, ended: map[string]*storev1.JobRecord{},
		runs: map[string]*residentRun{}, waiting: map[string]map[string]*node{}, batches: map[string]map[string]*node{},
		liveKids: map[string]int{}, byKey: map[string]map[string]*node{}, staged: map[string]*node{},
	}
}

// marked notes that a position's token must not start any more, and says whether the mark is left already.
func (m *memory) marked(n *node, position int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	left, asked := n.marks[position]
	if !asked {
		if n.marks == nil {
			n.marks = map[int]bool{}
		}
		n.marks[position] = false
		m.mark(n)
	}
	return left
}

// askRecheck has a token looked for once more, and says whether it has been already.
func (m *memory) askRecheck(n *node) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !n.rechecked {
		n.recheck = true
		m.mark(n)
	}
	return n.rechecked
}

// insert adds a live node to every index. mu is held.
func (m *memory) insert(n *node) {
	id, job := n.id(), n.rec.GetJob()
	m.nodes[id] = n
	for _, owner := range owners(n.rec) {
		m.liveKids[owner]++
	}
	if !isCarrier(n.rec) {
		key := graph.KeyString(job.GetKey())
		if m.byKey[key] == nil {
			m.byKey[key] = map[string]*node{}
		}
		m.byKey[key][id] = n
	}
	run := m.runs[job.GetRunId()]
	if run == nil {
		run = &residentRun{}
		m.runs[job.GetRunId()] = run
	}
	run.live++
	m.wait(n)
	m.batch(n)
	m.mark(n)
}

// wait notes a node with those it waits for.
func (m *memory) wait(n *node) {
	for _, up := range n.ups {
		if m.waiting[up.key] == nil {
			m.waiting[up.key] = map[string]*node{}
		}
		m.waiting[up.key][n.id()] = n
	}
}

// leave: a job has gone on by itself, out of the native array that it went in with. It needs what that waited for no more, but
// for the outputs.
func (m *memory) leave(n *node, carrier string) {
	if m.liveKids[carrier]--; m.liveKids[carrier] == 0 {
		delete(m.liveKids, carrier)
	}
	if c := m.nodes[carrier]; c != nil {
		n.ups = c.ups
		m.wait(n)
	}
}

// mark keeps the sets that a node is in. mu is held.
func (m *memory) mark(n *node) {
	cluster := n.rec.GetJob().GetCluster()
	sets := m.byCluster[cluster]
	if sets[units] == nil {
		for i := range sets {
			sets[i] = map[string]*node{}
		}
		m.byCluster[cluster] = sets
	}
	here, unit := m.nodes[n.id()] == n, n.unit()
	for i, in := range [numSets]bool{
		units:    unit,
		natives:  unit && current(n.rec).GetNativeId() != "",
		toReview: n.review || unit && (n.cancelledUnsent() || n.thinnedUnsent() || n.nothingToClean()),
		toFind:   unit && n.toFind(),
		toOrder:  unit && (n.fresh || n.wantsOrder()),
		toSubmit: unit && n.mayBeSubmitted(),
	} {
		if here && in {
			sets[i][n.id()] = n
		} else {
			delete(sets[i], n.id())
		}
	}
}

// edges are a node's upstreams as they are now.
func (m *memory) edges(n *node) []upstream {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return n.ups
}

// mayBeThere: a native job that no record names may exist for the job's current token.
func (m *memory) mayBeThere(id string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := m.nodes[id]
	return n != nil && n.uncertain()
}

// touch changes volatile fields of a node.
func (m *memory) touch(n *node, change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	m.mark(n)
}

// batch keeps the batches: a node is a member as long as it lives and its record names one.
func (m *memory) batch(n *node) {
	b := n.rec.GetBatch()
	if b == "" {
		return
	}
	if m.batches[b] == nil {
		m.batches[b] = map[string]*node{}
	}
	m.batches[b][n.id()] = n
}

// remove takes a node that has ended out of every index, and keeps its record while its run lives. mu is held.
func (m *memory) remove(n *node) {
	id, job := n.id(), n.rec.GetJob()
	delete(m.nodes, id)
	for _, owner := range owners(n.rec) {
		if m.liveKids[owner]--; m.liveKids[owner] == 0 {
			delete(m.liveKids, owner)
		}
	}
	m.mark(n)
	m.unwait(n)
	m.unbatch(n.rec)
	key := graph.KeyString(job.GetKey())
	if delete(m.byKey[key], id); len(m.byKey[key]) == 0 {
		delete(m.byKey, key)
	}
	for _, w := range m.waiting[key] {
		w.ups = slices.Clone(w.ups) // a reader may hold the old slice
		for i := range w.ups {
			if w.ups[i].id == id {
				w.ups[i].ended, w.ups[i].kids = job.GetState(), n.kids
			}
		}
	}
	run := m.runs[job.GetRunId()]
	m.ended[id] = n.rec
	run.ended = append(run.ended, id)
	if run.live--; run.live == 0 {
		for _, id := range run.ended {
			delete(m.ended, id)
		}
		delete(m.runs, job.GetRunId())
	}
}

func (m *memory) unbatch(rec *storev1.JobRecord) {
	b := rec.GetBatch()
	if delete(m.batches[b], rec.GetJob().GetId()); len(m.batches[b]) == 0 {
		delete(m.batches, b)
	}
}

func (m *memory) unwait(n *node) {
	for _, up := range n.ups {
		delete(m.waiting[up.key], n.id())
		if len(m.waiting[up.key]) == 0 {
			delete(m.waiting, up.key)
		}
	}
}

func (m *memory) node(id string) *node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if n := m.nodes[id]; n != nil {
		return n
	}
	return m.staged[id]
}

// job is what is durable of a live job, or of one that ended while its run lives; nil of others.
func (m *memory) job(id string) *dagbridgev1.Job { return m.record(id).GetJob() }

// record is the same with all that is kept of it.
func (m *memory) record(id string) *storev1.JobRecord {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if n := m.nodes[id]; n != nil {
		return n.rec
	}
	return m.ended[id]
}

// pick lists the nodes of a cluster's set that keep takes, in the order of their ids, that is of their making.
func (m *memory) pick(cluster string, from set, keep func(*node) bool) []*node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return pick(m.byCluster[cluster][from], keep)
}

// claim is pick, of nodes that are then in flight: nobody else submits or looks for them until they are let go.
func (m *memory) claim(cluster string, from set, keep func(*node) bool) []*node {
	m.mu.Lock()
	defer m.mu.Unlock()
	nodes := pick(m.byCluster[cluster][from], keep)
	for _, n := range nodes {
		n.inFlight = true
	}
	return nodes
}

// letGo lets go of nodes that were claimed in vain.
func (m *memory) letGo(nodes []*node) {
	if len(nodes) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range nodes {
		n.inFlight = false
		m.mark(n)
	}
}

// none: a cluster's set is empty.
func (m *memory) none(cluster string, of set) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.byCluster[cluster][of]) == 0
}

// pick asks keep of the nodes in the order of their ids.
func pick(from map[string]*node, keep func(*node) bool) []*node {
	all := slices.SortedFunc(maps.Values(from), func(a, b *node) int { return strings.Compare(a.id(), b.id()) })
	return slices.DeleteFunc(all, func(n *node) bool { return !keep(n) })
}

// liveOn is how many jobs of a cluster are not at their end.
func (m *memory) liveOn(cluster string) int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	count := 0
	for _, n := range m.byCluster[cluster][units] {
		by := map[dagbridgev1.Job_State]int{n.rec.GetJob().GetState(): 1}
		if n.isArray() {
			by = states(n.rec.GetJob().GetCounts())
		}
		for state, some := range by {
			if !graph.IsTerminal(state) {
				count += some
			}
		}
	}
	return count
}

// dependents are the live jobs with an edge to one of some keys, in the order of their ids.
func (m *memory) dependents(keys map[string]bool) []*node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	some := map[string]*node{}
	for key := range keys {
		maps.Copy(some, m.waiting[key])
	}
	return pick(some, func(*node) bool { return true })
}
