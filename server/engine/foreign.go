package engine

import (
	"fmt"
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// foreign are a unit's dependencies on what is not the gateway's. They go with every submission until the job has started
// once: then they have held. An id may be refused, or be another job's, once its job is long over, so that those which the
// scheduler has shown to hold are not written again. mu is held.
func foreign(n *node) []translators.Dependency {
	for _, at := range n.rec.GetJob().GetAttempts() {
		if at.GetStartTime() != nil {
			return nil
		}
	}
	shown := n.seen != nil && n.seen.DependenciesKnown && current(n.rec).GetNativeId() != ""
	var terms []translators.Dependency
	for _, u := range n.ups {
		d := graph.Foreign(n.task, u.edge)
		holds := shown && d.NativeID != "" && !slices.Contains(n.seen.Dependencies, d.NativeID)
		if d.Type != "" && !holds {
			terms = append(terms, d)
		}
	}
	return terms
}

// foreignFailed ends a job that waits for somebody else's job in vain, as the scheduler says, and says whether it has.
func (t *txn) foreignFailed(n *node, obs backend.Observation) bool {
	for _, u := range t.e.mem.edges(n) {
		if d := graph.Foreign(n.task, u.edge); d.NativeID != "" && slices.Contains(obs.Failed, d.NativeID) {
			t.endByRule(n, dagbridgev1.Job_UPSTREAM_FAILED, "UPSTREAM",
				fmt.Sprintf("upstream %s:%s did not end as it must have (%s)", t.rec(n.id()).GetJob().GetCluster(), d.NativeID, d.Type))
			return true
		}
	}
	return false
}

// waitsFor are the native ids in an expression.
func waitsFor(d translators.Dependencies) []string {
	var ids []string
	for _, term := range d.Terms {
		if term.Type != translators.Singleton {
			ids = append(ids, term.NativeID)
		}
	}
	return ids
}
