// Package store keeps the mappings: which native job carries which task, in one bbolt file that one process owns.
//
// # Model
//
// The truth is a JobRecord by job id, a TaskRecord by job id, and a Run by run id. Everything else is derived from them in
// the same transaction and answers one kind of question, so that no question reads everything:
//
//	jobs      job id -> JobRecord. Ids are UUIDv7: new ones are appended.
//	tasks     job id -> TaskRecord, written once. Apart from the job, which is rewritten with every change of state.
//	bodies    SHA-256 -> a script of more than 1 KiB, once for all the jobs that run it.
//	names     a task key's jobs: by (generation, try, job id), so that the last one is the newest; and by (try, uid), so that a repeated
//	          request finds its job in one read however many there are.
//	runs      run id -> Run.
//	runnames  (workflow, run, deployment, orchestrator) -> run id.
//	natives   (native id, cluster, submit time, job id, attempt). Schedulers use ids again: not unique.
//	lists     sorted sets of ids, one set after the other: see index.go.
//	changes   the change log of watches: which jobs were put, in commit order; one entry for each commit.
//	meta      schema version, the store's own id, what the engine keeps.
//
// A submission is eight puts: jobs, tasks, two names (on the same page), three lists (live, run, workflow) and its
// commit's entry in changes; one more for each label, two for a long script. Recording a native id is two (jobs, natives), and
// the end of a job two and a delete (jobs, lists).
//
// # Writing
//
// Update runs functions of concurrent callers in one transaction: one commit, one fsync, for all that were waiting. There is
// no background goroutine and no timer: the caller at the head of the queue does the work of all. The engine follows by
// OnCommit. Messages handed in or out are shared and immutable: change a clone.
//
// # What it may not do
//
// It judges nothing: whether a job may be created or change its state is the engine's word. It does no network I/O, and it
// imports proto alone.
package store
