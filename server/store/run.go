package store

import (
	"bytes"
	"fmt"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Run is a run as PutRun kept it; nil when there is none.
func (tx *Tx) Run(id string) *dagbridgev1.Run {
	key, ok := parseID(id)
	run := &dagbridgev1.Run{}
	if !ok || !tx.read(runs, key, run) {
		return nil
	}
	return run
}

// PutRun inserts or replaces a run. Its key (deployment, orchestrator, workflow, run) never changes.
func (tx *Tx) PutRun(run *dagbridgev1.Run) {
	id, ok := parseID(run.GetId())
	if !ok {
		panic(fmt.Sprintf("store: the run id %q is not a UUID", run.GetId()))
	}
	if tx.get(runs, id) == nil {
		tx.put(runnames, runName(run.GetDeployment(), run.GetOrchestrator(), run.GetWorkflow(), run.GetRun()), id)
		tx.put(lists, listOf(listWorkflowRuns, run.GetWorkflow(), id), nil)
	}
	tx.write(runs, id, run)
}

// RunNamed is the id of the run of that name, "" when there is none.
func (tx *Tx) RunNamed(deployment, orchestrator, workflow, run string) string {
	id := tx.get(runnames, runName(deployment, orchestrator, workflow, run))
	if id == nil {
		return ""
	}
	return formatID(id)
}

// RunJobs calls fn for the jobs of a run, oldest first, array instances left out, until it returns false.
func (tx *Tx) RunJobs(runID string, fn func(id string) bool) {
	if run, ok := parseID(runID); ok {
		tx.each(lists, list(listRunJobs, run), func(key []byte) bool { return fn(formatID(key[len(key)-idLen:])) })
	}
}

func (tx *Tx) removeRunIfEmpty(runID string) {
	run := tx.Run(runID)
	id, _ := parseID(runID)
	if run == nil || tx.any(lists, list(listRunJobs, id)) {
		return
	}
	name := runName(run.GetDeployment(), run.GetOrchestrator(), run.GetWorkflow(), run.GetRun())
	if bytes.Equal(tx.get(runnames, name), id) {
		tx.delete(runnames, name)
	}
	tx.delete(lists, listOf(listWorkflowRuns, run.GetWorkflow(), id))
	tx.delete(runs, id)
}

// runName sorts by what lists filter by first.
func runName(deployment, orchestrator, workflow, run string) []byte {
	key := appendPart(appendPart(nil, workflow), run)
	return appendPart(appendPart(key, deployment), orchestrator)
}
