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
			n.task = resolve.task(n.id())
			if n.isArray() {
				tx.Children(n.id(), func(id string) bool { n.kids = append(n.kids, id); return true })
			}
		} else if tx.Record(job.GetParent()).GetUnrolled() {
			n.task = graph.InstanceTask(resolve.task(job.GetParent()), int(n.rec.GetPosition()))
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
	if n.task == nil || n.isArray() && n.rec.GetUnrolled() {
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
		up.edge = edge
		ups = append(ups, up)
	}
	return ups
}
