package engine

import (
	"slices"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// load fills the memory from the store: live jobs only, and the ended ones they wait for.
func (e *Engine) load(tx *store.Tx) error {
	var nodes []*node
	tx.Live(func(rec *storev1.JobRecord) bool {
		nodes = append(nodes, &node{rec: rec})
		return true
	})
	resolve := newResolver(tx)
	// An array's parent, or a carrier, is kept while a job of its needs cleanup, even when it has ended itself.
	have := map[string]*node{}
	for _, n := range nodes {
		have[n.id()] = n
	}
	for _, n := range slices.Clone(nodes) {
		for _, owner := range owners(n.rec) {
			if have[owner] == nil {
				have[owner] = &node{rec: tx.Record(owner)}
				nodes = append(nodes, have[owner])
			}
		}
	}
	for _, n := range nodes {
		resolve.load(n)
		n.maybe = n.unit() && n.rec.GetReady() && current(n.rec).GetNativeId() == ""
		n.review = true
		if carrier := have[n.rec.GetCarrier()]; carrier != nil && (n.rec.GetCleanup() || n.rec.GetJob().GetCancelRequestTime() != nil) {
			carrier.thinned = true
		}
	}
	e.mem.mu.Lock()
	defer e.mem.mu.Unlock()
	for _, n := range nodes {
		e.mem.insert(n)
	}
	for _, n := range nodes {
		if n.elementwise() {
			e.mem.remember(tx, n)
		}
	}
	return nil
}

// remember keeps the ended instances of arrays that an array waits for instance for instance. mu is held.
func (m *memory) remember(tx *store.Tx, n *node) {
	run := m.runs[n.rec.GetJob().GetRunId()]
	for _, up := range n.ups {
		kids := up.kids
		if live := m.nodes[up.id]; live != nil {
			kids = live.kids
		}
		for _, id := range kids {
			if m.nodes[id] == nil && m.ended[id] == nil {
				m.ended[id] = tx.Record(id)
				run.ended = append(run.ended, id)
			}
		}
	}
}

// load gives a node what follows from its record.
func (r *resolver) load(n *node) {
	job := n.rec.GetJob()
	switch {
	case isCarrier(n.rec):
		n.kids = n.rec.GetCarried()
		n.task = r.carriedTask(n.kids)
	case job.GetParent() == "":
		n.task = r.task(n.id())
		if n.task.GetArray() != nil {
			r.tx.Children(n.id(), func(id string) bool { n.kids = append(n.kids, id); return true })
		}
	case isUnit(n.rec):
		n.task = graph.InstanceTask(r.task(job.GetParent()), int(n.rec.GetPosition()))
	}
	n.ups = r.edges(n)
}

// carriedTask is the task of a carrier: its first job's, or the whole array's.
func (r *resolver) carriedTask(carried []string) *dagbridgev1.Task {
	for _, id := range carried {
		if id == "" {
			continue
		}
		if parent := r.tx.Record(id).GetJob().GetParent(); parent != "" {
			return r.task(parent)
		}
		return r.task(id)
	}
	return nil
}

// resolver finds the newest jobs of keys; many edges lead to the same.
type resolver struct {
	tx    *store.Tx
	found map[string]upstream
	// made are the ids of jobs that the transaction itself makes, by their keys: no need to ask the store for them.
	made map[string]string
	// tasks by job id; the instances of an array share one.
	tasks map[string]*dagbridgev1.Task
}

func newResolver(tx *store.Tx) *resolver {
	return &resolver{tx: tx, found: map[string]upstream{}, made: map[string]string{}, tasks: map[string]*dagbridgev1.Task{}}
}

func (r *resolver) task(id string) *dagbridgev1.Task {
	if r.tasks[id] == nil {
		r.tasks[id] = r.tx.Task(id)
	}
	return r.tasks[id]
}

// newest is the id of the newest job of a key; "" when there is none.
func (r *resolver) newest(key *dagbridgev1.TaskKey, text string) string {
	if id := r.made[text]; id != "" {
		return id
	}
	return r.tx.Newest(key)
}

// edges of a node, each resolved to the newest job of its key.
func (r *resolver) edges(n *node) []upstream {
	if n.task == nil || !n.unit() {
		return nil
	}
	ups := make([]upstream, 0, len(n.task.GetUpstream()))
	for _, edge := range n.task.GetUpstream() {
		key := graph.Upstream(n.task, edge)
		if key == nil { // foreign: there is no job here to look at
			ups = append(ups, upstream{edge: edge})
			continue
		}
		text := graph.KeyString(key)
		up, ok := r.found[text]
		if !ok {
			up = upstream{key: text, task: key.GetTask(), id: r.newest(key, text)}
			if owner := up.id; owner != "" {
				if parent := r.tx.Record(up.id).GetJob().GetParent(); parent != "" {
					owner = parent
				}
				up.setup = r.task(owner).GetSetup()
				if rec := r.tx.Record(up.id); !live(rec) {
					up.ended = rec.GetJob().GetState()
				}
			}
			r.found[text] = up
		}
		// Of the edges that lead to one key only some may wait instance for instance.
		if edge.GetInstances() == dagbridgev1.Edge_SAME_INDEX && up.ended != dagbridgev1.Job_STATE_UNSPECIFIED && up.kids == nil {
			r.tx.Children(up.id, func(id string) bool { up.kids = append(up.kids, id); return true })
			r.found[text] = up
		}
		up.edge = edge
		ups = append(ups, up)
	}
	return ups
}
