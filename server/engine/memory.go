package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/store"
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

// node is a live job in memory. rec is replaced, never changed; the fields below it are volatile and guarded by memory.mu.
type node struct {
	rec *storev1.JobRecord
	// task of a unit, or of an array's parent; an instance has its own only when it is a unit.
	task *dagbridgev1.Task
	ups  []upstream
	// kids are an array's instances by position, ended ones included.
	kids []string

	// maybe: the current token may have reached the scheduler, by an earlier process or a call whose outcome is unknown.
	maybe bool
	// inFlight: a call that submits or looks for it is under way.
	inFlight bool
	// findAfter spaces out looks for it.
	findAfter time.Time
	// duplicates are native ids that the job script itself gave up as doubles of another.
	duplicates map[string]bool
	// seen is the last news of a unit; of an array, of one of its pending instances.
	seen *backend.Observation
	// shownAt is when the last look began that showed the native job under its own token.
	shownAt time.Time
	// fresh: seen came after the last pass.
	fresh bool
	// ordered: what is wanted of the native job has been ordered, and a look has to show whether it was done.
	ordered bool
	// recheck: it is gone and had started, as this or as another native job with its token, which is looked for once more.
	recheck, rechecked bool
	// marks are the positions whose token must not start any more, since it is to be followed by another; true once the mark
	// is left.
	marks map[int]bool
	// kidCancel: an instance of the array has been cancelled on its own.
	kidCancel bool
	// goneSince is when complete answers began to have no trace of it; of a unit that is an array, of each position.
	goneSince map[int]time.Time
	// deadSince is when the native job of a record with cleanup to do was first seen dead: it is watched a while longer, since
	// a scheduler that is killed may forget that it cancelled it. Of an array, dead tells it by position.
	deadSince time.Time
	dead      map[int]bool
	// review: something about its upstreams changed that no transaction has looked at yet, or will by the clock alone.
	review      bool
	reviewAfter time.Time
}

// upstream is one edge, resolved to the newest job of its key.
type upstream struct {
	edge  *dagbridgev1.Edge
	key   string
	task  string
	id    string
	setup bool
	// ended is how it ended, once it no longer lives.
	ended dagbridgev1.Job_State
}

func newMemory() *memory {
	return &memory{
		nodes: map[string]*node{}, byCluster: map[string][numSets]map[string]*node{}, ended: map[string]*storev1.JobRecord{},
		runs: map[string]*residentRun{}, waiting: map[string]map[string]*node{}, batches: map[string]map[string]*node{},
		staged: map[string]*node{},
	}
}

func (n *node) id() string { return n.rec.GetJob().GetId() }

func (n *node) isArray() bool { return n.task.GetArray() != nil }

// unit: it has a native job of its own.
func (n *node) unit() bool {
	switch {
	case n.rec.GetJob().GetParent() != "":
		return n.task != nil
	case n.isArray():
		return !n.rec.GetUnrolled()
	default:
		return true
	}
}

func (n *node) mayBeSubmitted() bool {
	return n.rec.GetReady() && current(n.rec).GetNativeId() == "" && !graph.IsTerminal(n.rec.GetJob().GetState())
}

// uncertain: a native job that no record names may exist, or a request for one may still arrive.
func (n *node) uncertain() bool {
	return n.maybe || n.inFlight || n.rec.GetSuspect() && current(n.rec).GetNativeId() == ""
}

// cancelledUnsent: a cancelled job that no scheduler can have.
func (n *node) cancelledUnsent() bool {
	job := n.rec.GetJob()
	return job.GetCancelRequestTime() != nil && !graph.IsTerminal(job.GetState()) && !n.uncertain() && current(n.rec).GetNativeId() == ""
}

// nothingToClean: it ended here while a call was under way that has made nothing.
func (n *node) nothingToClean() bool {
	return n.unit() && n.rec.GetCleanup() && current(n.rec).GetNativeId() == "" && !n.uncertain()
}

// toFind: a look for its token is due.
func (n *node) toFind() bool {
	return n.maybe || n.recheck || n.rec.GetSuspect() && (current(n.rec).GetNativeId() != "" || n.unwanted())
}

// unwanted: its native job, or with an array all of it, has to go.
func (n *node) unwanted() bool {
	job := n.rec.GetJob()
	if graph.IsTerminal(job.GetState()) || len(n.kids) > 0 && n.rec.GetCleanup() {
		return n.rec.GetCleanup() && job.GetState() != dagbridgev1.Job_LOST
	}
	return job.GetCancelRequestTime() != nil
}

// toRelease: it went in held and is held no longer.
func (n *node) toRelease() bool {
	return n.rec.GetHeld() && !n.rec.GetHold() && !n.rec.GetSuspect()
}

// wantsOrder: something is wanted of the native job that nobody has ordered yet.
func (n *node) wantsOrder() bool {
	if n.inFlight {
		return false
	}
	for _, left := range n.marks {
		if !left {
			return true
		}
	}
	if n.ordered {
		return false
	}
	if current(n.rec).GetNativeId() == "" {
		return n.uncertain() && n.unwanted() // only the mark can be left
	}
	return n.unwanted() || n.toRelease() || n.kidCancel
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

func live(rec *storev1.JobRecord) bool {
	return !graph.IsTerminal(rec.GetJob().GetState()) || rec.GetCleanup()
}

// current is the attempt that counts, the last.
func current(rec *storev1.JobRecord) *dagbridgev1.Attempt {
	attempts := rec.GetJob().GetAttempts()
	if len(attempts) == 0 {
		return nil
	}
	return attempts[len(attempts)-1]
}

// load fills the memory from the store: live jobs only, and the ended ones they wait for.
func (e *Engine) load(tx *store.Tx) error {
	var nodes []*node
	tx.Live(func(rec *storev1.JobRecord) bool {
		nodes = append(nodes, &node{rec: rec})
		return true
	})
	resolve, tasks := newResolver(tx), map[string]*dagbridgev1.Task{}
	taskOf := func(id string) *dagbridgev1.Task {
		if tasks[id] == nil {
			tasks[id] = tx.Task(id)
		}
		return tasks[id]
	}
	// An array's parent is kept while an instance needs cleanup, even when it has ended itself.
	have := map[string]bool{}
	for _, n := range nodes {
		have[n.id()] = true
	}
	for _, n := range slices.Clone(nodes) {
		if p := n.rec.GetJob().GetParent(); p != "" && !have[p] {
			have[p] = true
			nodes = append(nodes, &node{rec: tx.Record(p)})
		}
	}
	for _, n := range nodes {
		job := n.rec.GetJob()
		if job.GetParent() == "" {
			n.task = taskOf(n.id())
			if n.isArray() {
				tx.Children(n.id(), func(id string) bool { n.kids = append(n.kids, id); return true })
			}
		} else if tx.Record(job.GetParent()).GetUnrolled() {
			n.task = graph.InstanceTask(taskOf(job.GetParent()), int(n.rec.GetPosition()))
		}
		n.ups = resolve.edges(n)
		n.maybe = n.unit() && n.rec.GetReady() && current(n.rec).GetNativeId() == ""
		n.review = true
	}
	e.mem.mu.Lock()
	defer e.mem.mu.Unlock()
	for _, n := range nodes {
		e.mem.insert(n)
	}
	return nil
}

// resolver finds the newest jobs of keys; many edges lead to the same.
type resolver struct {
	tx    *store.Tx
	found map[string]upstream
}

func newResolver(tx *store.Tx) *resolver { return &resolver{tx: tx, found: map[string]upstream{}} }

// edges of a node, each resolved to the newest job of its key.
func (r *resolver) edges(n *node) []upstream {
	if n.task == nil || n.isArray() && n.rec.GetUnrolled() {
		return nil
	}
	ups := make([]upstream, 0, len(n.task.GetUpstream()))
	for _, edge := range n.task.GetUpstream() {
		key := graph.Upstream(n.task, edge)
		text := graph.KeyString(key)
		up, ok := r.found[text]
		if !ok {
			up = upstream{key: text, task: key.GetTask(), id: r.tx.Newest(key)}
			if owner := up.id; owner != "" {
				if parent := r.tx.Record(up.id).GetJob().GetParent(); parent != "" {
					owner = parent
				}
				up.setup = r.tx.Task(owner).GetSetup()
				if rec := r.tx.Record(up.id); !live(rec) {
					up.ended = rec.GetJob().GetState()
				}
			}
			r.found[text] = up
		}
		up.edge = edge
		ups = append(ups, up)
	}
	return ups
}

// insert adds a live node to every index. mu is held.
func (m *memory) insert(n *node) {
	id, job := n.id(), n.rec.GetJob()
	m.nodes[id] = n
	run := m.runs[job.GetRunId()]
	if run == nil {
		run = &residentRun{}
		m.runs[job.GetRunId()] = run
	}
	run.live++
	for _, up := range n.ups {
		if m.waiting[up.key] == nil {
			m.waiting[up.key] = map[string]*node{}
		}
		m.waiting[up.key][id] = n
	}
	m.batch(n)
	m.mark(n)
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
		toReview: n.review || unit && (n.cancelledUnsent() || n.nothingToClean()),
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
	m.mark(n)
	m.unwait(n)
	m.unbatch(n.rec)
	for _, w := range m.waiting[graph.KeyString(job.GetKey())] {
		w.ups = slices.Clone(w.ups) // a reader may hold the old slice
		for i := range w.ups {
			if w.ups[i].id == id {
				w.ups[i].ended = job.GetState()
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

// follow is the store's commit hook: the records are durable, in commit order.
func (e *Engine) follow(records []*storev1.JobRecord) {
	m := e.mem
	m.mu.Lock()
	for _, rec := range records {
		e.followOne(rec)
	}
	m.mu.Unlock()
	e.metrics.Committed(len(records))
	for _, c := range e.clusters {
		c.kick()
	}
}

func (e *Engine) followOne(rec *storev1.JobRecord) {
	m, id := e.mem, rec.GetJob().GetId()
	n := m.nodes[id]
	if n == nil {
		if n = m.staged[id]; n == nil {
			if !live(rec) {
				if _, kept := m.ended[id]; kept {
					m.ended[id] = rec
				}
				return
			}
			panic("engine: job " + id + " lives in the store and was never staged")
		}
		delete(m.staged, id)
		if !live(rec) {
			return
		}
		n.rec = rec
		n.review = len(n.ups) > 0 // one may have ended in the same commit
		m.insert(n)
		m.repoint(n)
		return
	}
	if n.rec.GetBatch() != rec.GetBatch() {
		m.unbatch(n.rec)
	}
	if before := current(n.rec); before.GetToken() != current(rec).GetToken() {
		n.maybe, n.seen, n.fresh, n.goneSince, n.duplicates = false, nil, false, nil, nil
		n.deadSince, n.dead = time.Time{}, nil
		n.recheck, n.rechecked, n.marks = false, false, nil
	}
	if from, to := n.rec.GetJob().GetState(), rec.GetJob().GetState(); graph.IsTerminal(to) && !graph.IsTerminal(from) {
		e.metrics.Ended(rec.GetJob().GetCluster(), to.String())
	}
	if wanted(n.rec) != wanted(rec) {
		n.ordered = false
	}
	if p := m.nodes[rec.GetJob().GetParent()]; p != nil && !n.unit() && n.rec.GetJob().GetCancelRequestTime() == nil && rec.GetJob().GetCancelRequestTime() != nil {
		p.kidCancel, p.ordered = true, false
		m.mark(p)
	}
	n.rec = rec
	if !live(rec) && !m.kidsLive(n) {
		m.remove(n)
		m.dropParent(rec.GetJob().GetParent())
		return
	}
	m.batch(n)
	m.mark(n)
}

// wanted is what the record wants of the native job.
func wanted(rec *storev1.JobRecord) string {
	return fmt.Sprint(current(rec).GetToken(), current(rec).GetNativeId(), rec.GetHeld(), rec.GetHold(), rec.GetSuspect(), rec.GetCleanup(), rec.GetJob().GetCancelRequestTime() != nil)
}

// kidsLive: an array's parent stays while an instance of it does.
func (m *memory) kidsLive(n *node) bool {
	return slices.ContainsFunc(n.kids, func(id string) bool { return m.nodes[id] != nil })
}

// dropParent removes an ended array's parent once its last instance is gone.
func (m *memory) dropParent(id string) {
	if p := m.nodes[id]; p != nil && !live(p.rec) && !m.kidsLive(p) {
		m.remove(p)
	}
}

// repoint leads the edges of those who wait for the new job's key to it.
func (m *memory) repoint(n *node) {
	for _, w := range m.waiting[graph.KeyString(n.rec.GetJob().GetKey())] {
		key := graph.KeyString(n.rec.GetJob().GetKey())
		w.ups = slices.Clone(w.ups) // a reader may hold the old slice
		for i := range w.ups {
			if w.ups[i].key == key {
				w.ups[i].id = n.id()
				w.ups[i].setup, w.ups[i].ended = n.task.GetSetup(), dagbridgev1.Job_STATE_UNSPECIFIED
			}
		}
		w.review = true
		m.mark(w)
	}
}

// stage hands a transaction's new node to the commit hook. Staging the same id again replaces it: transactions may be re-run.
func (m *memory) stage(n *node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged[n.id()] = n
}

func (m *memory) node(id string) *node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if n := m.nodes[id]; n != nil {
		return n
	}
	return m.staged[id]
}

// pick lists the nodes of a cluster's set that keep takes, in the order of their ids, that is of their making.
func (m *memory) pick(cluster string, from set, keep func(*node) bool) []*node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return pick(m.byCluster[cluster][from], keep)
}

// none: a cluster's set is empty.
func (m *memory) none(cluster string, of set) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.byCluster[cluster][of]) == 0
}

func pick(from map[string]*node, keep func(*node) bool) []*node {
	var some []*node
	for _, n := range from {
		if keep(n) {
			some = append(some, n)
		}
	}
	slices.SortFunc(some, func(a, b *node) int { return strings.Compare(a.id(), b.id()) })
	return some
}

func (m *memory) liveOn(cluster string) int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	count := 0
	for _, n := range m.byCluster[cluster][units] {
		if n.isArray() {
			count += len(n.kids)
		} else {
			count++
		}
	}
	return count
}

// dependents are the live jobs with an edge to a key.
func (m *memory) dependents(key string) []*node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return pick(m.waiting[key], func(*node) bool { return true })
}
