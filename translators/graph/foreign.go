package graph

import (
	"fmt"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
)

// Foreign is the dependency by which the scheduler itself keeps an edge that leads to no job of the gateway's: to somebody
// else's job, or to whichever job bears the same name. Nobody tells the gateway how those end, so that it can neither hold
// the task for them nor count them in a rule: such an edge is native, beside whatever becomes of the others, or refused. The
// type is empty of every other edge.
func Foreign(t *dagbridgev1.Task, e *dagbridgev1.Edge) translators.Dependency {
	d := translators.Dependency{NativeID: e.GetNative().GetId()}
	switch {
	case e.GetCondition() == dagbridgev1.Edge_SINGLETON:
		return translators.Dependency{Type: translators.Singleton}
	case e.GetNative() == nil:
		return translators.Dependency{}
	case e.GetCondition() == dagbridgev1.Edge_STARTED:
		d.Type, d.Delay = translators.After, e.GetDelay().AsDuration()
	default:
		d.Type = foreignTypes[t.GetTriggerRule()]
	}
	return d
}

// foreignTypes are the rules that ask the same of every upstream, so that the others may be counted without it.
var foreignTypes = map[string]translators.DependencyType{
	AllSuccess: translators.AfterOK, NoneFailed: translators.AfterOK, AllDone: translators.AfterAny,
}

// isForeign says whether an edge leads to no job of the gateway's.
func isForeign(e *dagbridgev1.Edge) bool {
	return e.GetNative() != nil || e.GetCondition() == dagbridgev1.Edge_SINGLETON
}

// CheckForeign are the edges of a task that only its scheduler could keep, and cannot: the task's cluster is named cluster.
func CheckForeign(at string, t *dagbridgev1.Task, cluster string, keepsDependencies bool) translators.Faults {
	var faults translators.Faults
	for j, e := range t.GetUpstream() {
		if !isForeign(e) {
			continue
		}
		field, name := fmt.Sprintf("%s.upstream[%d]", at, j), from(t, e)
		if !keepsDependencies {
			faults.Add(field, "cluster %s keeps no dependencies, and what becomes of %s the gateway does not see", cluster, name)
			continue
		}
		if e.GetNative() == nil {
			continue
		}
		if own := e.GetNative().GetCluster(); own != "" && own != cluster {
			faults.Add(field+".native.cluster", "%s is on another cluster than the task, which is on %s: only the job's own scheduler can "+
				"keep the dependency", name, cluster)
		}
		if e.GetOptional() {
			faults.Add(field+".optional", "the gateway does not see whether %s was ever submitted: leave it out", name)
		}
		if e.GetInstances() == dagbridgev1.Edge_SAME_INDEX {
			faults.Add(field+".instances", "SAME_INDEX is for arrays of the gateway's: name one element (1234_7), or wait for the whole array")
		}
		if e.GetCondition() == dagbridgev1.Edge_STARTED && e.GetDelay().AsDuration()%time.Minute != 0 {
			faults.Add(field+".delay", "the scheduler counts delays in whole minutes")
		}
		if required(e) {
			faults.Add(field+".condition", "SUCCEEDED is decided by the gateway, which does not see how %s ends: the rules %s and %s say it", name, AllSuccess, NoneFailed)
			continue
		}
		if Foreign(t, e).Type == "" {
			faults.Add(field, "rule %s over %s would have to be decided by the gateway, which does not see how it ends: take %s, %s or %s, "+
				"or condition STARTED", t.GetTriggerRule(), name, AllSuccess, NoneFailed, AllDone)
		}
	}
	return faults
}
