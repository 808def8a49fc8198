package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// TestModel runs random histories against the store and against Go maps, and asks both the same questions.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		defer m.close(t)
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"admit":  m.admit,
			"change": m.change,
			"end":    m.end,
			"fail":   m.fail,
			"list":   m.list,
			"runs":   m.listRuns,
			"expire": m.expire,
			"reopen": m.reopen,
		})
	})
}

// epoch is when the first job of a history is made; each further one a minute later.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type model struct {
	path  string
	store *store.Store

	clock   int
	records map[string]*storev1.JobRecord
	tasks   map[string]*dagbridgev1.Task
	runs    map[string]*dagbridgev1.Run
	changes []string // job ids, in the order they were put
	hooked  []string // what the commit hook was told
}

func newModel(t *rapid.T) *model {
	m := &model{
		path:    filepath.Join(newFolder(t), "dagbridge.db"),
		records: map[string]*storev1.JobRecord{},
		tasks:   map[string]*dagbridgev1.Task{},
		runs:    map[string]*dagbridgev1.Run{},
	}
	m.open(t)
	return m
}

func (m *model) open(t *rapid.T) {
	s, err := store.Open(m.path, store.Options{NoSync: true})
	require.NoError(t, err)
	s.OnCommit(func(recs []*storev1.JobRecord) {
		for _, rec := range recs {
			m.hooked = append(m.hooked, rec.GetJob().GetId())
		}
	})
	m.store = s
}

func (m *model) close(t *rapid.T) { require.NoError(t, m.store.Close()) }

func (m *model) reopen(t *rapid.T) {
	m.close(t)
	m.open(t)
}

// nextID makes ids as UUIDv7 are made, from the history's own clock.
func (m *model) nextID() (string, time.Time) {
	m.clock++
	at := epoch.Add(time.Duration(m.clock) * time.Minute)
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, m.clock), at
}

// Words that share prefixes, hold separators, and sort differently when these are not escaped.
var (
	workflows   = rapid.SampledFrom([]string{"risk", "ris", "risk\x00x", "risk/é", "risk\x01"})
	runNames    = rapid.SampledFrom([]string{"manual__2026-01-01T00:00:00+00:00", "m", "m\x00", "x\x00m"})
	taskNames   = rapid.SampledFrom([]string{"train", "trai", "for-loop-1/sim", "%2F"})
	deployments = rapid.SampledFrom([]string{"default", "site b"})
	mapIndices  = rapid.SampledFrom([][]int32{nil, {0}, {1}, {0, 1}, {256}})
	uids        = rapid.SampledFrom([]string{"", "a", "b", "a\x00"})
	clusters    = rapid.SampledFrom([]string{"hpc", "k8s"})
	nativeIDs   = rapid.SampledFrom([]string{"1", "12", "12_7", "ml/train-6f3a"})
	labels      = rapid.SampledFrom([]map[string]string{nil, {"team": "x"}, {"team": "y", "a=b": ""}, {"team": "x", "empty": ""}})
	states      = rapid.SampledFrom(slices.Sorted(maps.Keys(dagbridgev1.Job_State_name))[1:])
)

// admit puts some jobs of one run in one transaction: single ones, or an array with its instances.
func (m *model) admit(t *rapid.T) {
	run := m.run(t)
	var recs []*storev1.JobRecord
	for range rapid.IntRange(1, 3).Draw(t, "jobs") {
		rec := m.newRecord(t, run)
		recs = append(recs, rec)
		for position := range rapid.IntRange(0, 3).Draw(t, "instances") {
			child := m.newRecord(t, run)
			child.Job.Parent, child.Position = rec.GetJob().GetId(), int32(position)
			child.Job.Key = proto.CloneOf(rec.GetJob().GetKey())
			child.Job.Key.MapIndex = append(child.Job.Key.MapIndex, int32(position))
			recs = append(recs, child)
		}
	}
	tasks := map[string]*dagbridgev1.Task{}
	for i, rec := range recs {
		for m.taken(rec, recs[:i]) {
			rec.Job.Uid += "'"
		}
		if rec.GetJob().GetParent() == "" {
			text := strings.Repeat(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "script"), rapid.SampledFrom([]int{1, 1024, 1025, 5000}).Draw(t, "length"))
			tasks[rec.GetJob().GetId()] = &dagbridgev1.Task{Key: rec.GetJob().GetKey(), Script: &dagbridgev1.Script{Text: text}, AtMostOnce: new(true)}
		}
	}
	require.NoError(t, m.store.Update(context.Background(), func(tx *store.Tx) error {
		tx.PutRun(run)
		for _, rec := range recs {
			tx.Put(rec)
			require.Same(t, rec, tx.Record(rec.GetJob().GetId()))
			require.Same(t, rec, tx.Dirty(rec.GetJob().GetId()))
		}
		for id, task := range tasks {
			tx.PutTask(id, task)
		}
		return nil
	}))
	m.runs[run.GetId()] = run
	maps.Copy(m.tasks, tasks)
	m.remember(recs)
}

// taken: another job has the record's name. The engine looks before it puts: a name is one job's.
func (m *model) taken(rec *storev1.JobRecord, others []*storev1.JobRecord) bool {
	return slices.ContainsFunc(slices.AppendSeq(slices.Clone(others), maps.Values(m.records)), func(o *storev1.JobRecord) bool {
		return proto.Equal(o.GetJob().GetKey(), rec.GetJob().GetKey()) && o.GetJob().GetTryNumber() == rec.GetJob().GetTryNumber() &&
			o.GetJob().GetUid() == rec.GetJob().GetUid()
	})
}

// run is a run that is there, or a new one.
func (m *model) run(t *rapid.T) *dagbridgev1.Run {
	run := &dagbridgev1.Run{
		Deployment: deployments.Draw(t, "deployment"), Orchestrator: "airflow", Workflow: workflows.Draw(t, "workflow"), Run: runNames.Draw(t, "run"),
	}
	for _, old := range m.runs {
		if old.GetDeployment() == run.GetDeployment() && old.GetWorkflow() == run.GetWorkflow() && old.GetRun() == run.GetRun() {
			return old
		}
	}
	run.Id, _ = m.nextID()
	return run
}

func (m *model) newRecord(t *rapid.T, run *dagbridgev1.Run) *storev1.JobRecord {
	id, at := m.nextID()
	return &storev1.JobRecord{Job: &dagbridgev1.Job{
		Id: id,
		Key: &dagbridgev1.TaskKey{
			Deployment: run.GetDeployment(), Orchestrator: run.GetOrchestrator(), Workflow: run.GetWorkflow(), Run: run.GetRun(),
			Task: taskNames.Draw(t, "task"), MapIndex: mapIndices.Draw(t, "mapIndex"),
		},
		TryNumber: rapid.Int32Range(0, 3).Draw(t, "try"), Uid: uids.Draw(t, "uid"), Cluster: clusters.Draw(t, "cluster"),
		State: dagbridgev1.Job_ACCEPTED, RunId: run.GetId(), Labels: labels.Draw(t, "labels"), CreateTime: timestamppb.New(at),
	}, Generation: rapid.SampledFrom([]int32{0, 0, 0, 1, 2, 300}).Draw(t, "generation")}
}

func (m *model) remember(recs []*storev1.JobRecord) {
	for _, rec := range recs {
		m.records[rec.GetJob().GetId()] = rec
		m.changes = append(m.changes, rec.GetJob().GetId())
	}
}

// change moves a job on: another state, an attempt, another name, something to clean up.
func (m *model) change(t *rapid.T) {
	ids := m.ids()
	if len(ids) == 0 {
		return
	}
	rec := proto.CloneOf(m.records[rapid.SampledFrom(ids).Draw(t, "id")])
	job := rec.GetJob()
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0, 1:
		job.State = dagbridgev1.Job_State(states.Draw(t, "state"))
		job.EndTime = nil
		if job.State >= dagbridgev1.Job_SUCCEEDED {
			m.clock++
			job.EndTime = timestamppb.New(epoch.Add(time.Duration(m.clock) * time.Minute))
		}
	case 2:
		job.Cluster, job.NativeId = clusters.Draw(t, "cluster"), nativeIDs.Draw(t, "nativeId")
		job.Attempts = append(job.Attempts, &dagbridgev1.Attempt{
			Number: int32(len(job.Attempts) + 1), Cluster: job.Cluster, NativeId: job.NativeId,
			SubmitTime: timestamppb.New(epoch.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "submitted")) * time.Minute)),
		})
	case 3:
		rec.Names = append(rec.Names, &storev1.Name{TryNumber: job.GetTryNumber(), Uid: job.GetUid() + "+" + job.GetId()})
	case 4:
		rec.Cleanup = !rec.Cleanup
	}
	require.NoError(t, m.store.Update(context.Background(), func(tx *store.Tx) error {
		tx.Put(rec)
		return nil
	}))
	m.remember([]*storev1.JobRecord{rec})
}

// end ends most jobs of a run.
func (m *model) end(t *rapid.T) {
	if len(m.runs) == 0 {
		return
	}
	run := rapid.SampledFrom(slices.Sorted(maps.Keys(m.runs))).Draw(t, "run")
	var recs []*storev1.JobRecord
	for _, id := range m.where(func(j *dagbridgev1.Job) bool { return j.GetRunId() == run }) {
		if m.clock++; rapid.IntRange(0, 7).Draw(t, "kept") == 0 {
			continue
		}
		rec := proto.CloneOf(m.records[id])
		rec.Cleanup = false
		rec.Job.State = dagbridgev1.Job_SUCCEEDED
		rec.Job.EndTime = timestamppb.New(epoch.Add(time.Duration(m.clock) * time.Minute))
		recs = append(recs, rec)
	}
	require.NoError(t, m.store.Update(context.Background(), func(tx *store.Tx) error {
		for _, rec := range recs {
			tx.Put(rec)
		}
		return nil
	}))
	m.remember(recs)
}

// fail changes something and then fails: nothing of it may be left.
func (m *model) fail(t *rapid.T) {
	ids := m.ids()
	if len(ids) == 0 {
		return
	}
	rec := proto.CloneOf(m.records[rapid.SampledFrom(ids).Draw(t, "id")])
	rec.Job.State, rec.Job.Labels = dagbridgev1.Job_LOST, map[string]string{"never": "seen"}
	refused := errors.New("refused")
	require.ErrorIs(t, m.store.Update(context.Background(), func(tx *store.Tx) error {
		tx.Put(rec)
		tx.PutTask(rec.GetJob().GetId(), &dagbridgev1.Task{Script: &dagbridgev1.Script{Text: strings.Repeat("never", 1000)}})
		return refused
	}), refused)
}

// expire deletes by age or number, and compares with what a reading of all jobs would delete.
func (m *model) expire(t *rapid.T) {
	m.clock++
	now := epoch.Add(time.Duration(m.clock) * time.Minute)
	maxAge := time.Duration(rapid.IntRange(0, m.clock).Draw(t, "maxAge")) * time.Minute
	maxJobs := rapid.IntRange(0, len(m.records)+1).Draw(t, "maxJobs")
	deleted, err := m.store.Expire(now, maxAge, maxJobs)
	require.NoError(t, err)

	want := 0
	for _, id := range m.ids() {
		rec := m.records[id]
		if rec == nil || rec.GetJob().GetParent() != "" || m.busy(rec.GetJob()) {
			continue
		}
		old := maxAge > 0 && cmpOr(rec.GetJob().GetEndTime(), rec.GetJob().GetCreateTime()).AsTime().Before(now.Add(-maxAge))
		if !old && (maxJobs == 0 || len(m.records) <= maxJobs) {
			continue
		}
		for _, child := range m.where(func(j *dagbridgev1.Job) bool { return j.GetParent() == id }) {
			delete(m.records, child)
			want++
		}
		delete(m.records, id)
		delete(m.tasks, id)
		want++
		if run := rec.GetJob().GetRunId(); len(m.where(func(j *dagbridgev1.Job) bool { return j.GetRunId() == run })) == 0 {
			delete(m.runs, run)
		}
	}
	require.Equal(t, want, deleted)
}

// busy: the job's run has a live job, or one of its instances is live.
func (m *model) busy(job *dagbridgev1.Job) bool {
	return len(m.where(func(j *dagbridgev1.Job) bool {
		return isLive(m.records[j.GetId()]) && (j.GetParent() == "" && j.GetRunId() == job.GetRunId() || j.GetParent() == job.GetId())
	})) > 0
}

func cmpOr(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if a != nil {
		return a
	}
	return b
}

func isLive(rec *storev1.JobRecord) bool {
	return rec.GetJob().GetState() < dagbridgev1.Job_SUCCEEDED || rec.GetCleanup()
}

// ids are all job ids, oldest first.
func (m *model) ids() []string { return slices.Sorted(maps.Keys(m.records)) }

// where are the ids of the jobs that fit, oldest first.
func (m *model) where(fits func(*dagbridgev1.Job) bool) []string {
	var found []string
	for _, id := range m.ids() {
		if fits(m.records[id].GetJob()) {
			found = append(found, id)
		}
	}
	return found
}

// check asks everything but lists.
func (m *model) check(t *rapid.T) {
	require.NoError(t, m.store.View(func(tx *store.Tx) error {
		for id, rec := range m.records {
			got := tx.Record(id)
			require.True(t, proto.Equal(rec, got), "record %s", id)
			require.Nil(t, tx.Dirty(id))
			require.True(t, proto.Equal(m.tasks[id], tx.Task(id)), "task %s", id)
			job := rec.GetJob()
			newest, newestTry := m.newest(job.GetKey(), nil), m.newest(job.GetKey(), new(job.GetTryNumber()))
			require.Equal(t, newest, tx.Newest(job.GetKey()))
			require.Equal(t, newestTry, tx.NewestTry(job.GetKey(), job.GetTryNumber()))
			for _, n := range namesOf(rec) {
				require.Equal(t, id, tx.Named(job.GetKey(), n.GetTryNumber(), n.GetUid()))
			}
			var children []string
			tx.Children(id, func(id string) bool { children = append(children, id); return true })
			require.Equal(t, m.where(func(j *dagbridgev1.Job) bool { return j.GetParent() == id }), children)
		}
		var live, instances []string
		tx.Live(func(rec *storev1.JobRecord) bool {
			if rec.GetJob().GetParent() == "" {
				require.Empty(t, instances)
				live = append(live, rec.GetJob().GetId())
			} else {
				instances = append(instances, rec.GetJob().GetId())
			}
			return true
		})
		require.Equal(t, m.where(func(j *dagbridgev1.Job) bool { return isLive(m.records[j.GetId()]) && j.GetParent() == "" }), live)
		require.Equal(t, m.where(func(j *dagbridgev1.Job) bool { return isLive(m.records[j.GetId()]) && j.GetParent() != "" }), instances)
		for id, run := range m.runs {
			require.True(t, proto.Equal(run, tx.Run(id)))
			require.Equal(t, id, tx.RunNamed(run.GetDeployment(), run.GetOrchestrator(), run.GetWorkflow(), run.GetRun()))
			var jobs []string
			tx.RunJobs(id, func(id string) bool { jobs = append(jobs, id); return true })
			require.Equal(t, m.where(func(j *dagbridgev1.Job) bool { return j.GetRunId() == id && j.GetParent() == "" }), jobs)
		}
		m.checkNatives(t, tx)
		return nil
	}))
	require.Equal(t, m.changes, m.hooked)
	require.EqualValues(t, len(m.changes), m.store.Seq())
	m.checkChanges(t)
}

func namesOf(rec *storev1.JobRecord) []*storev1.Name {
	return append([]*storev1.Name{{TryNumber: rec.GetJob().GetTryNumber(), Uid: rec.GetJob().GetUid()}}, rec.GetNames()...)
}

// newest is the newest job of a key, or of one try of it.
func (m *model) newest(key *dagbridgev1.TaskKey, try *int32) string {
	best, bestTry, generation := "", int32(-1), int32(0)
	of := m.where(func(job *dagbridgev1.Job) bool { return proto.Equal(job.GetKey(), key) })
	for _, id := range of {
		generation = max(generation, m.records[id].GetGeneration())
	}
	for _, id := range of {
		for _, n := range namesOf(m.records[id]) {
			if m.records[id].GetGeneration() == generation && n.GetTryNumber() >= bestTry && (try == nil || n.GetTryNumber() == *try) {
				best, bestTry = id, n.GetTryNumber()
			}
		}
	}
	return best
}

func (m *model) checkNatives(t *rapid.T, tx *store.Tx) {
	type holder struct {
		id      string
		attempt *dagbridgev1.Attempt
	}
	for _, cluster := range []string{"hpc", "k8s"} {
		for _, native := range []string{"1", "12", "12_7", "ml/train-6f3a"} {
			var want []holder
			for _, id := range m.ids() {
				for _, a := range m.records[id].GetJob().GetAttempts() {
					if a.GetCluster() == cluster && a.GetNativeId() == native {
						want = append(want, holder{id, a})
					}
				}
			}
			slices.SortStableFunc(want, func(a, b holder) int {
				return b.attempt.GetSubmitTime().AsTime().Compare(a.attempt.GetSubmitTime().AsTime())
			})
			i := 0
			tx.Native(cluster, native, func(id string, attempt int32) bool {
				require.Less(t, i, len(want))
				require.Equal(t, want[i].id, id)
				require.Equal(t, want[i].attempt.GetNumber(), attempt)
				i++
				return true
			})
			require.Equal(t, len(want), i)
		}
	}
}

// checkChanges reads the log in steps, and wants each job's last change in each step, as the job is now.
func (m *model) checkChanges(t *rapid.T) {
	step := rapid.IntRange(1, 20).Draw(t, "step")
	for after := 0; after < len(m.changes); {
		found, last, err := m.store.Changes(uint64(after), step)
		require.NoError(t, err)
		window := m.changes[after:min(after+step, len(m.changes))]
		require.EqualValues(t, after+len(window), last)
		i := 0
		for at, id := range window {
			if m.records[id] == nil || slices.Contains(window[at+1:], id) {
				continue
			}
			require.EqualValues(t, after+at+1, found[i].Seq)
			require.True(t, proto.Equal(m.records[id].GetJob(), found[i].Job))
			i++
		}
		require.Len(t, found, i)
		after = int(last)
	}
}

// list pages through what a random filter chooses, and compares with a reading of all jobs.
func (m *model) list(t *rapid.T) {
	f := &dagbridgev1.JobFilter{}
	maybe := func(name string, g *rapid.Generator[string], set func(string)) {
		if rapid.Bool().Draw(t, "by "+name) {
			set(g.Draw(t, name))
		}
	}
	maybe("deployment", deployments, func(v string) { f.Deployment = v })
	maybe("workflow", workflows, func(v string) { f.Workflow = v })
	maybe("run", runNames, func(v string) { f.Run = v })
	maybe("task", taskNames, func(v string) { f.Task = v })
	maybe("cluster", clusters, func(v string) { f.Cluster = v })
	maybe("nativeId", nativeIDs, func(v string) { f.NativeId = v })
	if ids := m.ids(); len(ids) > 0 {
		maybe("parent", rapid.SampledFrom(ids), func(v string) { f.Parent = v })
	}
	f.Label = rapid.SliceOfN(rapid.SampledFrom([]string{"team=x", "team=y", "empty=", "a=b="}), 0, 2).Draw(t, "labels")
	f.Label = slices.DeleteFunc(f.Label, func(l string) bool { return l == "a=b=" }) // names hold no '='
	for _, s := range rapid.SliceOfN(states, 0, 3).Draw(t, "states") {
		f.State = append(f.State, dagbridgev1.Job_State(s))
	}

	want := m.where(func(j *dagbridgev1.Job) bool { return chosen(f, j) })
	slices.Reverse(want)
	size := rapid.IntRange(1, 5).Draw(t, "pageSize")
	var got []string
	for token := ""; ; {
		page, next, resume, err := m.store.List(f, size, token)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), size)
		seq, err := m.store.ParseResumeToken(resume)
		require.NoError(t, err)
		require.EqualValues(t, len(m.changes), seq)
		for _, job := range page {
			require.True(t, proto.Equal(m.records[job.GetId()].GetJob(), job))
			got = append(got, job.GetId())
		}
		if token = next; token == "" {
			break
		}
		require.Len(t, page, size)
	}
	require.Equal(t, want, got, "filter %v", f)
}

// chosen is what a filter means, written a second time.
func chosen(f *dagbridgev1.JobFilter, j *dagbridgev1.Job) bool {
	k := j.GetKey()
	for _, p := range [][2]string{{f.GetDeployment(), k.GetDeployment()}, {f.GetWorkflow(), k.GetWorkflow()}, {f.GetRun(), k.GetRun()}, {f.GetTask(), k.GetTask()}} {
		if p[0] != "" && p[0] != p[1] {
			return false
		}
	}
	if f.GetParent() != j.GetParent() && (f.GetParent() != "" || f.GetNativeId() == "") {
		return false
	}
	if len(f.GetState()) > 0 && !slices.Contains(f.GetState(), j.GetState()) {
		return false
	}
	for _, l := range f.GetLabel() {
		name, value, _ := strings.Cut(l, "=")
		if v, ok := j.GetLabels()[name]; !ok || v != value {
			return false
		}
	}
	if f.GetNativeId() == "" {
		return f.GetCluster() == "" || f.GetCluster() == j.GetCluster()
	}
	return slices.ContainsFunc(j.GetAttempts(), func(a *dagbridgev1.Attempt) bool {
		return (a.GetNativeId() == f.GetNativeId() || strings.HasPrefix(a.GetNativeId(), f.GetNativeId()+"_")) && (f.GetCluster() == "" || a.GetCluster() == f.GetCluster())
	})
}

// listRuns pages through the runs that a random request chooses.
func (m *model) listRuns(t *rapid.T) {
	req := &dagbridgev1.ListRunsRequest{PageSize: int32(rapid.IntRange(1, 3).Draw(t, "pageSize"))}
	if rapid.Bool().Draw(t, "by workflow") {
		req.Workflow = workflows.Draw(t, "workflow")
	}
	if rapid.Bool().Draw(t, "by run") {
		req.Run = runNames.Draw(t, "run")
	}
	if rapid.Bool().Draw(t, "by deployment") {
		req.Deployment = deployments.Draw(t, "deployment")
	}
	var want, got []string
	for id, run := range m.runs {
		if (req.GetWorkflow() == "" || req.GetWorkflow() == run.GetWorkflow()) && (req.GetRun() == "" || req.GetRun() == run.GetRun()) &&
			(req.GetDeployment() == "" || req.GetDeployment() == run.GetDeployment()) {
			want = append(want, id)
		}
	}
	slices.SortFunc(want, func(a, b string) int { return cmp.Compare(b, a) })
	for {
		page, next, err := m.store.ListRuns(req)
		require.NoError(t, err)
		for _, run := range page {
			got = append(got, run.GetId())
		}
		if next == "" {
			break
		}
		req.PageToken = next
	}
	require.Equal(t, want, got)
}
