package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// model is one history: a gateway that may be killed at any point, over two schedulers that may fail in every way.
type model struct {
	*world
	dir    string
	store  *store.Store
	engine *Engine
	sims   []*sim
	ids    uint64
	runs   int
	// submitted workflows, to be sent again and cancelled.
	sent []*dagbridgev1.Workflow
	jobs []string
	// ahead are tasks that were reserved.
	ahead []*dagbridgev1.Task
	// retried are jobs of which a person wanted another attempt: their rules count no more.
	retried map[string]bool
}

const simGrace = 20 * time.Second

// TestModel holds the engine to its promises over random histories: at most one program of a job runs at a time, none after
// an end that was recorded, no program starts before its trigger rule holds, an end is what really happened, and every run
// ends. Run it longer with -rapid.checks.
func TestModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		m := newModel(rt, filepath.Join(dir, fmt.Sprintf("%d.db", n)))
		defer m.close()
		for range rapid.IntRange(5, 60).Draw(rt, "length") {
			m.act()
		}
		m.settle()
	})
}

func newModel(rt *rapid.T, path string) *model {
	w := &world{t: rt, now: time.Unix(1_800_000_000, 0), fuse: -1, runs: map[string][]*run{}, asked: map[string]asked{}}
	m := &model{world: w, dir: path, retried: map[string]bool{}}
	m.onStart = m.checkStart
	m.sims = []*sim{newSim(w, "hpc", true), newSim(w, "here", false)}
	for _, s := range m.sims {
		s.outputs = `{"auc": 0.91, "chosen": ["left", "middle"], "none": []}`
	}
	m.sims[0].arraySize = rapid.SampledFrom([]int{2, 3, 100}).Draw(rt, "array size")
	m.sims[0].killsInvalid = rapid.IntRange(0, 2).Draw(rt, "kills invalid dependencies") == 0
	s, err := store.Open(path, store.Options{NoSync: true})
	require.NoError(rt, err)
	m.store = s
	m.boot()
	return m
}

func (m *model) close() { _ = m.store.Close() }

// boot starts a gateway over what the last one left.
func (m *model) boot() {
	var clusters []Cluster
	for _, s := range m.sims {
		clusters = append(clusters, Cluster{Name: s.name, Backend: s})
	}
	e, err := New(Options{
		Store: m.store, Clusters: clusters, Now: func() time.Time { return m.now }, Grace: simGrace,
		NewID: func() string {
			m.ids++
			id := uuid.UUID{6: 0x70, 8: 0x80}
			for i := range 8 {
				id[15-i] |= byte(m.ids >> (8 * i))
			}
			id[8] |= 0x80
			return id.String()
		},
	})
	require.NoError(m.t, err)
	m.store.OnCommit(func(records []*storev1.JobRecord) {
		m.point()
		e.follow(records)
		m.point()
	})
	m.engine = e
}

// guarded runs a step of the gateway; a crash in it is followed by a new gateway.
func (m *model) guarded(step func()) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			m.boot()
		}
	}()
	step()
}

func (m *model) act() {
	s := m.sims[rapid.IntRange(0, 1).Draw(m.t, "cluster")]
	c := m.engine.byName[s.name]
	ctx := context.Background()
	switch rapid.IntRange(0, 22).Draw(m.t, "action") {
	case 0, 1:
		m.submit()
	case 2, 3, 4:
		m.guarded(func() { m.engine.pass(ctx, c) })
	case 5, 6, 7:
		m.guarded(func() { m.engine.observe(ctx, c, s.look(m.engine.known(c))) })
	case 8, 9, 10:
		m.tick(time.Duration(rapid.IntRange(1, 4).Draw(m.t, "seconds")) * time.Second)
	case 11:
		m.fuse = rapid.IntRange(1, 12).Draw(m.t, "fuse")
	case 12:
		s.amnesia()
	case 13:
		s.down = !s.down
	case 14:
		m.cancel()
	case 15:
		m.again()
	case 16:
		m.retry()
	case 17:
		m.cancelRun()
	case 18:
		m.boot() // a gateway that was stopped in good order
	case 19:
		m.expire()
	case 20:
		m.reserve()
	case 21, 22:
		m.claim()
	}
}

func (m *model) tick(d time.Duration) {
	m.now = m.now.Add(d)
	for _, s := range m.sims {
		s.step()
	}
}

// submit sends a random workflow.
func (m *model) submit() {
	if m.runs++; m.runs > 3 {
		return
	}
	w := &dagbridgev1.Workflow{Run: &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "model", Run: fmt.Sprintf("r%d", m.runs), TryNumber: 1}}
	n := rapid.IntRange(1, 5).Draw(m.t, "tasks")
	for i := range n {
		if i > 0 && !w.Tasks[i-1].GetEmpty() && rapid.IntRange(0, 2).Draw(m.t, "twin") == 0 { // they can go in together
			task := proto.CloneOf(w.Tasks[i-1])
			task.Key.Task, task.Command = fmt.Sprintf("t%d", i), &dagbridgev1.Command{Argv: []string{"true", strconv.Itoa(i)}}
			w.Tasks = append(w.Tasks, task)
			continue
		}
		task := &dagbridgev1.Task{
			Key: &dagbridgev1.TaskKey{Task: fmt.Sprintf("t%d", i)}, Command: &dagbridgev1.Command{Argv: []string{"true"}},
			Cluster:     rapid.SampledFrom([]string{"hpc", "hpc", "hpc", "here"}).Draw(m.t, "on"),
			TriggerRule: rapid.SampledFrom([]string{"", "", "", "all_done", "one_success", "one_failed", "none_failed", "all_failed", "always"}).Draw(m.t, "rule"),
		}
		for u := range i {
			if rapid.IntRange(0, 1).Draw(m.t, "edge") == 0 {
				edge := &dagbridgev1.Edge{Task: fmt.Sprintf("t%d", u)}
				if rapid.IntRange(0, 11).Draw(m.t, "started") == 0 {
					edge.Condition = rapid.SampledFrom([]dagbridgev1.Edge_Condition{dagbridgev1.Edge_STARTED, dagbridgev1.Edge_SUCCEEDED}).Draw(m.t, "condition")
				}
				task.Upstream = append(task.Upstream, edge)
			}
		}
		if ups := task.GetUpstream(); len(ups) > 0 && ups[0].GetCondition() == 0 && rapid.IntRange(0, 7).Draw(m.t, "branch") == 0 {
			task.SkipUnless = &dagbridgev1.SkipUnless{
				Task: ups[0].GetTask(), Output: "chosen", Contains: rapid.SampledFrom([]string{"left", "right"}).Draw(m.t, "branch of"),
			}
		}
		if rapid.IntRange(0, 3).Draw(m.t, "retry") == 0 {
			task.Retry = &dagbridgev1.Retry{
				MaxRetries:               int32(rapid.IntRange(0, 2).Draw(m.t, "retries")),
				MaxInfrastructureRetries: int32(rapid.IntRange(0, 2).Draw(m.t, "infrastructure retries")),
				Backoff:                  durationpb.New(2 * time.Second), MaxBackoff: durationpb.New(4 * time.Second),
			}
			if rapid.Bool().Draw(m.t, "grows") {
				task.Resources = &dagbridgev1.Resources{Memory: "1Gi", TimeLimit: durationpb.New(time.Minute)}
				task.Retry.MemoryGrowth = &dagbridgev1.Growth{Factor: 2, Max: "3Gi"}
				task.Retry.TimeLimitGrowth = &dagbridgev1.Growth{Factor: 1.5}
			}
			if rapid.Bool().Draw(m.t, "final") {
				task.Retry.FinalExitCodes = []int32{3}
			}
		}
		if rapid.IntRange(0, 3).Draw(m.t, "skips") == 0 {
			task.SkipExitCodes = []int32{99}
		}
		if rapid.IntRange(0, 4).Draw(m.t, "array") == 0 {
			task.Array = &dagbridgev1.Array{MaxParallel: int32(rapid.IntRange(0, 2).Draw(m.t, "parallel"))}
			for range rapid.IntRange(1, 5).Draw(m.t, "items") {
				task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{})
			}
			for _, edge := range task.Upstream {
				up := w.Tasks[slices.IndexFunc(w.Tasks, func(t *dagbridgev1.Task) bool { return t.GetKey().GetTask() == edge.GetTask() })]
				if len(up.GetArray().GetItems()) > 0 && edge.GetCondition() == 0 && rapid.Bool().Draw(m.t, "same index") {
					edge.Instances = dagbridgev1.Edge_SAME_INDEX
					task.Array.Items = up.Array.Items
				}
			}
			for _, edge := range task.Upstream { // they correspond to one alone
				up := w.Tasks[slices.IndexFunc(w.Tasks, func(t *dagbridgev1.Task) bool { return t.GetKey().GetTask() == edge.GetTask() })]
				if len(up.GetArray().GetItems()) != len(task.Array.Items) {
					edge.Instances = dagbridgev1.Edge_INSTANCES_UNSPECIFIED
				}
			}
		}
		for _, edge := range task.Upstream {
			up := w.Tasks[slices.IndexFunc(w.Tasks, func(t *dagbridgev1.Task) bool { return t.GetKey().GetTask() == edge.GetTask() })]
			if edge.GetCondition() != dagbridgev1.Edge_STARTED && up.GetArray() == nil && task.GetArray() == nil && rapid.IntRange(0, 5).Draw(m.t, "expands") == 0 {
				output := rapid.SampledFrom([]string{"chosen", "chosen", "chosen", "none", "auc"}).Draw(m.t, "over")
				task.Array = &dagbridgev1.Array{
					From: &dagbridgev1.Array_From{Task: edge.GetTask(), Output: output}, MaxParallel: int32(rapid.IntRange(0, 1).Draw(m.t, "parallel")),
				}
			}
		}
		if task.GetArray() == nil && rapid.IntRange(0, 7).Draw(m.t, "empty") == 0 {
			task.Command, task.Empty = nil, true
		}
		if rapid.IntRange(0, 4).Draw(m.t, "tries") == 0 {
			task.MaxTries, task.RetryWindow = 3, durationpb.New(30*time.Second)
		}
		if rapid.IntRange(0, 9).Draw(m.t, "second run") == 0 {
			no := false
			task.AtMostOnce = &no
		}
		w.Tasks = append(w.Tasks, task)
	}
	m.sent = append(m.sent, w)
	m.send(w)
}

// send submits a workflow until it is accepted: a caller whose gateway dies asks again.
func (m *model) send(w *dagbridgev1.Workflow) {
	for range 5 {
		done := false
		m.guarded(func() {
			resp, err := m.engine.SubmitWorkflow(context.Background(), "somebody", w)
			require.NoError(m.t, err)
			for _, job := range resp.GetJobs() {
				m.jobs = append(m.jobs, job.GetId())
			}
			done = true
		})
		if done {
			return
		}
	}
	m.t.Fatal("a gateway that crashed once did not take a workflow in five tries")
}

// again sends a workflow a second time, as it was or as a higher try.
func (m *model) again() {
	if len(m.sent) == 0 {
		return
	}
	w := rapid.SampledFrom(m.sent).Draw(m.t, "which")
	if rapid.Bool().Draw(m.t, "higher try") && w.GetRun().GetTryNumber() < 3 {
		w.Run.TryNumber++
		w.IfLive = rapid.SampledFrom([]dagbridgev1.IfLive_Value{dagbridgev1.IfLive_ATTACH, dagbridgev1.IfLive_REPLACE}).Draw(m.t, "if live")
		w.Run.Mode = rapid.SampledFrom([]dagbridgev1.Run_Mode{dagbridgev1.Run_ALL, dagbridgev1.Run_ONLY_FAILED}).Draw(m.t, "mode")
	}
	m.send(w)
}

// reserve hands in a task ahead of its turn, after some tasks of a run, or once more what was reserved.
func (m *model) reserve() {
	if len(m.sent) == 0 {
		return
	}
	w := rapid.SampledFrom(m.sent).Draw(m.t, "ahead in")
	task := &dagbridgev1.Task{
		Key:       &dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "model", Run: w.GetRun().GetRun(), Task: rapid.SampledFrom([]string{"a0", "a1"}).Draw(m.t, "ahead")},
		TryNumber: 1, Uid: rapid.SampledFrom([]string{"x", "y"}).Draw(m.t, "ahead of"), Command: m.program(),
		TriggerRule: rapid.SampledFrom([]string{"", "", "all_done", "none_failed"}).Draw(m.t, "rule ahead"),
	}
	for _, up := range w.GetTasks() {
		if rapid.Bool().Draw(m.t, "edge ahead") {
			task.Upstream = append(task.Upstream, &dagbridgev1.Edge{Task: up.GetKey().GetTask(), Optional: true})
		}
	}
	if task.GetKey().GetTask() == "a1" && rapid.Bool().Draw(m.t, "after another") {
		task.Upstream = append(task.Upstream, &dagbridgev1.Edge{Task: "a0", Optional: true})
	}
	m.ahead = append(m.ahead, task)
	lease := durationpb.New(time.Duration(rapid.IntRange(1, 20).Draw(m.t, "lease")) * time.Second)
	m.one(&dagbridgev1.SubmitTaskRequest{Task: task, OnConflict: dagbridgev1.OnConflict_ATTACH, Reserve: lease})
}

func (m *model) program() *dagbridgev1.Command {
	return &dagbridgev1.Command{Argv: []string{"true", rapid.SampledFrom([]string{"one", "one", "two"}).Draw(m.t, "program")}}
}

// claim submits a task that was reserved when its turn has come, which is when its caller says: what it is answered with is what it
// asked for, unless that is a try of its own that is gone on with.
func (m *model) claim() {
	if len(m.ahead) == 0 {
		return
	}
	of := rapid.SampledFrom(m.ahead).Draw(m.t, "claimed")
	try := rapid.IntRange(1, 2).Draw(m.t, "try claimed")
	task := &dagbridgev1.Task{Key: of.GetKey(), TryNumber: int32(try), Uid: fmt.Sprintf("t%d", try), Command: m.program()}
	before := m.newest(task.GetKey())
	job := m.one(&dagbridgev1.SubmitTaskRequest{Task: task, OnConflict: dagbridgev1.OnConflict_ATTACH})
	if before.GetReserved() == nil || job == nil {
		return
	}
	require.Nil(m.t, job.GetReserved(), "it is claimed and still reserved")
	if _, is := m.record(job.GetId()); job.GetId() == before.GetId() {
		require.Equal(m.t, task.GetCommand().GetArgv(), is.GetCommand().GetArgv(), "another program than what was asked for is gone on with")
		require.Nil(m.t, before.GetCancelRequestTime(), "what was cancelled is gone on with")
	}
}

func (m *model) newest(key *dagbridgev1.TaskKey) (job *dagbridgev1.Job) {
	full := proto.CloneOf(key)
	full.Deployment = "default"
	_ = m.store.View(func(tx *store.Tx) error { job = tx.Record(tx.Newest(full)).GetJob(); return nil })
	return job
}

// one submits a task; nil when a try before this one is all there is, or its gateway died.
func (m *model) one(req *dagbridgev1.SubmitTaskRequest) (job *dagbridgev1.Job) {
	m.guarded(func() {
		resp, err := m.engine.SubmitTask(context.Background(), "somebody", req)
		var refused *Error
		if require.True(m.t, err == nil || errors.As(err, &refused), "%v", err); err == nil {
			job = resp.GetJob()
			m.jobs = append(m.jobs, job.GetId())
		}
	})
	return job
}

func (m *model) cancel() {
	if len(m.jobs) == 0 {
		return
	}
	id := m.some()
	m.guarded(func() {
		_, err := m.engine.Cancel(context.Background(), []string{id})
		require.NoError(m.t, err)
	})
}

// cancelRun asks for the end of a whole run.
func (m *model) cancelRun() {
	if len(m.jobs) == 0 {
		return
	}
	rec, _ := m.record(rapid.SampledFrom(m.jobs).Draw(m.t, "of run"))
	if rec == nil {
		return
	}
	m.guarded(func() {
		_, err := m.engine.CancelRun(context.Background(), rec.GetJob().GetRunId())
		require.NoError(m.t, err)
	})
}

// expire deletes what ended some time ago, or is one too many. What is live, and what that waits for, must not miss it.
func (m *model) expire() {
	age := time.Duration(rapid.IntRange(0, 40).Draw(m.t, "age")) * time.Second
	_, err := m.store.Expire(m.now, age, rapid.SampledFrom([]int{0, 1, 3, 6}).Draw(m.t, "jobs kept"))
	require.NoError(m.t, err)
	m.jobs = slices.DeleteFunc(m.jobs, func(id string) bool { rec, _ := m.record(id); return rec == nil })
}

// some is a job or an instance of an array.
func (m *model) some() string {
	id := rapid.SampledFrom(m.jobs).Draw(m.t, "job")
	var kids []string
	_ = m.store.View(func(tx *store.Tx) error { kids = instances(tx, id); return nil })
	if rapid.Bool().Draw(m.t, "an instance") {
		id = rapid.SampledFrom(kids).Draw(m.t, "which instance")
	}
	return id
}

// retry asks for another attempt of a job, which is refused while it lives or has succeeded.
func (m *model) retry() {
	if len(m.jobs) == 0 {
		return
	}
	id := m.some()
	if rec, _ := m.record(id); graph.IsTerminal(rec.GetJob().GetState()) {
		_ = m.store.View(func(tx *store.Tx) error {
			for _, kid := range instances(tx, id) {
				m.retried[kid] = true
			}
			return nil
		})
	}
	m.guarded(func() {
		job, err := m.engine.Retry(context.Background(), id)
		var refused *Error
		if require.True(m.t, err == nil || errors.As(err, &refused), err); err == nil {
			_, task := m.record(id)
			require.Equal(m.t, task.GetEmpty(), graph.IsTerminal(job.GetState()))
		}
	})
}

// settle ends the faults and lets everything come to its end.
func (m *model) settle() {
	m.calm, m.fuse = true, -1
	for _, s := range m.sims {
		s.down = false
	}
	ctx := context.Background()
	for range 150 {
		for _, s := range m.sims {
			c := m.engine.byName[s.name]
			m.engine.pass(ctx, c)
			m.engine.observe(ctx, c, s.look(m.engine.known(c)))
			m.engine.pass(ctx, c)
		}
		m.tick(5 * time.Second)
		if m.engine.mem.empty() {
			break
		}
	}
	m.checkEnd()
}

func (m *memory) empty() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.nodes) == 0
}

func (m *model) record(id string) (rec *storev1.JobRecord, task *dagbridgev1.Task) {
	_ = m.store.View(func(tx *store.Tx) error {
		rec = tx.Record(id)
		owner := id
		if p := rec.GetJob().GetParent(); p != "" {
			owner = p
		}
		task = tx.Task(owner)
		return nil
	})
	return rec, task
}

// checkStart: what must hold at the moment a program starts.
func (m *model) checkStart(jobID, tok, native string) {
	rec, task := m.record(jobID)
	job := rec.GetJob()
	byRule := job.GetState() == dagbridgev1.Job_UPSTREAM_FAILED || job.GetState() == dagbridgev1.Job_SKIPPED
	if byRule && m.superseded(job, task) {
		return // an upstream was submitted anew and failed; for the native job, whose cancel is on its way, the old one holds
	}
	if graph.IsTerminal(job.GetState()) && job.GetState() != dagbridgev1.Job_LOST {
		m.t.Fatalf("%s (%s) starts although it has ended %s", job.GetKey().GetTask(), tok, job.GetState())
	}
	once := task.AtMostOnce == nil || task.GetAtMostOnce()
	for _, r := range m.world.runs[jobID] {
		if r.running {
			m.t.Fatalf("%s starts as %s while it runs as %s", job.GetKey().GetTask(), tok, r.token)
		}
		if once && !r.killed && r.code == 0 {
			m.t.Fatalf("%s starts as %s although it succeeded as %s", job.GetKey().GetTask(), tok, r.token)
		}
	}
	for other, runs := range m.world.runs {
		for _, r := range runs {
			if rec, _ := m.record(other); r.running && other != jobID && proto.Equal(rec.GetJob().GetKey(), job.GetKey()) {
				m.t.Fatalf("%s starts as %s while an earlier try runs as %s", job.GetKey().GetTask(), tok, r.token)
			}
		}
	}
	m.checkRule(job, task)
	m.checkParallel(job, task, tok, native)
}

// checkParallel: no more instances of an array run at once than may, but for doubles, of which each may run for a moment.
func (m *model) checkParallel(job *dagbridgev1.Job, task *dagbridgev1.Task, tok, native string) {
	most := int(task.GetArray().GetMaxParallel())
	if most == 0 {
		return
	}
	running, others := 1, []run(nil) // this one
	_ = m.store.View(func(tx *store.Tx) error {
		for _, id := range instances(tx, job.GetParent()) {
			rec := tx.Record(id)
			onRecord, _ := cutInstance(rec.GetJob().GetNativeId())
			if rec.GetSuspect() || rec.GetResubmitted() {
				running = 0
				return nil
			}
			for _, r := range m.world.runs[id] {
				if r.running && r.native == onRecord && (r.token != tok || r.native == native) {
					running++
					others = append(others, *r)
				}
			}
		}
		return nil
	})
	require.LessOrEqual(m.t, running, most, "%s runs as %s of %s more instances at once than it may: %+v", job.GetKey().GetTask(), tok, native, others)
}

// checkRule: the trigger rule holds over what really became of the upstreams.
func (m *model) checkRule(job *dagbridgev1.Job, task *dagbridgev1.Task) {
	if len(task.GetUpstream()) == 0 || m.retried[job.GetId()] {
		return
	}
	var counted, required graph.Counts
	words := ""
	_ = m.store.View(func(tx *store.Tx) error {
		for _, edge := range task.GetUpstream() {
			key := graph.Upstream(task, edge)
			if edge.GetCondition() == dagbridgev1.Edge_STARTED || edge.GetOptional() && tx.Newest(key) == "" {
				continue
			}
			counts := &counted
			if edge.GetCondition() == dagbridgev1.Edge_SUCCEEDED {
				counts = &required
			}
			// The try that the job was submitted beside, or a later one.
			ids := instances(tx, tx.Newest(key))
			if index := job.GetKey().GetMapIndex(); edge.GetInstances() == dagbridgev1.Edge_SAME_INDEX {
				ids = ids[index[0] : index[0]+1]
			}
			for _, id := range ids {
				state := m.truth(tx, id)
				words += fmt.Sprintf(" %s=%s", key.GetTask(), state)
				counts.Add(state, false)
			}
		}
		return nil
	})
	holds := graph.Decide(task.GetTriggerRule(), counted) == graph.Run && graph.Decide(graph.AllSuccess, required) == graph.Run
	if !holds && !m.superseded(job, task) && !m.misled(job, task) {
		m.t.Fatalf("%s (%s) starts although its rule does not hold:%s", job.GetKey().GetTask(), task.GetTriggerRule(), words)
	}
}

// superseded: an upstream has been submitted again, or another attempt of it was asked for, since the job's rule held, which is no fault of the job.
func (m *model) superseded(job *dagbridgev1.Job, task *dagbridgev1.Task) (is bool) {
	_ = m.store.View(func(tx *store.Tx) error {
		for _, edge := range task.GetUpstream() {
			up := tx.Record(tx.Newest(graph.Upstream(task, edge))).GetJob()
			is = is || up.GetId() > job.GetId() || slices.ContainsFunc(instances(tx, up.GetId()), func(id string) bool { return m.retried[id] })
		}
		return nil
	})
	return is
}

// misled: an upstream's native job ended without running, since the controller had forgotten what it waited for, or that it
// had started, or since the site cancels what cannot be satisfied, whatever the job says of that. To a dependency on any end, which
// leaves no marker to check, that is an end. The README says so.
func (m *model) misled(job *dagbridgev1.Job, task *dagbridgev1.Task) (is bool) {
	if task.GetTriggerRule() == "" || task.GetTriggerRule() == graph.AllSuccess {
		return false
	}
	_ = m.store.View(func(tx *store.Tx) error {
		for _, edge := range task.GetUpstream() {
			for _, id := range instances(tx, tx.Newest(graph.Upstream(task, edge))) {
				for _, s := range m.sims {
					is = is || slices.ContainsFunc(append(s.jobs, pointers(s.acct)...), func(j *simJob) bool {
						return j.jobID == id && slices.Contains([]string{reasonPremature, reasonDuplicate, reasonDependency}, j.reason)
					})
				}
			}
		}
		return nil
	})
	return is
}

func instances(tx *store.Tx, id string) (ids []string) {
	tx.Children(id, func(kid string) bool { ids = append(ids, kid); return true })
	if len(ids) == 0 {
		ids = []string{id}
	}
	return ids
}

// truth is a job's state: what the gateway has recorded, or what the scheduler knows already and the gateway does not.
func (m *model) truth(tx *store.Tx, id string) dagbridgev1.Job_State {
	rec := tx.Record(id)
	state := rec.GetJob().GetState()
	if graph.IsTerminal(state) {
		return state
	}
	for _, s := range m.sims {
		for _, j := range append(s.jobs, pointers(s.acct)...) {
			if j.jobID == id && j.token == current(rec).GetToken() && j.reason != reasonDuplicate && ended(j.state) && !m.goesOn(rec, j) {
				return j.state
			}
		}
	}
	return state
}

// goesOn: the failure of a native job is to be followed by another attempt.
func (m *model) goesOn(rec *storev1.JobRecord, j *simJob) bool {
	_, task := m.record(rec.GetJob().GetId())
	retry := task.GetRetry()
	switch {
	case j.state != dagbridgev1.Job_FAILED && !j.refused, rec.GetJob().GetCancelRequestTime() != nil:
		return false
	case j.refused || isInfrastructure(j.reason):
		return rec.GetInfrastructureRetries() < retry.GetMaxInfrastructureRetries()
	case j.reason == "" && (slices.Contains(retry.GetFinalExitCodes(), j.code) || slices.Contains(task.GetSkipExitCodes(), j.code)):
		return false
	default:
		return rec.GetRetries() < retry.GetMaxRetries()
	}
}

func pointers(jobs []simJob) (all []*simJob) {
	for i := range jobs {
		all = append(all, &jobs[i])
	}
	return all
}

// checkEnd: everything has ended, as it really did.
func (m *model) checkEnd() {
	stuck := ""
	for id, n := range m.engine.mem.nodes {
		ups := ""
		for _, u := range n.ups {
			rec, _ := m.record(u.id)
			ups += fmt.Sprintf(" %s=%s", rec.GetJob().GetKey().GetTask(), rec.GetJob().GetState())
		}
		stuck += fmt.Sprintf("\n%s, upstream%s: maybe=%v inFlight=%v unit=%v %v", id, ups, n.maybe, n.inFlight, n.unit(), n.rec)
	}
	if stuck != "" {
		m.t.Fatalf("never end:%s", stuck)
	}
	m.checkForgotten()
	jobs, _, _, err := m.store.List(&dagbridgev1.JobFilter{}, 1000, "")
	require.NoError(m.t, err)
	for _, job := range jobs {
		m.checkJob(job)
		_ = m.store.View(func(tx *store.Tx) error {
			tx.Children(job.GetId(), func(id string) bool { m.checkJob(tx.Record(id).GetJob()); return true })
			return nil
		})
		run, err := m.engine.Run(job.GetRunId())
		require.NoError(m.t, err)
		require.NotEqual(m.t, dagbridgev1.Run_RUNNING, run.GetState())
	}
}

// checkForgotten: nothing of jobs that have ended is left in memory.
func (m *model) checkForgotten() {
	mem := m.engine.mem
	require.Empty(m.t, mem.ended)
	require.Empty(m.t, mem.runs)
	require.Empty(m.t, mem.waiting)
	require.Empty(m.t, mem.batches)
	require.Empty(m.t, mem.byKey)
	require.Empty(m.t, mem.liveKids)
	require.Empty(m.t, mem.staged)
	for cluster, sets := range mem.byCluster {
		for i, set := range sets {
			require.Empty(m.t, set, "set %d of %s", i, cluster)
		}
	}
}

func (m *model) checkJob(job *dagbridgev1.Job) {
	rec, _ := m.record(job.GetId())
	require.False(m.t, isCarrier(rec), "a carrier is nobody's job")
	if len(job.GetCounts()) > 0 {
		m.checkCounts(job)
		return
	}
	if !m.retried[job.GetId()] {
		m.checkAttempts(job)
	}
	var last *run
	for _, r := range m.world.runs[job.GetId()] {
		require.False(m.t, r.running, "%s has ended and still runs", job.GetKey().GetTask())
		last = r
	}
	if _, task := m.record(job.GetId()); task.GetEmpty() {
		require.Nil(m.t, last, "%s has nothing to run, and ran", job.GetKey().GetTask())
		require.Contains(m.t, []dagbridgev1.Job_State{
			dagbridgev1.Job_SUCCEEDED, dagbridgev1.Job_SKIPPED, dagbridgev1.Job_UPSTREAM_FAILED, dagbridgev1.Job_CANCELLED,
		}, job.GetState())
		return
	}
	switch job.GetState() {
	case dagbridgev1.Job_SUCCEEDED:
		require.True(m.t, last != nil && !last.killed && last.code == 0, "%s is called successful", job.GetKey().GetTask())
		require.Equal(m.t, "0.91", job.GetOutputs()["auc"].GetText())
	case dagbridgev1.Job_FAILED:
		require.True(m.t, last != nil && (last.killed || last.code != 0) || job.GetReason() == "SUBMISSION_REFUSED" || job.GetReason() == reasonNotLaunched, "%s is called failed: %s %s", job.GetKey().GetTask(), job.GetReason(), job.GetMessage())
		if attempts := job.GetAttempts(); last != nil && last.cause != "" && last.token == attempts[len(attempts)-1].GetToken() {
			require.Equal(m.t, last.cause, job.GetReason())
			require.Equal(m.t, last.node, attempts[len(attempts)-1].GetNode())
		}
	case dagbridgev1.Job_UPSTREAM_FAILED:
		if _, task := m.record(job.GetId()); m.superseded(job, task) {
			return // it was on its way when an upstream was submitted anew, and that failed
		}
		require.Nil(m.t, last, "%s ran and is called %s: %s", job.GetKey().GetTask(), job.GetState(), job.GetMessage())
	case dagbridgev1.Job_CANCELLED:
		parent, _ := m.record(job.GetParent())
		require.True(m.t, job.GetCancelRequestTime() != nil || parent.GetJob().GetCancelRequestTime() != nil, "%s is called cancelled, and nobody asked for it", job.GetKey().GetTask())
	case dagbridgev1.Job_LOST:
		require.NotNil(m.t, last, "%s is called lost and never started", job.GetKey().GetTask())
	}
}

// checkCounts: an array's counts are those of its instances.
func (m *model) checkCounts(job *dagbridgev1.Job) {
	counts := map[string]int32{}
	_ = m.store.View(func(tx *store.Tx) error {
		tx.Children(job.GetId(), func(id string) bool { counts[tx.Record(id).GetJob().GetState().String()]++; return true })
		return nil
	})
	require.Equal(m.t, counts, job.GetCounts())
}

// checkAttempts: no cause was retried beyond its budget or after a final exit code, and what each attempt says it asked for is
// what the scheduler was asked for, and what the causes before it call for.
func (m *model) checkAttempts(job *dagbridgev1.Job) {
	rec, task := m.record(job.GetId())
	retry, attempts := task.GetRetry(), job.GetAttempts()
	// A further try of an array, which is another name of it, has what has failed of it run again, with a budget of its own.
	tries := int32(len(rec.GetNames()))
	if parent, _ := m.record(job.GetParent()); parent != nil {
		tries += int32(len(parent.GetNames()))
	}
	var budget, infrastructure int32
	memory, limit := task.GetResources().GetMemory(), task.GetResources().GetTimeLimit().AsDuration()
	var off []string
	for i, at := range attempts {
		if memory != "" && task.GetArray() == nil {
			require.Equal(m.t, []any{memory, limit}, []any{cmp.Or(at.GetMemory(), memory), cmp.Or(at.GetTimeLimit().AsDuration(), limit)}, "%v", attempts)
		}
		if asked, ok := m.asked[at.GetToken()]; ok {
			require.Equal(m.t, asked.memory, cmp.Or(at.GetMemory(), task.GetResources().GetMemory()))
			require.Equal(m.t, asked.limit, cmp.Or(at.GetTimeLimit(), task.GetResources().GetTimeLimit()).AsDuration())
			require.ElementsMatch(m.t, asked.exclude, at.GetExcludedNodes())
			require.Subset(m.t, at.GetExcludedNodes(), off)
		}
		if at.GetState() != dagbridgev1.Job_FAILED || i == len(attempts)-1 {
			continue
		}
		switch cause := at.GetReason(); {
		case cause == reasonPremature:
			continue
		case cause == causeRefused:
			off = nil
			continue
		case isInfrastructure(cause):
			if infrastructure++; cause == "NODE_FAIL" || cause == reasonNotLaunched {
				off = append(off, at.GetNode())
			}
			continue
		case cause == causeMemory && retry.GetMemoryGrowth() != nil:
			memory = map[string]string{"1Gi": "2Gi", "2Gi": "3Gi", "3Gi": "3Gi"}[memory]
		case cause == causeTime && retry.GetTimeLimitGrowth() != nil:
			limit = limit * 3 / 2
		case cause == "" && at.ExitCode != nil:
			if tries == 0 {
				require.NotContains(m.t, retry.GetFinalExitCodes(), at.GetExitCode(), "it was retried all the same")
			}
		}
		budget++
	}
	require.LessOrEqual(m.t, budget, tries+(tries+1)*retry.GetMaxRetries(), "%v", attempts)
	require.LessOrEqual(m.t, infrastructure, tries+(tries+1)*retry.GetMaxInfrastructureRetries(), "%v", attempts)
}

func isInfrastructure(cause string) bool {
	return cause == "NODE_FAIL" || cause == "PREEMPTED" || cause == reasonNotLaunched
}

var _ backend.Backend = (*sim)(nil)
