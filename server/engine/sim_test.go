package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// crash is what a simulated kill -9 of the gateway panics with.
type crash struct{}

// world is what outlives a gateway: the clock, and what really ran.
type world struct {
	t   *rapid.T
	now time.Time
	// calm: no more faults.
	calm bool
	// fuse counts the points at which the gateway may be killed; at 0 it is. Negative: never.
	fuse int
	// runs of programs, by job id.
	runs map[string][]*run
	// asked of the scheduler, by token.
	asked map[string]asked
	// onStart checks what must hold when a program starts.
	onStart func(jobID, token, native string)
}

// run is one execution of a program.
type run struct {
	token   string
	native  string
	node    string
	running bool
	code    int32
	killed  bool
	// cause of the kill, where it was the scheduler's doing.
	cause string
}

// asked is what a native job was submitted with.
type asked struct {
	memory  string
	limit   time.Duration
	exclude []string
}

func (w *world) point() {
	if w.fuse > 0 {
		if w.fuse--; w.fuse == 0 {
			w.fuse = -1
			panic(crash{})
		}
	}
}

// chance is true once in n, never when all is calm.
func (w *world) chance(n int, what string) bool {
	return !w.calm && rapid.IntRange(1, n).Draw(w.t, what) == n
}

// sim is a scheduler. Like Slurm it has a controller that can be killed and then forgets its last moments, reuses ids,
// starts and withholds by dependencies, purges ended jobs, and may have no accounting. Each native job runs a wrapper with a
// start and an exit marker on a disk that forgets nothing.
type sim struct {
	w    *world
	name string
	// slurmLike: dependencies and arrays.
	slurmLike  bool
	accounting bool
	// arraySize is how many elements an array has at most.
	arraySize int
	// killsInvalid: it cancels jobs whose dependency can never hold.
	killsInvalid bool
	// impersonates: see backend.Capabilities.
	impersonates bool

	// slow, when set, is what a submission waits for.
	slow chan struct{}
	// unsent are jobs, by id, that cannot be sent.
	unsent map[string]bool
	down   bool
	// rate is how many jobs of a call are taken; the others' turns come second by second. 0: all are.
	rate     int
	nextID   int
	jobs     []*simJob
	snapshot []simJob
	snapID   int
	acct     []simJob
	late     []lateRequest
	// unreadable: the outputs that cannot be read after the last look. They are read in parallel, and chance is not for that.
	unreadable map[string]bool
	// outputs that every successful program leaves.
	outputs string
	// inputs of the last submission.
	inputs []translators.Input
	start  map[string]marker
	// succeeded: the success markers, by the folder's job id and position.
	succeeded map[string]bool
	// cancelled: the marks of cancels.
	cancelled map[string]bool
	exit      map[string]int32
}

type marker struct {
	nativeID string
	restarts int
}

type lateRequest struct {
	sub translators.Submission
	due time.Time
}

// simJob is one native job, or one instance of an array.
type simJob struct {
	id       string // "12"
	position int    // -1: no array
	token    string
	jobID    string // whose program it is
	state    dagbridgev1.Job_State
	reason   string
	code     int32
	held     bool
	depends  translators.Dependencies
	submit   time.Time
	ended    time.Time
	startAt  time.Time
	skip     []int32
	guard    []translators.InputJob
	parallel int
	node     string
	exclude  []string
	restarts int
	// launchFailed: it is held since the controller could not start it.
	launchFailed bool
	// refused: its node did not start it, and the controller calls it cancelled. It may start all the same, a moment later, and
	// is killed.
	refused bool
	// stuck: the controller, which was killed as it took the job, can change it no more.
	stuck   bool
	foreign bool
	run     *run
}

func newSim(w *world, name string, slurmLike bool) *sim {
	return &sim{
		w: w, name: name, slurmLike: slurmLike, accounting: rapid.Bool().Draw(w.t, name+" accounting"), nextID: 1, arraySize: 100, outputs: `{"auc": 0.91}`,
		start: map[string]marker{}, succeeded: map[string]bool{}, cancelled: map[string]bool{}, unreadable: map[string]bool{}, exit: map[string]int32{},
	}
}

var errDown = errors.New("the controller does not answer")

func (s *sim) Kind() string { return "sim" }

func (s *sim) Capabilities() backend.Capabilities {
	if s.slurmLike {
		return backend.Capabilities{Dependencies: true, MaxArraySize: s.arraySize, Folds: true, Impersonates: s.impersonates}
	}
	return backend.Capabilities{}
}

func (s *sim) Check(translators.Submission) translators.Faults { return nil }

func (s *sim) Render(translators.Submission) (translators.Rendering, translators.Faults) {
	return translators.Rendering{Text: "sim"}, nil
}

func (s *sim) Submit(_ context.Context, subs []translators.Submission) []backend.SubmitResult {
	if s.slow != nil {
		<-s.slow
	}
	results := make([]backend.SubmitResult, len(subs))
	for i, sub := range subs {
		s.w.point()
		if s.rate > 0 && i >= s.rate {
			results[i] = backend.SubmitResult{Outcome: backend.Limited, RetryAfter: time.Duration(1+i-s.rate) * time.Second, Message: "so many a second"}
			continue
		}
		results[i] = s.submitOne(sub)
		s.w.point()
	}
	return results
}

func (s *sim) submitOne(sub translators.Submission) backend.SubmitResult {
	if s.down || s.unsent[sub.Job.GetId()] {
		return backend.SubmitResult{Outcome: backend.NotSent, Message: errDown.Error()}
	}
	if s.w.chance(8, "submit fault") {
		switch rapid.IntRange(0, 6).Draw(s.w.t, "kind") {
		case 0: // taken, and the answer lost
			s.take(sub)
			return backend.SubmitResult{Outcome: backend.Unknown, Message: "the answer was cut"}
		case 1: // lost on the way
			return backend.SubmitResult{Outcome: backend.Unknown, Message: "the request was cut"}
		case 2: // still on its way
			s.late = append(s.late, lateRequest{sub, s.w.now.Add(time.Duration(rapid.IntRange(1, 10).Draw(s.w.t, "late")) * time.Second)})
			return backend.SubmitResult{Outcome: backend.Unknown, Message: "no answer in time"}
		case 3:
			return backend.SubmitResult{Outcome: backend.NotSent, Message: "connection refused"}
		case 4:
			return backend.SubmitResult{Outcome: backend.Busy, Message: "queue full"}
		case 5:
			return backend.SubmitResult{Outcome: backend.Limited, RetryAfter: 3 * time.Second, Message: "so many a second"}
		default:
			return backend.SubmitResult{Outcome: backend.Refused, Message: "Invalid partition name specified"}
		}
	}
	if !slices.ContainsFunc(simNodes, func(node string) bool { return !slices.Contains(sub.ExcludeNodes, node) }) {
		return backend.SubmitResult{Outcome: backend.Refused, Message: "Requested node configuration is not available"}
	}
	id := s.take(sub)
	return backend.SubmitResult{Outcome: backend.Submitted, Ref: backend.NativeRef{ID: id, Token: sub.Token, SubmitTime: s.w.now}}
}

var simNodes = []string{"n1", "n2"}

// take makes the native job.
func (s *sim) take(sub translators.Submission) string {
	id := strconv.Itoa(s.nextID)
	s.nextID++
	s.inputs = sub.Inputs
	s.logf("takes %s as %s held=%v depends=%v", sub.Token, id, sub.Hold, sub.Depends.Terms)
	one := simJob{
		id: id, position: -1, token: sub.Token, jobID: sub.Job.GetId(), state: dagbridgev1.Job_SUBMITTED, held: sub.Hold,
		depends: sub.Depends, submit: s.w.now, skip: sub.Task.GetSkipExitCodes(), guard: sub.Guard, exclude: sub.ExcludeNodes,
		parallel: sub.MaxParallel,
	}
	if s.w.asked != nil {
		s.w.asked[sub.Token] = asked{sub.Task.GetResources().GetMemory(), sub.Task.GetResources().GetTimeLimit().AsDuration(), sub.ExcludeNodes}
	}
	if len(sub.Instances) == 0 {
		s.jobs = append(s.jobs, &one)
		return id
	}
	for _, in := range sub.Instances {
		j := one
		j.position, j.jobID = in.Position, in.JobID
		s.jobs = append(s.jobs, &j)
	}
	return id
}

func (s *sim) Find(_ context.Context, wants []backend.Want) []backend.Finding {
	s.w.point()
	out := make([]backend.Finding, len(wants))
	for i, want := range wants {
		if s.down || s.w.chance(6, "find fault") {
			out[i] = backend.Finding{Presence: backend.Uncertain, Proof: errDown.Error()}
			continue
		}
		out[i] = s.findOne(want)
	}
	return out
}

func (s *sim) findOne(want backend.Want) backend.Finding {
	token := want.Token
	f := backend.Finding{Presence: backend.Absent, Proof: "neither controller nor accounting knows it"}
	seen := map[string]bool{}
	add := func(id string, submit time.Time) {
		if !seen[id] {
			seen[id] = true
			f.Presence = backend.Found
			f.Refs = append(f.Refs, backend.NativeRef{ID: id, Token: token, SubmitTime: submit})
		}
	}
	neverRan := func(j simJob) bool { return j.state == dagbridgev1.Job_CANCELLED && j.startAt.IsZero() }
	for _, j := range s.acct {
		if s.accounting && j.token == token && !neverRan(j) {
			add(j.id, j.submit)
		}
	}
	for _, j := range s.jobs {
		if j.token == token && !neverRan(*j) {
			add(j.id, j.submit)
			if j.held && j.state == dagbridgev1.Job_SUBMITTED {
				f.Held = append(f.Held, j.id)
			}
		}
	}
	if f.Presence == backend.Absent {
		for key, m := range s.start {
			if t, _, _ := strings.Cut(key, "/"); t != token {
				continue
			}
			f.Started = true
			if _, over := s.exit[key]; over || len(want.Positions) > 0 {
				add(m.nativeID, time.Time{})
			}
		}
	}
	slices.SortFunc(f.Refs, func(a, b backend.NativeRef) int { return a.SubmitTime.Compare(b.SubmitTime) })
	return f
}

func (s *sim) Observe(context.Context, func() []backend.Known, func(backend.News)) {}

// look is one look at the cluster.
func (s *sim) look(known []backend.Known) backend.News {
	s.w.point()
	news := backend.News{AsOf: s.w.now}
	if s.down || s.w.chance(10, "look fault") {
		news.Err = errDown
		return news
	}
	for _, k := range known {
		positions := k.Positions
		if len(positions) == 0 {
			positions = []int{-1}
		}
		for _, pos := range positions {
			obs := s.lookOne(k.Ref, pos)
			s.unreadable[markerKey(k.Ref.Token, pos)] = obs.State == dagbridgev1.Job_SUCCEEDED && s.w.chance(20, "outputs fault")
			news.Observations = append(news.Observations, obs)
		}
	}
	return news
}

func (s *sim) lookOne(ref backend.NativeRef, pos int) backend.Observation {
	obs := backend.Observation{Ref: ref, Position: pos}
	for _, j := range s.jobs {
		if j.id == ref.ID && j.token == ref.Token && j.position == pos {
			return s.tell(obs, *j)
		}
	}
	for _, j := range s.acct {
		if s.accounting && j.id == ref.ID && j.token == ref.Token && j.position == pos {
			return s.tell(obs, j)
		}
	}
	obs.Gone = true
	key := markerKey(ref.Token, pos)
	m, started := s.start[key]
	obs.Started = started
	if code, ok := s.exit[key]; ok && m.nativeID == ref.ID {
		s.tellEnd(&obs, code)
	}
	return obs
}

func (s *sim) tell(obs backend.Observation, j simJob) backend.Observation {
	obs.State, obs.Reason, obs.Held = j.state, j.reason, j.held
	obs.SubmitTime, obs.StartTime, obs.EndTime, obs.Node = j.submit, j.startAt, j.ended, j.node
	obs.Infrastructure, obs.LaunchFailed = isInfrastructure(j.reason), j.launchFailed
	if j.state == dagbridgev1.Job_SUBMITTED {
		obs.DependenciesKnown = true
		for _, d := range j.depends.Terms {
			met, never := s.met(d, j.position)
			if met && j.depends.Any {
				obs.Dependencies, obs.Failed, obs.NeverSatisfied = nil, nil, false // one is enough
				break
			}
			if !met {
				obs.Dependencies = append(obs.Dependencies, d.NativeID)
				if never {
					obs.NeverSatisfied, obs.Failed = true, append(obs.Failed, d.NativeID)
				}
			}
		}
	}
	if j.state == dagbridgev1.Job_FAILED || j.state == dagbridgev1.Job_SUCCEEDED {
		obs.ExitCode = &j.code
	}
	key := markerKey(j.token, j.position)
	_, started := s.start[key]
	if j.state == dagbridgev1.Job_CANCELLED && j.reason == "CANCELLED" && j.startAt.IsZero() && s.cancelled[key] {
		obs.Reason = reasonMarked
	}
	if obs.Refused = j.refused && !started; j.refused && started && s.start[key].nativeID == j.id {
		return backend.Observation{Ref: obs.Ref, Position: obs.Position, Gone: true, Started: true}
	}
	if j.refused && started { // as a double
		obs.State, obs.Reason = dagbridgev1.Job_FAILED, reasonDuplicate
		return obs
	}
	if code, over := s.exit[key]; over && s.start[key].nativeID == j.id && (j.reason == reasonDuplicate || (obs.Infrastructure || j.state == dagbridgev1.Job_CANCELLED) && code == 0) {
		obs.Reason, obs.Infrastructure = "", false // it had ended before the controller forgot that
		s.tellEnd(&obs, code)
	} else if j.reason == reasonDuplicate && s.start[key].nativeID == j.id {
		// what started was this very job, which the controller forgot
		return backend.Observation{Ref: obs.Ref, Position: obs.Position, Gone: true, Started: true}
	}
	return obs
}

func (s *sim) tellEnd(obs *backend.Observation, code int32) {
	obs.State, obs.ExitCode = dagbridgev1.Job_SUCCEEDED, &code
	if code != 0 {
		obs.State = dagbridgev1.Job_FAILED
	}
}

func (s *sim) Alter(_ context.Context, changes []backend.Change) []error {
	errs := make([]error, len(changes))
	for i, c := range changes {
		s.w.point()
		if s.down || s.w.chance(8, "alter fault") {
			continue
		}
		for _, j := range s.jobs {
			if j.id == c.Ref.ID && j.token == c.Ref.Token && j.state == dagbridgev1.Job_SUBMITTED {
				if j.stuck {
					errs[i] = backend.ErrStuck
					continue
				}
				s.logf("alters %s %s release=%v depends=%v", j.id, j.token, c.Release, c.Depends)
				j.held, j.launchFailed = j.held && !c.Release, j.launchFailed && !c.Release
				if c.Depends != nil {
					j.depends = *c.Depends
				}
			}
		}
	}
	return errs
}

func (s *sim) Cancel(_ context.Context, known []backend.Known) []error {
	errs := make([]error, len(known))
	for i, k := range known {
		s.w.point()
		if s.down || s.w.chance(8, "cancel fault") {
			errs[i] = errDown
			continue
		}
		for _, j := range s.jobs {
			if j.id == k.Ref.ID && j.token == k.Ref.Token && (len(k.Positions) == 0 || slices.Contains(k.Positions, j.position)) {
				s.kill(j, dagbridgev1.Job_CANCELLED, "CANCELLED")
			}
		}
		positions := k.Positions
		if len(positions) == 0 {
			positions = []int{-1}
		}
		for _, pos := range positions {
			if !k.Double {
				s.cancelled[markerKey(k.Ref.Token, pos)] = true
			}
		}
	}
	return errs
}

func (s *sim) Log(context.Context, backend.NativeRef, *dagbridgev1.Job, int, string, int64) (io.ReadCloser, int64, error) {
	return nil, 0, backend.ErrNoFile
}

func (s *sim) Outputs(_ context.Context, ref backend.NativeRef, _ *dagbridgev1.Job, position int) ([]byte, error) {
	if s.unreadable[markerKey(ref.Token, position)] {
		return nil, errors.New("stale file handle")
	}
	return []byte(s.outputs), nil
}

func (s *sim) Logs(*dagbridgev1.Job, string, int) *dagbridgev1.Logs { return nil }

func (s *sim) Close() error { return nil }

func markerKey(token string, pos int) string { return token + "/" + strconv.Itoa(pos) }

func ended(state dagbridgev1.Job_State) bool {
	return state != dagbridgev1.Job_SUBMITTED && state != dagbridgev1.Job_RUNNING
}

func (s *sim) kill(j *simJob, state dagbridgev1.Job_State, reason string) {
	if ended(j.state) {
		return
	}
	s.logf("kills %s %s: %s", j.id, j.token, reason)
	if j.run != nil && j.run.running {
		j.run.running, j.run.killed = false, true
	}
	j.state, j.reason, j.ended = state, reason, s.w.now
}

// met says whether a dependency holds, or never can. Like 22.05, an id that nobody knows counts as satisfied.
func (s *sim) met(d translators.Dependency, position int) (met, never bool) {
	base, index, single := strings.Cut(d.NativeID, "_")
	all, ok, known := true, true, false
	started := true
	for _, j := range s.jobs {
		if j.id != base || single && strconv.Itoa(j.position) != index || d.Type == translators.AfterCorr && j.position != position {
			continue
		}
		known = true
		all = all && ended(j.state)
		ok = ok && (!ended(j.state) || j.state == dagbridgev1.Job_SUCCEEDED)
		started = started && j.state != dagbridgev1.Job_SUBMITTED
	}
	if !known {
		return true, false
	}
	switch d.Type {
	case translators.After:
		return started, false
	case translators.AfterAny:
		return all, false
	case translators.AfterNotOK:
		return all && !ok, all && ok
	default:
		return all && ok, !ok
	}
}

func (s *sim) startable(j *simJob) bool {
	if j.state != dagbridgev1.Job_SUBMITTED || j.held || j.launchFailed || j.foreign {
		return false
	}
	some := len(j.depends.Terms) == 0
	for _, d := range j.depends.Terms {
		met, _ := s.met(d, j.position)
		if !met && !j.depends.Any {
			return false
		}
		some = some || met
	}
	return some
}

// hasRoom: of the job's array fewer run than may at once.
func (s *sim) hasRoom(j *simJob) bool {
	running := 0
	for _, other := range s.jobs {
		if other.id == j.id && other.token == j.token && other.state == dagbridgev1.Job_RUNNING {
			running++
		}
	}
	return j.parallel == 0 || running < j.parallel
}

// invalid: what a job waits for can never hold.
func (s *sim) invalid(j *simJob) bool {
	if j.state != dagbridgev1.Job_SUBMITTED {
		return false
	}
	never := func(d translators.Dependency) bool { _, never := s.met(d, j.position); return never }
	if j.depends.Any {
		return len(j.depends.Terms) > 0 && !slices.ContainsFunc(j.depends.Terms, func(d translators.Dependency) bool { return !never(d) })
	}
	return slices.ContainsFunc(j.depends.Terms, never)
}

// step lets some time pass in the cluster.
func (s *sim) step() {
	s.late = slices.DeleteFunc(s.late, func(l lateRequest) bool {
		if due := !s.w.now.Before(l.due); due && !s.down {
			s.take(l.sub)
			return true
		}
		return false
	})
	if s.down {
		s.runOn()
		return
	}
	for _, j := range s.jobs {
		switch {
		case s.killsInvalid && s.invalid(j):
			s.kill(j, dagbridgev1.Job_CANCELLED, reasonDependency)
		case s.startable(j) && s.hasRoom(j) && (s.w.calm || s.w.chance(2, "start")):
			s.begin(j)
		case j.state == dagbridgev1.Job_RUNNING:
			s.go1(j)
		case j.refused && j.position < 0 && s.w.chance(4, "starts all the same"): // of an array it would count for what may run at once
			s.startsRefused(j)
		}
	}
	// Ended jobs are purged after a while; accounting, where there is some, keeps them.
	s.jobs = slices.DeleteFunc(s.jobs, func(j *simJob) bool {
		if ended(j.state) && s.w.now.Sub(j.ended) > 15*time.Second && !s.waitedFor(j) {
			s.acct = append(s.acct, *j)
			return true
		}
		return false
	})
	if s.w.calm || rapid.IntRange(0, 2).Draw(s.w.t, "save") == 0 {
		s.save()
	}
}

// waitedFor: MinJobAge is far longer than the gateway takes to notice an end.
func (s *sim) waitedFor(j *simJob) bool {
	return slices.ContainsFunc(s.jobs, func(o *simJob) bool {
		return o.state == dagbridgev1.Job_SUBMITTED && slices.ContainsFunc(o.depends.Terms, func(d translators.Dependency) bool {
			base, _, _ := strings.Cut(d.NativeID, "_")
			return base == j.id
		})
	})
}

func (s *sim) logf(format string, args ...any) {
	if s.w.t == nil {
		return
	}
	s.w.t.Logf("%s %s "+format, append([]any{s.w.now.Format("04:05"), s.name}, args...)...)
}

func (s *sim) save() {
	s.logf("saves, next id %d", s.nextID)
	s.snapshot, s.snapID = s.snapshot[:0], s.nextID
	for _, j := range s.jobs {
		s.snapshot = append(s.snapshot, *j)
	}
}

// begin starts a native job: the wrapper's first act is the start marker.
func (s *sim) begin(j *simJob) {
	key := markerKey(j.token, j.position)
	if s.cancelled[key] {
		j.state, j.reason, j.code, j.ended = dagbridgev1.Job_CANCELLED, reasonMarked, 124, s.w.now
		return
	}
	for _, g := range j.guard {
		if !s.succeeded[markerKey(g.JobID, g.Position)] {
			s.logf("starts %s %s too early", j.id, key)
			j.state, j.reason, j.code, j.ended = dagbridgev1.Job_FAILED, reasonPremature, 122, s.w.now
			return
		}
	}
	if code, over := s.exit[key]; over && s.start[key].nativeID == j.id {
		s.logf("has %s %s tell its end once more", j.id, key)
		s.end(j, code)
		return
	}
	if m, there := s.start[key]; there && (m.nativeID != j.id || m.restarts >= j.restarts) {
		j.state, j.reason, j.code, j.ended = dagbridgev1.Job_FAILED, reasonDuplicate, 120, s.w.now
		return
	}
	if s.w.chance(12, "refused") {
		s.logf("cancels %s %s, which its node refuses", j.id, key)
		j.state, j.reason, j.refused, j.startAt, j.ended, j.node = dagbridgev1.Job_CANCELLED, "", true, s.w.now, s.w.now, simNodes[0]
		return
	}
	s.logf("starts %s %s", j.id, key)
	s.start[key] = marker{j.id, j.restarts}
	j.state, j.startAt, j.reason = dagbridgev1.Job_RUNNING, s.w.now, ""
	s.w.onStart(j.jobID, j.token, j.id)
	for _, node := range simNodes {
		if j.node = node; !slices.Contains(j.exclude, node) {
			break
		}
	}
	j.run = &run{token: j.token, native: j.id, node: j.node, running: true}
	s.w.runs[j.jobID] = append(s.w.runs[j.jobID], j.run)
}

// go1 lets a running job go on: it may end, be requeued, or lose its node.
func (s *sim) go1(j *simJob) {
	if !s.w.calm && rapid.IntRange(0, 2).Draw(s.w.t, "end") != 0 {
		if s.w.chance(15, "requeue") {
			j.run.running, j.run.killed = false, true
			j.state, j.reason, j.startAt = dagbridgev1.Job_SUBMITTED, "BeginTime", time.Time{}
			j.restarts++
		}
		return
	}
	if s.w.chance(6, "not of its own doing") {
		cause := rapid.SampledFrom([]string{"NODE_FAIL", "PREEMPTED", causeTime, causeMemory}).Draw(s.w.t, "cause")
		j.run.cause = cause
		s.kill(j, dagbridgev1.Job_FAILED, cause)
		return
	}
	s.finish(j)
}

func (s *sim) finish(j *simJob) {
	codes := []int32{0, 0, 0, 3}
	if len(j.skip) > 0 {
		codes = append(codes, j.skip...)
	}
	j.code = rapid.SampledFrom(codes).Draw(s.w.t, "exit code")
	j.run.running, j.run.code = false, j.code
	s.exit[markerKey(j.token, j.position)] = j.code
	s.logf("ends %s %s with %d", j.id, j.token, j.code)
	s.end(j, j.code)
}

func (s *sim) end(j *simJob, code int32) {
	j.code, j.reason, j.ended = code, "", s.w.now
	if j.state = dagbridgev1.Job_SUCCEEDED; j.code != 0 {
		j.state = dagbridgev1.Job_FAILED
	} else {
		s.succeeded[markerKey(jobOf(j.token), j.position)] = true
	}
}

// runOn: programs go on while the controller is down.
func (s *sim) runOn() {
	for _, j := range s.jobs {
		if j.state == dagbridgev1.Job_RUNNING && s.w.chance(3, "end while down") {
			s.finish(j)
		}
	}
}

// amnesia is kill -9 of the controller: what happened since its state was last saved is forgotten, and ids are given out
// again, to somebody else. A job that had started since is unknown to it, or started a second time, and killed on its node. One
// that had ended may stay so, since the node tells; else it starts once more, after a start that was forgotten too, or counts
// as vanished with its node.
//
// An end that the program had not come to by itself stays: that it was killed is no end to be told once more.
func (s *sim) amnesia() {
	s.logf("forgets: next id %d -> %d", s.nextID, s.snapID)
	before := map[string]*simJob{}
	for _, j := range s.jobs {
		before[j.id+"/"+markerKey(j.token, j.position)] = j
	}
	s.jobs = nil
	for _, old := range s.snapshot {
		key := old.id + "/" + markerKey(old.token, old.position)
		now := before[key]
		delete(before, key)
		j := old
		j.stuck = j.stuck || s.w.chance(10, "stuck")
		if now != nil && now.state != old.state && now.startAt.After(old.startAt) {
			if now.run != nil && now.run.running {
				now.run.running, now.run.killed = false, true
				j.state, j.startAt = dagbridgev1.Job_SUBMITTED, time.Time{} // it starts again
				if j.launchFailed = s.w.chance(3, "launch fails"); j.launchFailed {
					j.restarts++ // it is requeued, and held
				}
			} else if now.run != nil && !s.forgetsEnd(now) {
				j = *now
			}
		} else if now != nil && old.state == dagbridgev1.Job_RUNNING {
			if j = *now; ended(now.state) && s.forgetsEnd(now) {
				j = old
				if j.restarts++; s.w.chance(2, "no requeue") {
					j.state, j.reason, j.code, j.ended = dagbridgev1.Job_FAILED, "NODE_FAIL", 1, s.w.now
				} else {
					j.state, j.reason, j.startAt = dagbridgev1.Job_SUBMITTED, "BeginTime", time.Time{}
				}
			}
		} else if now == nil && old.state == dagbridgev1.Job_RUNNING {
			continue // it had ended long since, and the node has told
		}
		s.jobs = append(s.jobs, &j)
	}
	for _, lost := range before {
		if lost.run != nil && lost.run.running {
			lost.run.running, lost.run.killed = false, true
		}
	}
	s.nextID = s.snapID
	for range rapid.IntRange(0, 2).Draw(s.w.t, "foreign") {
		s.jobs = append(s.jobs, &simJob{id: strconv.Itoa(s.nextID), position: -1, token: fmt.Sprintf("somebody.%d", s.nextID), foreign: true, state: dagbridgev1.Job_SUBMITTED, submit: s.w.now})
		s.nextID++
	}
}

// forgetsEnd: the controller does not know any more that a program ended by itself.
func (s *sim) forgetsEnd(j *simJob) bool {
	_, byItself := s.exit[markerKey(j.token, j.position)]
	return byItself && s.start[markerKey(j.token, j.position)].nativeID == j.id && s.w.chance(2, "end forgotten")
}

// pass runs what a cluster's loops run, one after the other.
func (e *Engine) pass(ctx context.Context, c *cluster) {
	e.order(ctx, c)
	e.dispatch(ctx, c)
}

// startsRefused: what its node was to refuse starts, unless it is marked, and is killed.
func (s *sim) startsRefused(j *simJob) {
	key := markerKey(j.token, j.position)
	if _, started := s.start[key]; started || s.cancelled[key] {
		return
	}
	s.logf("starts %s %s, which was to be refused, and kills it", j.id, key)
	s.start[key] = marker{j.id, j.restarts}
	s.w.onStart(j.jobID, j.token, j.id)
	s.w.runs[j.jobID] = append(s.w.runs[j.jobID], &run{token: j.token, node: j.node, killed: true})
}
