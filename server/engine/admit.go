package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// OneTask is a request for a single task as a workflow of one.
func OneTask(req *dagbridgev1.SubmitTaskRequest) *dagbridgev1.Workflow {
	task := req.GetTask()
	key := task.GetKey()
	return &dagbridgev1.Workflow{
		Run: &dagbridgev1.Run{
			Deployment: key.GetDeployment(), Orchestrator: key.GetOrchestrator(), Workflow: key.GetWorkflow(), Run: key.GetRun(),
			TryNumber: task.GetTryNumber(), Uid: task.GetUid(),
		},
		Tasks: []*dagbridgev1.Task{task}, WaitFor: req.GetWaitFor(), OnConflict: req.GetOnConflict(), IfLive: req.GetIfLive(),
	}
}

// OneTaskFaults leads the faults of a workflow of one back to the fields of the request for the task.
func OneTaskFaults(faults translators.Faults) translators.Faults {
	for i, f := range faults {
		faults[i].Field = strings.Replace(strings.Replace(f.Field, "tasks[0]", "task", 1), "run.", "task.key.", 1)
	}
	return faults
}

// SubmitTask admits one task. Errors: translators.Faults, *Error, the store's.
func (e *Engine) SubmitTask(ctx context.Context, owner string, req *dagbridgev1.SubmitTaskRequest) (*dagbridgev1.SubmitTaskResponse, error) {
	_, jobs, warnings, err := e.admit(ctx, owner, OneTask(req), req.GetReserve())
	var faults translators.Faults
	switch {
	case errors.As(err, &faults):
		return nil, OneTaskFaults(faults)
	case err != nil:
		return nil, err
	}
	return &dagbridgev1.SubmitTaskResponse{Job: jobs[0], Warnings: warnings}, nil
}

// SubmitWorkflow admits a whole DAG, all of it or nothing. Errors as SubmitTask's.
func (e *Engine) SubmitWorkflow(ctx context.Context, owner string, w *dagbridgev1.Workflow) (*dagbridgev1.SubmitWorkflowResponse, error) {
	runID, jobs, warnings, err := e.admit(ctx, owner, w, nil)
	if err != nil {
		return nil, err
	}
	run, err := e.Run(runID)
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.SubmitWorkflowResponse{Run: run, Jobs: jobs, Warnings: warnings}, nil
}

// withRun is a workflow, with its run named where it names none. All else they share.
func withRun(w *dagbridgev1.Workflow, run string) *dagbridgev1.Workflow {
	r := cmp.Or(proto.CloneOf(w.GetRun()), &dagbridgev1.Run{})
	if r.GetOrchestrator() == "" && r.GetWorkflow() == "" && r.GetRun() == "" {
		r.Orchestrator, r.Workflow, r.Run = "cli", cmp.Or(w.GetName(), "workflow"), run
		r.Uid = cmp.Or(r.GetUid(), run)
	}
	w = graph.Shallow(w)
	w.Run = r
	return w
}

// places are the clusters, without what the engine knows of them.
func (e *Engine) places() []Cluster {
	all := make([]Cluster, len(e.clusters))
	for i, c := range e.clusters {
		all[i] = c.Cluster
	}
	return all
}

// surroundings of an owner's request are the jobs there are.
func (e *Engine) surroundings(owner string) surroundings {
	newest := func(key *dagbridgev1.TaskKey) (id string) {
		_ = e.store.View(func(tx *store.Tx) error { id = tx.Newest(key); return nil }) // fn returns no error
		return id
	}
	return surroundings{
		user:  func(asked string) (string, error) { return e.userOf(owner, asked) },
		known: func(key *dagbridgev1.TaskKey) bool { return newest(key) != "" },
		node: func(key *dagbridgev1.TaskKey) (graph.Node, bool) {
			return e.existing(newest(key))
		},
	}
}

// existing is an earlier job as graph sees it: live, or ended.
func (e *Engine) existing(id string) (graph.Node, bool) {
	node := graph.Node{Existing: true}
	err := e.store.View(func(tx *store.Tx) error {
		rec := tx.Record(id)
		if rec == nil {
			return errorf(NotFound, "there is no job %s", id)
		}
		job := rec.GetJob()
		node.Cluster, node.User = job.GetCluster(), job.GetUser()
		if node.Task = tx.Task(id); job.GetParent() != "" {
			node.Task = graph.InstanceTask(tx.Task(job.GetParent()), int(rec.GetPosition()))
		}
		c := e.byName[node.Cluster]
		node.KeepsDependencies = c != nil && c.Backend.Capabilities().Dependencies && !rec.GetUnrolled()
		if graph.IsTerminal(job.GetState()) {
			node.Ended = job.GetState()
		}
		return nil
	})
	return node, err == nil
}

// admit checks a workflow and makes its jobs durable, in one transaction. With reserve its one task is reserved for so long.
func (e *Engine) admit(ctx context.Context, owner string, w *dagbridgev1.Workflow, reserve *durationpb.Duration) (runID string, jobs []*dagbridgev1.Job, warnings []string, err error) {
	w = graph.Normalize(withRun(w, e.newID()))
	p, faults := prepare(w, e.places(), e.surroundings(owner))
	if faults = append(faults, reservationFaults(w, reserve)...); len(faults) > 0 {
		return "", nil, nil, faults
	}
	a := &admission{prepared: p, owner: owner, reserve: reserve}
	defer func() { e.mem.unstage(a.staged); e.mem.unstage(a.revival.staged) }()
	err = e.update(ctx, func(t *txn) error { return a.admit(t) })
	if err != nil {
		return "", nil, nil, err
	}
	if w.GetWaitFor() == dagbridgev1.WaitFor_SUBMITTED || w.GetWaitFor() == dagbridgev1.WaitFor_TERMINAL {
		jobs, err = e.Wait(ctx, a.ids, w.GetWaitFor())
	} else {
		jobs, err = e.jobs(a.ids)
	}
	return a.runID, jobs, a.warnings, err
}

// unstage drops nodes of transactions that did not come to pass.
func (m *memory) unstage(ids []string) {
	if len(ids) == 0 {
		return // as after most transactions
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.staged, id)
	}
}

// admission is one request on its way into the store. Its transaction may be run more than once.
type admission struct {
	*prepared
	owner string
	// reserve is for how long the jobs are reserved; nil: they are submitted.
	reserve  *durationpb.Duration
	staged   []string
	revival  revival
	resolve  *resolver
	runID    string
	ids      []string
	warnings []string
}

// meeting is how a task meets what is there under its key.
type meeting struct {
	// existing is the job the request is answered with; "" makes a new one.
	existing string
	// name: the request's try becomes another name of it, and the job, if it was reserved, is so no longer.
	name bool
	// again are the instances of the existing job, an array, that have another attempt in this try.
	again []string
	// replace is the live job that the new one takes the place of: it is cancelled.
	replace string
	warning string
}

// admit checks everything first, then puts.
func (a *admission) admit(t *txn) error {
	a.ids, a.warnings, a.resolve = make([]string, len(a.tasks)), nil, newResolver(t.Tx)
	meetings := make([]meeting, len(a.tasks))
	kept := make([]bool, len(a.tasks))
	for _, i := range a.order {
		m, err := a.meet(t, a.tasks[i], kept)
		if err != nil {
			return err
		}
		meetings[i] = m
		kept[i] = m.existing != "" && len(m.again) == 0
	}
	a.putRun(t)
	batches := map[int]string{}
	together := map[int][]*planned{} // the new ones, by their fold
	for _, i := range a.order {
		if one := a.tasks[i]; one.fold > 0 && meetings[i].existing == "" {
			together[one.fold] = append(together[one.fold], one)
		}
	}
	for _, i := range a.order {
		one, m := a.tasks[i], meetings[i]
		if m.warning != "" {
			a.warnings = append(a.warnings, m.warning)
		}
		if m.existing != "" {
			if a.ids[i] = m.existing; m.name {
				t.change(m.existing, func(rec *storev1.JobRecord) {
					rec.Job.Reserved = nil
					rec.Names = append(rec.Names, &storev1.Name{TryNumber: one.task.GetTryNumber(), Uid: one.task.GetUid()})
				})
			}
			if len(m.again) > 0 {
				if err := a.revival.instances(t, m.existing, m.again); err != nil {
					return err
				}
			}
			continue
		}
		if m.replace != "" {
			t.requestCancel(m.replace)
		}
		if one.batch != 0 && batches[one.batch] == "" {
			batches[one.batch] = t.e.newID()
		}
		switch members := together[one.fold]; {
		case len(members) < 2:
			a.ids[i] = a.make(t, one, batches[one.batch])
		case members[0] == one: // what they wait for is the same, and is made already
			a.makeTogether(t, members, batches[one.batch])
		}
	}
	return nil
}

// meet decides how a task meets what is there.
func (a *admission) meet(t *txn, one *planned, kept []bool) (meeting, error) {
	task, key := one.task, one.task.GetKey()
	label := fmt.Sprintf("task %s of run %s", key.GetTask(), key.GetRun())
	if id := t.Named(key, task.GetTryNumber(), task.GetUid()); id != "" {
		m := meeting{existing: id}
		rec := t.rec(id)
		if rec.GetJob().GetParent() != "" {
			return m, nil // an instance of an array: the array's task is what was submitted
		}
		was, asked := t.Task(id), task
		if rec.GetJob().GetUid() != task.GetUid() { // the try has been attached to it, or has claimed it
			asked = waiting(asked, was)
		}
		diff := graph.FirstDifference(was, asked)
		if diff == "" {
			return m, nil
		}
		if a.w.GetOnConflict() != dagbridgev1.OnConflict_ATTACH {
			return m, errorf(AlreadyExists, "%s, try %d, was submitted before as job %s with another content: %s. Send the same content, a higher tryNumber or another uid.",
				label, task.GetTryNumber(), id, diff)
		}
		m.warning = fmt.Sprintf("%s is job %s, submitted with another content: %s", label, id, diff)
		return m, nil
	}
	newest := t.Newest(key)
	if newest == "" {
		return meeting{}, nil
	}
	rec := t.rec(newest)
	one.generation = rec.GetGeneration()
	if a.reserve != nil && task.GetTryNumber() < newestTry(rec) { // it is of no try, and newer than those there were
		one.task = graph.Shallow(task)
		one.task.TryNumber = newestTry(rec)
	}
	if a.reserve != nil || rec.GetJob().GetReserved() != nil {
		return a.reserved(t, one, rec), nil
	}
	if task.GetTryNumber() < newestTry(rec) {
		id := t.NewestTry(key, task.GetTryNumber())
		switch {
		case id == "":
			return meeting{}, errorf(FailedPrecondition, "%s is at try %d already (job %s); try %d was never submitted and is too late now.",
				label, newestTry(rec), newest, task.GetTryNumber())
		case !madeAgain(t.rec(id), task):
			return meeting{existing: id}, nil
		}
		one.generation++
	}
	state := rec.GetJob().GetState()
	if a.w.GetRun().GetMode() == dagbridgev1.Run_ONLY_FAILED && a.allKept(one, kept) {
		if state == dagbridgev1.Job_SUCCEEDED || state == dagbridgev1.Job_SKIPPED {
			return meeting{existing: newest}, nil
		}
		if again := a.failedInstances(t, rec, task); len(again) > 0 {
			return meeting{existing: newest, name: true, again: again}, nil
		}
	}
	// A new job waits until every earlier one of its key is dead.
	if graph.IsTerminal(state) || rec.GetJob().GetCancelRequestTime() != nil {
		return meeting{}, nil
	}
	if a.w.GetIfLive() == dagbridgev1.IfLive_REPLACE {
		return meeting{replace: newest}, nil
	}
	return meeting{existing: newest, name: true, warning: fmt.Sprintf("%s, try %d, is attached to job %s, which is still live", label, task.GetTryNumber(), newest)}, nil
}

// madeAgain: the try had another uid, so it was of a run that has been deleted since, and this one is of a run that bears its name.
func madeAgain(rec *storev1.JobRecord, task *dagbridgev1.Task) bool {
	known := rec.GetJob().GetTryNumber() == task.GetTryNumber() && rec.GetJob().GetUid() != ""
	for _, name := range rec.GetNames() {
		known = known || name.GetTryNumber() == task.GetTryNumber() && name.GetUid() != ""
	}
	return known && task.GetUid() != ""
}

func newestTry(rec *storev1.JobRecord) int32 {
	try := rec.GetJob().GetTryNumber()
	for _, name := range rec.GetNames() {
		try = max(try, name.GetTryNumber())
	}
	return try
}

// failedInstances are those that a further try of an array has to run: some have succeeded, and nothing has changed for them.
func (a *admission) failedInstances(t *txn, rec *storev1.JobRecord, task *dagbridgev1.Task) []string {
	instances := t.jobsIn(rec)
	if len(instances) == 0 || live(rec) || graph.FirstDifference(t.Task(rec.GetJob().GetId()), task) != "" {
		return nil
	}
	again := t.unsuccessful(instances)
	if len(again) == len(instances) || slices.ContainsFunc(again, func(id string) bool { return !t.dead(t.rec(id)) }) {
		return nil
	}
	return again
}

// allKept: every upstream in the request keeps its earlier job.
func (a *admission) allKept(one *planned, kept []bool) bool {
	for _, u := range one.upstream {
		if u >= 0 && !kept[u] {
			return false
		}
	}
	return true
}

// putRun makes the run, or joins it.
func (a *admission) putRun(t *txn) {
	asked := a.w.GetRun()
	id := t.RunNamed(asked.GetDeployment(), asked.GetOrchestrator(), asked.GetWorkflow(), asked.GetRun())
	run := proto.CloneOf(t.Run(id))
	if id == "" {
		id = t.e.newID()
		run = &dagbridgev1.Run{
			Deployment: asked.GetDeployment(), Orchestrator: asked.GetOrchestrator(), Workflow: asked.GetWorkflow(), Run: asked.GetRun(),
			Parent: asked.GetParent(), Id: id, Owner: a.owner, CreateTime: stamp(t.now),
		}
	}
	a.runID = id
	if run.GetTryNumber() >= asked.GetTryNumber() && run.GetTryNumber() != 0 {
		return
	}
	run.TryNumber, run.Uid, run.Mode = asked.GetTryNumber(), asked.GetUid(), asked.GetMode()
	t.PutRun(run)
}

// make puts a new job and, of an array, its instances.
func (a *admission) make(t *txn, one *planned, batch string) string {
	task := one.task
	rec := a.unit(t, one, task.GetKey(), batch)
	rec.Job.Labels = task.GetLabels()
	rec.Unrolled = one.unrolled || one.chunk > 0
	if one.verdict.Held {
		rec.Job.Reason = "UPSTREAM"
	}
	id := rec.Job.Id
	for _, n := range a.spread(t, one, &node{rec: rec, task: task}, batch) {
		t.evaluate(n)
	}
	return id
}

// spread puts a job and, of an array whose items are known, its instances. It returns the units among them.
func (a *admission) spread(t *txn, one *planned, n *node, batch string) (units []*node) {
	rec, task := n.rec, n.task
	t.PutTask(n.id(), task)
	items := len(task.GetArray().GetItems())
	if items > 0 {
		rec.Job.Counts = map[string]int32{dagbridgev1.Job_ACCEPTED.String(): int32(items)}
	}
	if rec.Unrolled { // it is no unit: its carriers, or its instances, are
		rec.Job.Attempts, rec.Batch, rec.Hold, rec.DependencyTypes = nil, "", false, nil
	}
	kids := make([]*node, items)
	for i := range items {
		kids[i] = a.instance(t, one, n, i)
		n.kids = append(n.kids, kids[i].id())
	}
	if a.put(t, n); n.unit() {
		units = append(units, n)
	}
	if one.chunk > 0 {
		units = append(units, a.chunks(t, one, n, kids, batch)...)
	}
	for _, kid := range kids {
		if a.put(t, kid); kid.unit() {
			units = append(units, kid)
		}
	}
	return units
}

// unit is the record of a native job to be.
func (a *admission) unit(t *txn, one *planned, key *dagbridgev1.TaskKey, batch string) *storev1.JobRecord {
	native := slices.ContainsFunc(one.verdict.Edges, func(e graph.EdgeVerdict) bool { return e.Native && !e.Foreign })
	rec := &storev1.JobRecord{
		Job: a.job(t, one.task, key, one), Ready: native || one.released || len(one.task.GetUpstream()) == 0 && !one.task.GetEmpty(), Native: native,
		Batch: batch, Hold: one.hold, AnyDependency: one.verdict.Any, Generation: one.generation,
	}
	if native {
		rec.DependencyTypes = one.dependencyTypes()
	}
	firstAttempt(rec, rec.Job.Id)
	return rec
}

// firstAttempt of a record, in the native job of a unit.
func firstAttempt(rec *storev1.JobRecord, unit string) {
	rec.Job.Attempts = []*dagbridgev1.Attempt{{
		Number: 1, Cluster: rec.GetJob().GetCluster(), State: dagbridgev1.Job_ACCEPTED, Token: token(unit, 1),
	}}
}

// chunks puts the carriers of an array that is too large for one native array; they share what may run at once.
func (a *admission) chunks(t *txn, one *planned, parent *node, kids []*node, batch string) (carriers []*node) {
	number := (len(kids) + one.chunk - 1) / one.chunk
	for chunk := range slices.Chunk(kids, one.chunk) {
		c := a.carry(t, one, parent.task.GetKey(), chunk, batch)
		if parallel := int(one.task.GetArray().GetMaxParallel()); parallel > 0 {
			c.rec.MaxParallel = int32(parallel / number)
			if len(carriers) < parallel%number {
				c.rec.MaxParallel++
			}
		}
		carriers = append(carriers, c)
		a.put(t, c)
	}
	return carriers
}

// makeTogether puts jobs that go in as one native array.
func (a *admission) makeTogether(t *txn, members []*planned, batch string) {
	kids := make([]*node, len(members))
	for i, one := range members {
		rec := &storev1.JobRecord{Job: a.job(t, one.task, one.task.GetKey(), one), Generation: one.generation}
		rec.Job.Labels = one.task.GetLabels()
		kids[i] = &node{rec: rec, task: one.task}
		a.ids[one.index] = rec.GetJob().GetId()
		t.PutTask(rec.GetJob().GetId(), one.task)
	}
	first := members[0].task.GetKey()
	key := proto.CloneOf(first)
	key.Task = fmt.Sprintf("%s and %d more", first.GetTask(), len(members)-1)
	c := a.carry(t, members[0], key, kids, batch)
	a.put(t, c)
	for _, kid := range kids {
		a.put(t, kid)
	}
	t.evaluate(c)
}

// carry makes a carrier of some jobs.
func (a *admission) carry(t *txn, one *planned, key *dagbridgev1.TaskKey, kids []*node, batch string) *node {
	rec := a.unit(t, one, key, batch)
	rec.Job.Counts = map[string]int32{dagbridgev1.Job_ACCEPTED.String(): int32(len(kids))}
	for element, kid := range kids {
		kid.rec.Carrier, kid.rec.Element = rec.Job.Id, int32(element)
		firstAttempt(kid.rec, rec.Job.Id)
		rec.Carried = append(rec.Carried, kid.id())
	}
	return &node{rec: rec, task: one.task, kids: rec.Carried}
}

// put stages a node and puts its record.
func (a *admission) put(t *txn, n *node) {
	n.ups = a.resolve.edges(n)
	a.staged = append(a.staged, n.id())
	t.e.mem.stage(n)
	t.admitted = append(t.admitted, n)
	t.Put(n.rec)
	if !isCarrier(n.rec) {
		a.resolve.tasks[n.id()] = n.task
		a.resolve.made[graph.KeyString(n.rec.GetJob().GetKey())] = n.id()
	}
}

// instance is an array's instance as a job of its own: in its parent's native job, unless that has none.
func (a *admission) instance(t *txn, one *planned, parent *node, position int) *node {
	task := graph.InstanceTask(one.task, position)
	rec := &storev1.JobRecord{Job: a.job(t, task, task.GetKey(), one), Position: int32(position), Generation: one.generation}
	rec.Job.Labels, rec.Job.Parent = task.GetLabels(), parent.id()
	n := &node{rec: rec}
	switch {
	case one.unrolled:
		n.task = task
		rec.Ready = parent.rec.GetReady()
		firstAttempt(rec, rec.Job.Id)
	case one.chunk == 0:
		rec.Carrier, rec.Element = parent.id(), int32(position)
		rec.Job.Attempts = []*dagbridgev1.Attempt{proto.CloneOf(current(parent.rec))}
	}
	if one.verdict.Held {
		rec.Job.Reason = "UPSTREAM"
	}
	return n
}

func (a *admission) job(t *txn, task *dagbridgev1.Task, key *dagbridgev1.TaskKey, one *planned) *dagbridgev1.Job {
	return &dagbridgev1.Job{
		Id: t.e.newID(), Key: key, TryNumber: task.GetTryNumber(), Uid: task.GetUid(), Owner: a.owner, Cluster: one.cluster.Name,
		State: dagbridgev1.Job_ACCEPTED, CreateTime: stamp(t.now), RunId: a.runID, User: one.user, Reserved: a.reserve,
	}
}
