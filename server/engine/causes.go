package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// Causes that more follows from than that an attempt has failed, in the back ends' words.
const (
	causeMemory = "OUT_OF_MEMORY"
	causeTime   = "TIMEOUT"
	// causeRefused: the scheduler has not taken it.
	causeRefused = "SUBMISSION_REFUSED"
)

// causesOfNodes are those that speak against the node: PREEMPTED does not.
var causesOfNodes = []string{"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL"}

// maxExcluded is how many nodes a job is kept off. Beyond that it is not the nodes, and the oldest is tried again.
const maxExcluded = 16

// retried starts another attempt of a job whose last one has failed, if the budget of the cause has one left.
func (t *txn) retried(n *node, id, cause string, infrastructure bool) bool {
	rec, retry := t.rec(id), n.task.GetRetry()
	used, budget := rec.GetRetries(), retry.GetMaxRetries()
	if infrastructure {
		used, budget = rec.GetInfrastructureRetries(), retry.GetMaxInfrastructureRetries()
	}
	if used >= budget {
		return false
	}
	t.change(id, func(rec *storev1.JobRecord) {
		if infrastructure {
			rec.InfrastructureRetries++
		} else {
			rec.Retries++
		}
	})
	at := current(rec)
	message := fmt.Sprintf("attempt %d failed (%s); it is retried", at.GetNumber(), cause) + otherwise(at, following(n.task, current(t.rec(id))))
	t.again(n, id, "RETRY", message, backoff(retry, used))
	return true
}

// backoff before the next retry: doubled each time up to the cap, and spread by a fifth so that many do not come at once.
func backoff(r *dagbridgev1.Retry, retries int32) time.Duration {
	d := r.GetBackoff().AsDuration()
	for range retries {
		d = min(2*d, r.GetMaxBackoff().AsDuration())
	}
	return d - time.Duration(rand.Float64()*0.2*float64(d))
}

// following is what the attempt after one that has ended asks for: as much as that, and more of what it ran out of.
func following(task *dagbridgev1.Task, ended *dagbridgev1.Attempt) *dagbridgev1.Attempt {
	next := &dagbridgev1.Attempt{Memory: ended.GetMemory(), TimeLimit: ended.GetTimeLimit(), ExcludedNodes: slices.Clone(ended.GetExcludedNodes())}
	retry, asked := task.GetRetry(), task.GetResources()
	switch {
	case ended.GetReason() == causeMemory && retry.GetMemoryGrowth() != nil:
		next.Memory = graph.GrownMemory(cmp.Or(ended.GetMemory(), asked.GetMemory()), retry.GetMemoryGrowth())
	case ended.GetReason() == causeTime && retry.GetTimeLimitGrowth() != nil:
		next.TimeLimit = durationpb.New(graph.GrownTime(cmp.Or(ended.GetTimeLimit(), asked.GetTimeLimit()).AsDuration(), retry.GetTimeLimitGrowth()))
	case ended.GetReason() == causeRefused:
		next.ExcludedNodes = nil
	case slices.Contains(causesOfNodes, ended.GetReason()) && isOneNode(ended.GetNode()):
		next.ExcludedNodes = exclude(next.ExcludedNodes, ended.GetNode())
	}
	return next
}

// isOneNode: of several, which the scheduler writes as a list or a range, nobody says which one has failed.
func isOneNode(nodes string) bool { return nodes != "" && !strings.ContainsAny(nodes, ",[") }

func exclude(nodes []string, more ...string) []string {
	for _, node := range more {
		if !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes[max(0, len(nodes)-maxExcluded):]
}

// together is what a native array asks for whose instances would ask for one thing and for another: the larger of each, off
// the nodes of both.
func together(one, other *dagbridgev1.Attempt) *dagbridgev1.Attempt {
	both := &dagbridgev1.Attempt{Memory: one.GetMemory(), TimeLimit: one.GetTimeLimit(), ExcludedNodes: exclude(one.GetExcludedNodes(), other.GetExcludedNodes()...)}
	a, _ := graph.Memory(one.GetMemory()) // written by us
	if b, _ := graph.Memory(other.GetMemory()); b > a {
		both.Memory = other.GetMemory()
	}
	if other.GetTimeLimit().AsDuration() > one.GetTimeLimit().AsDuration() {
		both.TimeLimit = other.GetTimeLimit()
	}
	return both
}

// otherwise says in what an attempt differs from the one before it.
func otherwise(before, next *dagbridgev1.Attempt) string {
	var words []string
	if next.GetMemory() != before.GetMemory() {
		words = append(words, "with "+next.GetMemory()+" of memory")
	}
	if limit := next.GetTimeLimit().AsDuration(); limit != before.GetTimeLimit().AsDuration() {
		words = append(words, "with "+limit.String())
	}
	if !slices.Equal(next.GetExcludedNodes(), before.GetExcludedNodes()) {
		words = append(words, "not on "+strings.Join(next.GetExcludedNodes(), ", "))
	}
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " and ")
}

// anywhere: the scheduler refused an attempt that was to be kept off nodes. Maybe it has no others: the next attempt says nothing
// of them, and if that is refused too it was not for this.
func (t *txn) anywhere(n *node, sentence string) {
	refused := func(_ int, id string) {
		if n.isArray() && settled(t.rec(id)) {
			return
		}
		t.change(id, func(rec *storev1.JobRecord) {
			at := current(rec)
			at.State, at.Reason, at.Message = dagbridgev1.Job_FAILED, causeRefused, sentence
		})
		t.renew(n, id, "RETRY", "it was refused when kept off nodes that failed, and goes anywhere: "+sentence, 0)
	}
	if !n.isArray() {
		refused(-1, n.id())
	}
	t.elements(n, refused)
}
