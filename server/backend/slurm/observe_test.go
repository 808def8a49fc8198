package slurm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// witnesses is a way that says what a test lets the controller and accounting say.
type witnesses struct {
	way
	controller, accounting       []record
	controllerErr, accountingErr error
	untoldCount                  int
	cancelled                    []string
	released                     []string
}

func (w *witnesses) jobs(context.Context, []string) ([]record, error) {
	return w.controller, w.controllerErr
}
func (w *witnesses) watch(ctx context.Context, ids []string) ([]record, error) {
	return w.jobs(ctx, ids)
}
func (w *witnesses) server() string { return "witnesses" }
func (w *witnesses) accountedByID(context.Context, []string) ([]record, error) {
	return w.accounting, w.accountingErr
}
func (w *witnesses) accountedByName(context.Context, []string, time.Time) ([]record, error) {
	return w.accounting, w.accountingErr
}
func (w *witnesses) untold(context.Context) (int, error) { return w.untoldCount, nil }
func (w *witnesses) cancel(_ context.Context, _ string, ids []string) []error {
	w.cancelled = append(w.cancelled, ids...)
	return make([]error, len(ids))
}
func (w *witnesses) release(_ context.Context, _ string, ids []string) []error {
	w.released = append(w.released, ids...)
	return make([]error, len(ids))
}

const (
	token    = "0196f000-0000-7000-8000-000000000001.1"
	stranger = "0196f000-0000-7000-8000-000000000002.1"
)

var (
	job       = &dagbridgev1.Job{Id: "0196f000-0000-7000-8000-000000000001", Key: &dagbridgev1.TaskKey{Task: "step"}}
	ref       = backend.NativeRef{ID: "77", Token: token, SubmitTime: time.Unix(1796047082, 0)}
	knownJob  = backend.Known{Ref: ref, Job: job}
	knownTask = backend.Known{Ref: ref, Job: job, Positions: []int{0, 1, 2, 3}}
)

// said is a record of the known job.
func said(change func(*record)) record {
	r := record{id: "77", words: []string{"RUNNING"}, reason: "None", user: "svc", name: "step." + token, submit: ref.SubmitTime, start: ref.SubmitTime, node: "n1"}
	if change != nil {
		change(&r)
	}
	return r
}

func element(state string, positions ...int) record {
	return said(func(r *record) {
		r.words, r.positions, r.end = []string{state}, positions, ref.SubmitTime.Add(time.Minute)
	})
}

func newWitnessed(t *testing.T, w *witnesses) *Backend {
	t.Helper()
	b := &Backend{
		orders: w, looks: w, log: slog.New(slog.DiscardHandler), accountingLag: time.Hour, pollInterval: time.Millisecond,
		site: slurm.Site{WorkDir: t.TempDir(), User: "svc"},
	}
	require.NoError(t, os.MkdirAll(slurm.Dir(b.site, job.Id), 0o755))
	return b
}

// marker writes a file of the job's.
func marker(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// look looks once and returns what it told, by position.
func look(t *testing.T, b *Backend, k backend.Known) (map[int]backend.Observation, error) {
	t.Helper()
	told := map[int]backend.Observation{}
	var err error
	o := observer{b: b, emit: func(news backend.News) {
		require.False(t, news.AsOf.IsZero())
		err = errors.Join(err, news.Err)
		for _, observation := range news.Observations {
			require.Equal(t, k.Ref, observation.Ref)
			told[observation.Position] = observation
		}
	}}
	o.look(t.Context(), []backend.Known{k})
	o.follows.Wait()
	return told, err
}

func TestTheControllerComesFirst(t *testing.T) {
	t.Parallel()
	// accounting has had the id before: another's job of long ago
	w := &witnesses{controller: []record{said(nil)}, accounting: []record{said(func(r *record) {
		r.words, r.user, r.name, r.submit = []string{"COMPLETED"}, "someone", "other", time.Unix(1500000000, 0)
	})}}
	told, err := look(t, newWitnessed(t, w), knownJob)
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_RUNNING, told[-1].State)
}

func TestARecordCountsOnlyIfItIsTheJobs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*record){
		"another token":    func(r *record) { r.name = "step." + stranger },
		"no token":         func(r *record) { r.name = "interactive" },
		"another user":     func(r *record) { r.user = "mallory" },
		"submitted before": func(r *record) { r.submit = ref.SubmitTime.Add(-24 * time.Hour) },
		"another id":       func(r *record) { r.id = "78" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witnesses{
				controller: []record{said(change)},
				accounting: []record{said(func(r *record) { r.words = []string{"COMPLETED"}; change(r) })},
			}
			told, err := look(t, newWitnessed(t, w), knownJob)
			require.NoError(t, err)
			require.True(t, told[-1].Gone)
			require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, told[-1].State)
		})
	}
}

func TestWhatTheControllerForgotIsToldByAccounting(t *testing.T) {
	t.Parallel()
	ended := func(word string, node string) record {
		return said(func(r *record) { r.words, r.node, r.end = []string{word}, node, ref.SubmitTime.Add(time.Minute) })
	}
	w := &witnesses{accounting: []record{ended("COMPLETED", "n1")}}
	told, _ := look(t, newWitnessed(t, w), knownJob)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, told[-1].State)
	require.False(t, told[-1].Gone)

	w.accounting = []record{ended("CANCELLED by 500", "")}
	told, _ = look(t, newWitnessed(t, w), knownJob)
	require.Equal(t, dagbridgev1.Job_CANCELLED, told[-1].State)
	require.True(t, told[-1].StartTime.IsZero(), "it never started")
	require.False(t, told[-1].EndTime.IsZero())

	// accounting may write the state first, and when it ended later
	w.accounting = []record{said(func(r *record) { r.words = []string{"FAILED"} })}
	told, _ = look(t, newWitnessed(t, w), knownJob)
	require.Empty(t, told)

	// of a requeued job the last run counts
	again := ended("RUNNING", "n1")
	again.submit = ref.SubmitTime.Add(time.Minute)
	w.accounting = []record{again, ended("NODE_FAIL", "n1")}
	told, _ = look(t, newWitnessed(t, w), knownJob)
	require.Empty(t, told, "accounting lags, or the job is lost: not yet known")
}

func TestNoNewsIsNotNews(t *testing.T) {
	t.Parallel()
	w := &witnesses{controllerErr: errors.New("slurmctld does not answer")}
	told, err := look(t, newWitnessed(t, w), knownJob)
	require.ErrorContains(t, err, "does not answer")
	require.Empty(t, told)

	// accounting is down: nothing is known of what the controller forgot, unless the job itself has said so
	w = &witnesses{accountingErr: errors.New("Problem talking to the database")}
	b := newWitnessed(t, w)
	told, err = look(t, b, knownJob)
	require.NoError(t, err)
	require.Empty(t, told)
	marker(t, slurm.ExitMarker(b.site, job.Id, token, -1), "id=77\nrestart=0\nexit=3\nend=1796047099\nsentence=\n")
	told, _ = look(t, b, knownJob)
	require.Equal(t, dagbridgev1.Job_FAILED, told[-1].State)
	require.EqualValues(t, 3, *told[-1].ExitCode)
	require.True(t, told[-1].Gone)

	// a record that cannot be read is a record
	w = &witnesses{controller: []record{{id: "77", unread: true}}}
	told, err = look(t, newWitnessed(t, w), knownJob)
	require.NoError(t, err)
	require.Empty(t, told)
}

func TestWithoutAccountingTheMarkersDecide(t *testing.T) {
	t.Parallel()
	b := newWitnessed(t, &witnesses{accountingErr: errNoAccounting})
	told, _ := look(t, b, knownJob)
	require.True(t, told[-1].Gone)
	require.False(t, told[-1].Started)
	require.Contains(t, told[-1].Message, "no accounting")

	marker(t, slurm.StartMarker(b.site, job.Id, token, -1), "77 0\n")
	told, _ = look(t, b, knownJob)
	require.True(t, told[-1].Gone)
	require.True(t, told[-1].Started)
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, told[-1].State)

	exit := slurm.ExitMarker(b.site, job.Id, token, -1)
	marker(t, exit, "id=78\nrestart=0\nexit=0\nend=1796047099\nsentence=\n")
	told, _ = look(t, b, knownJob)
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, told[-1].State, "another native job wrote it")

	marker(t, exit, "id=77\nrestart=0\nexit=0\nend=1796047099\nsentence=\n")
	told, _ = look(t, b, knownJob)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, told[-1].State)

	marker(t, exit, "id=77\nrestart=0\nexit=121\nend=1796047099\nsentence=the outputs are refused: no JSON\n")
	told, _ = look(t, b, knownJob)
	require.Equal(t, reasonOutputsRefused, told[-1].Reason)
	require.Equal(t, "the outputs are refused: no JSON", told[-1].Message)
}

func TestAccountingThatOnlyLagsIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newWitnessed(t, &witnesses{accounting: []record{said(nil)}})
	gone := 0
	o := observer{b: b, emit: func(news backend.News) {
		for _, observation := range news.Observations {
			require.True(t, observation.Gone)
			require.Contains(t, observation.Message, "RUNNING")
			gone++
		}
	}}
	for range 2 {
		o.look(t.Context(), []backend.Known{knownJob})
		o.follows.Wait()
	}
	require.Zero(t, gone)
	b.accountingLag = 0
	o.look(t.Context(), []backend.Known{knownJob})
	o.follows.Wait()
	require.Equal(t, 1, gone)
}

// As long as slurmctld has something to tell accounting, that accounting lacks a job means nothing.
func TestAccountingThatHasNotHeardAllProvesNothing(t *testing.T) {
	t.Parallel()
	w := &witnesses{untoldCount: 8000}
	b := newWitnessed(t, w)
	want := []backend.Want{{Token: token, Job: job, Since: ref.SubmitTime}}
	told, err := look(t, b, knownJob)
	require.NoError(t, err)
	require.Empty(t, told)
	finding := b.Find(t.Context(), want)[0]
	require.Equal(t, backend.Uncertain, finding.Presence)
	require.Contains(t, finding.Proof, "8000")
	b.minJobAge = 10 * 365 * 24 * time.Hour
	require.Equal(t, backend.Absent, b.Find(t.Context(), want)[0].Presence, "the controller cannot have forgotten it yet")

	// what accounting or the job itself says is evidence all the same
	w.accounting = []record{said(func(r *record) { r.words, r.end = []string{"FAILED"}, ref.SubmitTime.Add(time.Minute) })}
	told, _ = look(t, b, knownJob)
	require.Equal(t, dagbridgev1.Job_FAILED, told[-1].State)
	w.accounting = nil
	marker(t, slurm.ExitMarker(b.site, job.Id, token, -1), "id=77\nrestart=0\nexit=0\nend=1796047099\nsentence=\n")
	told, _ = look(t, b, knownJob)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, told[-1].State)

	w.untoldCount = 0
	b = newWitnessed(t, w)
	told, _ = look(t, b, knownJob)
	require.True(t, told[-1].Gone)
	require.Equal(t, backend.Absent, b.Find(t.Context(), want)[0].Presence)
}

// A job's folder was there when the job was submitted. Where it is missing, that it has no start marker proves nothing; where
// all are missing, nothing is known at all.
func TestAFolderThatIsMissingIsNoProofThatNothingRan(t *testing.T) {
	t.Parallel()
	b := newWitnessed(t, &witnesses{accountingErr: errNoAccounting})
	b.site.User = myName(t)
	want := []backend.Want{{Token: token, Job: job, Since: ref.SubmitTime}}
	dir := slurm.Dir(b.site, job.Id)
	require.NoError(t, b.makeFolder(t.Context(), job))
	require.NoError(t, os.Remove(dir))
	told, _ := look(t, b, knownJob)
	require.True(t, told[-1].Gone)
	require.True(t, told[-1].Started)
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, told[-1].State)
	require.Contains(t, told[-1].Message, "deleted")
	require.Equal(t, backend.Absent, b.Find(t.Context(), want)[0].Presence, "of what may not have been submitted, there may have been none")

	home := filepath.Dir(dir)
	require.NoError(t, os.Remove(home))
	told, _ = look(t, b, knownJob)
	require.Empty(t, told)
	finding := b.Find(t.Context(), want)[0]
	require.Equal(t, backend.Uncertain, finding.Presence)
	require.Contains(t, finding.Proof, home)
	_, err := b.Outputs(t.Context(), ref, job, -1)
	require.ErrorContains(t, err, home)
	require.ErrorContains(t, b.makeFolder(t.Context(), job), home, "it is not made anew: the jobs would not find it")
	require.NoError(t, os.Mkdir(home, 0o755))
	require.NoError(t, b.makeFolder(t.Context(), job))
}

func TestAccountingThatFailedIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	w := &witnesses{accountingErr: errors.New("Problem talking to the database")}
	o := observer{b: newWitnessed(t, w)}
	missing := []absent{{known: knownJob, position: -1}}
	_, _, err := o.accounting(t.Context(), missing)
	require.ErrorContains(t, err, "database")
	o.accountingFrom = time.Now().Add(time.Hour) // as after a failure that took long
	_, _, err = o.accounting(t.Context(), missing)
	require.ErrorIs(t, err, errResting)
}

func TestElementsOfAnArray(t *testing.T) {
	t.Parallel()
	w := &witnesses{controller: []record{element("PENDING", 2), element("RUNNING", 1)}, accounting: []record{element("FAILED", 0)}}
	told, err := look(t, newWitnessed(t, w), knownTask)
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_SUBMITTED, told[2].State)
	require.Equal(t, dagbridgev1.Job_RUNNING, told[1].State)
	require.Equal(t, dagbridgev1.Job_FAILED, told[0].State, "forgotten by the controller")
	require.Equal(t, dagbridgev1.Job_CANCELLED, told[3].State, "nobody has it, its array is there, and it never started")
	require.False(t, told[3].Gone)

	// as long as accounting does not answer, what the controller does not show is no news
	w = &witnesses{controller: []record{element("PENDING", 2), element("RUNNING", 1), element("COMPLETED", 0)}, accountingErr: errors.New("down")}
	told, err = look(t, newWitnessed(t, w), knownTask)
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, told[0].State)
	require.NotContains(t, told, 3)
}

func TestAListOfElementsThatIsCutShort(t *testing.T) {
	t.Parallel()
	rest := said(func(r *record) { r.words, r.rest, r.node = []string{"PENDING"}, true, "" })
	b := newWitnessed(t, &witnesses{controller: []record{rest, element("RUNNING", 1)}})
	marker(t, slurm.StartMarker(b.site, job.Id, token, 3), "77_3 0\n")
	told, err := look(t, b, knownTask)
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_SUBMITTED, told[0].State)
	require.Equal(t, dagbridgev1.Job_RUNNING, told[1].State)
	require.NotContains(t, told, 3, "it has run before: requeued, or ended and forgotten")

	b = newWitnessed(t, &witnesses{controller: []record{rest}, accounting: []record{element("COMPLETED", 3)}})
	marker(t, slurm.StartMarker(b.site, job.Id, token, 3), "77_3 0\n")
	told, _ = look(t, b, knownTask)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, told[3].State)
}

func TestWhatAJobWaitsForIsTold(t *testing.T) {
	t.Parallel()
	w := &witnesses{controller: []record{said(func(r *record) {
		r.words, r.reason, r.dependency, r.held, r.node = []string{"PENDING"}, reasonNeverSatisfied, "afterok:28(failed)", true, ""
		r.start = ref.SubmitTime.Add(time.Hour) // expected
	})}}
	told, _ := look(t, newWitnessed(t, w), knownJob)
	o := told[-1]
	require.Equal(t, dagbridgev1.Job_SUBMITTED, o.State)
	require.True(t, o.NeverSatisfied)
	require.True(t, o.Held)
	require.True(t, o.DependenciesKnown)
	require.Equal(t, []string{"28"}, o.Dependencies)
	require.Equal(t, "PENDING (DependencyNeverSatisfied)", o.Message)
	require.True(t, o.StartTime.IsZero())
}

func TestASiteThatCancelsWhatCanNeverRun(t *testing.T) {
	t.Parallel()
	w := &witnesses{controller: []record{said(func(r *record) {
		r.words, r.reason, r.node = []string{"CANCELLED"}, reasonDependency, ""
	})}}
	told, _ := look(t, newWitnessed(t, w), knownJob)
	require.Equal(t, dagbridgev1.Job_CANCELLED, told[-1].State)
	require.Equal(t, "DEPENDENCY", told[-1].Reason)
}

func TestAStateThatNoTableKnowsIsNoEnd(t *testing.T) {
	t.Parallel()
	w := &witnesses{controller: []record{said(func(r *record) { r.words = []string{"TELEPORTING"} })}}
	told, _ := look(t, newWitnessed(t, w), knownJob)
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, told[-1].State)
	require.False(t, told[-1].Gone)
	require.Equal(t, "TELEPORTING", told[-1].Message)
}

func TestTheStateBeatsTheExitCode(t *testing.T) {
	t.Parallel()
	zero, three, signal := int32(0), int32(143), int32(15)
	for word, c := range map[string]struct {
		exit, signal *int32
		state        dagbridgev1.Job_State
		reason       string
		want         *int32
	}{
		"OUT_OF_MEMORY": {&zero, nil, dagbridgev1.Job_FAILED, "OUT_OF_MEMORY", nil},
		"TIMEOUT":       {&three, &signal, dagbridgev1.Job_FAILED, "TIMEOUT", &three},
		"COMPLETED":     {&zero, nil, dagbridgev1.Job_SUCCEEDED, "", &zero},
		"CANCELLED":     {&three, &signal, dagbridgev1.Job_CANCELLED, "", nil},
		"NODE_FAIL":     {&zero, nil, dagbridgev1.Job_FAILED, "NODE_FAIL", nil},
	} {
		w := &witnesses{controller: []record{said(func(r *record) { r.words, r.exit, r.signal = []string{word}, c.exit, c.signal })}}
		told, _ := look(t, newWitnessed(t, w), knownJob)
		require.Equal(t, c.state, told[-1].State, word)
		require.Equal(t, c.reason, told[-1].Reason, word)
		require.Equal(t, c.want, told[-1].ExitCode, word)
		require.Equal(t, word == "NODE_FAIL", told[-1].Infrastructure, word)
	}
}

func TestTheWrappersOwnEndsAreTold(t *testing.T) {
	t.Parallel()
	failed := func(code int32) *witnesses {
		return &witnesses{controller: []record{said(func(r *record) { r.words, r.exit = []string{"FAILED"}, &code })}}
	}
	told, _ := look(t, newWitnessed(t, failed(slurm.ExitDuplicate)), knownJob)
	require.Equal(t, reasonDuplicate, told[-1].Reason)

	b := newWitnessed(t, failed(slurm.ExitDuplicate))
	marker(t, slurm.ExitMarker(b.site, job.Id, token, -1), "id=77\nrestart=0\nexit=120\nend=1796047099\nsentence=\n")
	told, _ = look(t, b, knownJob)
	require.Empty(t, told[-1].Reason, "a program may exit so too")

	b = newWitnessed(t, failed(slurm.ExitDuplicate))
	marker(t, slurm.ExitMarker(b.site, job.Id, token, -1), "id=77\nrestart=0\nexit=0\nend=1796047099\nsentence=\n")
	told, _ = look(t, b, knownJob)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, told[-1].State, "it had ended before Slurm forgot that and started it once more")

	b = newWitnessed(t, failed(slurm.ExitDuplicate))
	marker(t, slurm.StartMarker(b.site, job.Id, token, -1), "77 0\n")
	told, _ = look(t, b, knownJob)
	require.True(t, told[-1].Gone && told[-1].Started, "what had started was this very job: %v", told[-1])
	marker(t, slurm.StartMarker(b.site, job.Id, token, -1), "76 0\n")
	told, _ = look(t, b, knownJob)
	require.Equal(t, reasonDuplicate, told[-1].Reason)

	told, _ = look(t, newWitnessed(t, failed(slurm.ExitPremature)), knownJob)
	require.Equal(t, reasonPremature, told[-1].Reason)
	told, _ = look(t, newWitnessed(t, failed(slurm.ExitCancelled)), knownJob)
	require.Equal(t, dagbridgev1.Job_CANCELLED, told[-1].State)

	signal := int32(signalNotLaunched)
	unopened := failed(128 + signal)
	unopened.controller[0].signal = &signal
	for _, w := range []*witnesses{failed(slurm.ExitNoFolder), unopened} {
		b = newWitnessed(t, w)
		told, _ = look(t, b, knownJob)
		require.Equal(t, "LAUNCH_FAILED", told[-1].Reason)
		require.True(t, told[-1].Infrastructure)
		require.Nil(t, told[-1].ExitCode, "it is none of the program's")
		require.Nil(t, told[-1].Signal)
		require.Contains(t, told[-1].Message, slurm.Dir(b.site, job.Id))
		marker(t, slurm.StartMarker(b.site, job.Id, token, -1), "77 0\n")
		told, _ = look(t, b, knownJob)
		require.Empty(t, told[-1].Reason, "a program may end so too")
		require.NotNil(t, told[-1].ExitCode)
	}

	b = newWitnessed(t, failed(0)) // as slurmdb v0.0.38 tells it
	marker(t, slurm.ExitMarker(b.site, job.Id, token, -1), "id=77\nrestart=0\nexit=3\nend=1796047099\nsentence=\n")
	told, _ = look(t, b, knownJob)
	require.EqualValues(t, 3, *told[-1].ExitCode)
}

func TestAStartThatSlurmForgotIsNoEnd(t *testing.T) {
	t.Parallel()
	const start, end = "77 0\n", "id=77\nrestart=0\nexit=1\nsignalled=no\nend=1796047099\nsentence=\n"
	for name, c := range map[string]struct {
		word       string
		took       time.Duration
		start, end string
		want       dagbridgev1.Job_State
	}{
		"the node refused it, for it had killed the first": {"FAILED", 0, start, "", dagbridgev1.Job_STATE_UNSPECIFIED},
		"the node refused it, for the first still ran":     {"CANCELLED", 0, start, "", dagbridgev1.Job_STATE_UNSPECIFIED},
		"the node had killed the first":                    {"CANCELLED", 0, start, strings.Replace(end, "=no", "=yes", 1), dagbridgev1.Job_STATE_UNSPECIFIED},
		"the program failed at once":                       {"FAILED", 0, start, end, dagbridgev1.Job_FAILED},
		"it was killed later":                              {"FAILED", time.Minute, start, "", dagbridgev1.Job_FAILED},
		"it was cancelled later":                           {"CANCELLED", time.Minute, start, "", dagbridgev1.Job_CANCELLED},
		"another native job had started":                   {"FAILED", 0, "76 0\n", "", dagbridgev1.Job_FAILED},
	} {
		one := int32(1)
		b := newWitnessed(t, &witnesses{controller: []record{said(func(r *record) {
			r.words, r.exit, r.start, r.end = []string{c.word}, &one, ref.SubmitTime, ref.SubmitTime.Add(c.took)
		})}})
		for path, text := range map[string]string{
			slurm.StartMarker(b.site, job.Id, token, -1): c.start, slurm.ExitMarker(b.site, job.Id, token, -1): c.end,
		} {
			if text != "" {
				marker(t, path, text)
			}
		}
		told, err := look(t, b, knownJob)
		require.NoError(t, err)
		require.Equal(t, c.want, told[-1].State, name)
		require.Equal(t, c.want == dagbridgev1.Job_STATE_UNSPECIFIED, told[-1].Gone && told[-1].Started, name)
	}

	killed, signal := int32(137), int32(9)
	b := newWitnessed(t, &witnesses{controller: []record{said(func(r *record) {
		r.words, r.exit, r.signal, r.start, r.end = []string{"FAILED"}, &killed, &signal, ref.SubmitTime, ref.SubmitTime
	})}})
	marker(t, slurm.StartMarker(b.site, job.Id, token, -1), start)
	told, err := look(t, b, knownJob)
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_FAILED, told[-1].State, "a signal has ended something that ran")

	term := int32(15)
	for _, c := range []struct {
		reason, killer string
		want           dagbridgev1.Job_State
	}{
		{"None", "", dagbridgev1.Job_STATE_UNSPECIFIED},
		{reasonDependency, "", dagbridgev1.Job_STATE_UNSPECIFIED}, // why it waited, before it started
		{"None", "0", dagbridgev1.Job_STATE_UNSPECIFIED},          // Slurm itself, to sacct and to slurmrestd
		{"None", "root", dagbridgev1.Job_STATE_UNSPECIFIED},
		{"None", "1001", dagbridgev1.Job_CANCELLED},
		{"None", "ann", dagbridgev1.Job_CANCELLED},
	} {
		b := newWitnessed(t, &witnesses{controller: []record{said(func(r *record) {
			r.words, r.signal, r.reason, r.killer = []string{"CANCELLED"}, &term, c.reason, c.killer
			r.start, r.end = ref.SubmitTime, ref.SubmitTime
		})}})
		marker(t, slurm.StartMarker(b.site, job.Id, token, -1), start)
		told, err := look(t, b, knownJob)
		require.NoError(t, err)
		require.Equal(t, c.want, told[-1].State, "%v", c)
		require.Empty(t, told[-1].Reason, "%v", c)
	}

	failed := int32(1)
	b = newWitnessed(t, &witnesses{controller: []record{said(func(r *record) {
		r.words, r.exit, r.start, r.end = []string{"FAILED"}, &failed, ref.SubmitTime, ref.SubmitTime
	})}})
	marker(t, slurm.StartMarker(b.site, job.Id, token, -1), start)
	marker(t, slurm.ExitMarker(b.site, job.Id, token, -1)+".new", "")
	told, err = look(t, b, knownJob)
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_FAILED, told[-1].State, "it had come to its end, and could not write that down")
}

func TestAJobThatItsNodeMayHaveRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		word, node, start string
		exit              int32
		took              time.Duration
		want              bool
	}{
		{"CANCELLED", "n1", "", 0, 0, true},
		{"FAILED", "n1", "", 1, 0, true},
		{"FAILED", "n1", "", 2, 0, false}, // bash says so of a script that it cannot read
		{"CANCELLED", "n1", "", 0, 2 * time.Second, false},
		{"CANCELLED", "", "", 0, 0, false},         // while it waited
		{"CANCELLED", "n1", "76 0\n", 0, 0, false}, // a double of another
	} {
		b := newWitnessed(t, &witnesses{accountingErr: errNoAccounting, controller: []record{said(func(r *record) {
			r.words, r.exit, r.node, r.start, r.end = []string{c.word}, &c.exit, c.node, ref.SubmitTime, ref.SubmitTime.Add(c.took)
		})}})
		if c.start != "" {
			marker(t, slurm.StartMarker(b.site, job.Id, token, -1), c.start)
		}
		told, err := look(t, b, knownJob)
		require.NoError(t, err)
		require.Equal(t, c.want, told[-1].Refused, "%v", c)
		require.Equal(t, c.start != "", told[-1].Reason == reasonDuplicate, "%v", c)
		require.True(t, ended(told[-1].State))
	}
}

// Before a token is followed by another it is marked, and what may still bear it is cancelled. That is no end that anybody wanted.
func TestAJobThatWasCancelledSinceItWasMarkedSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		node, want string
		mark       bool
	}{{"", reasonMarked, true}, {"n1", "", true}, {"n1", "", false}} {
		b := newWitnessed(t, &witnesses{controller: []record{said(func(r *record) {
			r.words, r.node, r.start, r.end, r.killer = []string{"CANCELLED"}, c.node, ref.SubmitTime, ref.SubmitTime.Add(time.Minute), "0"
		})}})
		if c.mark {
			marker(t, slurm.CancelMark(b.site, job.Id, token, -1), "")
		}
		told, err := look(t, b, knownJob)
		require.NoError(t, err)
		require.Equal(t, dagbridgev1.Job_CANCELLED, told[-1].State)
		require.Equal(t, c.want, told[-1].Reason, "%v", c)
	}
}

// Whom slurmctld has cancelled a job for that never started, accounting tells; when it was nobody, nobody has wanted that.
func TestACancelBeforeTheStartIsSomebodys(t *testing.T) {
	t.Parallel()
	cancelled := func(killer string) record {
		return said(func(r *record) {
			r.words, r.node, r.reason, r.killer = []string{"CANCELLED"}, "", "BeginTime", killer
			r.start, r.end = time.Time{}, ref.SubmitTime.Add(time.Minute)
		})
	}
	live := said(func(r *record) { r.words, r.node, r.start = []string{"PENDING"}, "", time.Time{} })
	for name, c := range map[string]struct {
		w       witnesses
		lag     time.Duration
		ordered bool
		want    string
	}{
		"by somebody":                  {w: witnesses{accounting: []record{cancelled("0")}}, want: "CANCELLED"},
		"by nobody":                    {w: witnesses{accounting: []record{cancelled("")}}, want: "gone"},
		"accounting has it later":      {w: witnesses{accounting: []record{live}}, lag: time.Hour, want: "nothing"},
		"accounting never heard of it": {want: "gone"},
		"accounting is away":           {w: witnesses{accountingErr: errors.New("away")}, want: "nothing"},
		"there is no accounting":       {w: witnesses{accountingErr: errNoAccounting}, want: "CANCELLED"},
		"by an order":                  {w: witnesses{accountingErr: errors.New("away")}, ordered: true, want: "CANCELLED"},
	} {
		c.w.controller = []record{cancelled("")}
		b := newWitnessed(t, &c.w)
		b.accountingLag = c.lag
		k := knownJob
		if c.ordered {
			k.Job = proto.CloneOf(k.Job)
			k.Job.CancelRequestTime = timestamppb.Now()
		}
		told, err := look(t, b, k)
		require.NoError(t, err, name)
		got := "nothing"
		if o, ok := told[-1]; ok {
			if got = o.State.String(); o.Gone {
				got = "gone"
			}
		}
		require.Equal(t, c.want, got, name)
	}
}

// Accounting writes off what slurmctld has lost.
func TestWhatAccountingWritesOffWasNotCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*record)
		gone   bool
	}{
		"by nobody, at no time":         {func(*record) {}, true},
		"by somebody":                   {func(r *record) { r.killer = "1001" }, false},
		"at some time":                  {func(r *record) { r.start = r.end }, false},
		"since its dependency is wrong": {func(r *record) { r.reason = reasonDependency }, false},
		"COMPLETED, at no time":         {func(r *record) { r.words, r.reason = []string{"COMPLETED"}, reasonDependency }, true},
		"COMPLETED, on a node":          {func(r *record) { r.words, r.node, r.start = []string{"COMPLETED"}, "n1", r.end }, false},
	} {
		off := said(func(r *record) {
			r.words, r.node, r.reason, r.end = []string{"CANCELLED"}, "", "Priority", ref.SubmitTime.Add(time.Minute)
			r.start = time.Time{}
			c.change(r)
		})
		b := newWitnessed(t, &witnesses{accounting: []record{off}})
		b.accountingLag = 0
		told, err := look(t, b, knownJob)
		require.NoError(t, err)
		require.Equal(t, c.gone, told[-1].Gone, name)
		require.Equal(t, c.gone, told[-1].State == dagbridgev1.Job_STATE_UNSPECIFIED, name)
	}
}

func TestAHoldOfSlurmsOwnAfterALaunchThatFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, description string
		want                bool
	}{
		{"launch failed requeued held", "", true},            // squeue
		{"JobHeldUser", "launch failed requeued held", true}, // slurmrestd
		{"JobHeldUser", "", false},
		{"JobHeldAdmin", "", false},
	} {
		told, err := look(t, newWitnessed(t, &witnesses{controller: []record{said(func(r *record) {
			r.words, r.reason, r.description = []string{"PENDING"}, c.reason, c.description
		})}}), knownJob)
		require.NoError(t, err)
		require.Equal(t, c.want, told[-1].LaunchFailed, "%v", c)
	}
}

func TestASuccessThatSlurmForgotIsNoFailure(t *testing.T) {
	t.Parallel()
	const end = "restart=0\nexit=%d\nsignalled=%s\nend=1796047099\nsentence=\n"
	for _, c := range []struct {
		word, marker string
		want         dagbridgev1.Job_State
	}{
		{"NODE_FAIL", "id=77\n" + fmt.Sprintf(end, 0, "no"), dagbridgev1.Job_SUCCEEDED},
		{"TIMEOUT", "id=77\n" + fmt.Sprintf(end, 0, "no"), dagbridgev1.Job_SUCCEEDED},
		{"PREEMPTED", "id=77\n" + fmt.Sprintf(end, 0, "no"), dagbridgev1.Job_SUCCEEDED},
		// it may have saved its state and stopped
		{"PREEMPTED", "id=77\n" + fmt.Sprintf(end, 0, "yes"), dagbridgev1.Job_FAILED},
		{"NODE_FAIL", "id=77\n" + fmt.Sprintf(end, 1, "no"), dagbridgev1.Job_FAILED},
		{"NODE_FAIL", "id=78\n" + fmt.Sprintf(end, 0, "no"), dagbridgev1.Job_FAILED},
		{"NODE_FAIL", "", dagbridgev1.Job_FAILED},
		{"OUT_OF_MEMORY", "id=77\n" + fmt.Sprintf(end, 0, "no"), dagbridgev1.Job_FAILED},
		// it had ended before the cancel reached it
		{"CANCELLED", "id=77\n" + fmt.Sprintf(end, 0, "no"), dagbridgev1.Job_SUCCEEDED},
		{"CANCELLED", "id=77\n" + fmt.Sprintf(end, 0, "yes"), dagbridgev1.Job_CANCELLED},
		{"CANCELLED", "id=77\n" + fmt.Sprintf(end, 1, "no"), dagbridgev1.Job_CANCELLED},
		{"CANCELLED", "", dagbridgev1.Job_CANCELLED},
	} {
		one := int32(1)
		b := newWitnessed(t, &witnesses{controller: []record{said(func(r *record) { r.words, r.exit = []string{c.word}, &one })}})
		if c.marker != "" {
			marker(t, slurm.ExitMarker(b.site, job.Id, token, -1), c.marker)
		}
		told, _ := look(t, b, knownJob)
		require.Equal(t, c.want, told[-1].State, "%v", c)
		if c.want == dagbridgev1.Job_SUCCEEDED {
			require.Empty(t, told[-1].Reason)
			require.False(t, told[-1].Infrastructure)
			require.Zero(t, *told[-1].ExitCode)
			require.Contains(t, told[-1].Message, c.word)
		}
	}
}

func TestFindAsksAllWhoCouldKnow(t *testing.T) {
	t.Parallel()
	want := []backend.Want{{Token: token, Job: job, Since: ref.SubmitTime.Add(-time.Minute)}}
	older := said(func(r *record) { r.id, r.submit = "76", ref.SubmitTime.Add(-time.Second) })
	for name, c := range map[string]struct {
		w     *witnesses
		mark  string // text of the exit marker
		start bool
		want  backend.Presence
		ids   []string
	}{
		"in the controller, twice":         {&witnesses{controller: []record{said(nil), older}, accountingErr: errors.New("not to be asked")}, "", false, backend.Found, []string{"76", "77"}},
		"in accounting alone":              {&witnesses{accounting: []record{said(nil)}}, "", false, backend.Found, []string{"77"}},
		"nowhere":                          {&witnesses{}, "", false, backend.Absent, nil},
		"accounting does not answer":       {&witnesses{accountingErr: errors.New("down")}, "", false, backend.Uncertain, nil},
		"the controller does not answer":   {&witnesses{controllerErr: errors.New("down")}, "", false, backend.Uncertain, nil},
		"no accounting":                    {&witnesses{accountingErr: errNoAccounting}, "", false, backend.Absent, nil},
		"no accounting, and it did start":  {&witnesses{accountingErr: errNoAccounting}, "", true, backend.Absent, nil},
		"no accounting, and it did end":    {&witnesses{accountingErr: errNoAccounting}, "id=77\nrestart=0\nexit=0\nend=1796047099\nsentence=\n", true, backend.Found, []string{"77"}},
		"another's of the same name":       {&witnesses{controller: []record{said(func(r *record) { r.user = "mallory" })}}, "", false, backend.Absent, nil},
		"long before it was submitted":     {&witnesses{accounting: []record{said(func(r *record) { r.submit = time.Unix(1500000000, 0) })}}, "", false, backend.Absent, nil},
		"what cannot be read is not ours":  {&witnesses{controller: []record{{id: "5", unread: true}}}, "", false, backend.Absent, nil},
		"an array, once for all its parts": {&witnesses{controller: []record{element("RUNNING", 1), element("PENDING", 2, 3)}}, "", false, backend.Found, []string{"77"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWitnessed(t, c.w)
			if c.start {
				marker(t, slurm.StartMarker(b.site, job.Id, token, -1), "77 0\n")
			}
			if c.mark != "" {
				marker(t, slurm.ExitMarker(b.site, job.Id, token, -1), c.mark)
			}
			finding := b.Find(t.Context(), want)[0]
			require.Equal(t, c.want, finding.Presence, finding.Proof)
			require.NotEmpty(t, finding.Proof)
			require.Equal(t, c.want == backend.Absent && c.start, finding.Started)
			var ids []string
			for _, ref := range finding.Refs {
				require.Equal(t, token, ref.Token)
				ids = append(ids, ref.ID)
			}
			require.Equal(t, c.ids, ids)
		})
	}
}

func TestOnlyWhatIsLiveAndOursIsCancelled(t *testing.T) {
	t.Parallel()
	finished := said(func(r *record) { r.words = []string{"COMPLETED"} })
	for name, c := range map[string]struct {
		records []record
		known   backend.Known
		want    []string
	}{
		"running":                         {[]record{said(nil)}, knownJob, []string{"77"}},
		"finished":                        {[]record{finished}, knownJob, nil},
		"unknown":                         {nil, knownJob, nil},
		"another's by now":                {[]record{said(func(r *record) { r.name = "step." + stranger })}, knownJob, nil},
		"the whole array":                 {[]record{element("COMPLETED", 0), element("RUNNING", 1), element("PENDING", 2, 3)}, knownTask, []string{"77"}},
		"some of an array":                {[]record{element("RUNNING", 1), element("PENDING", 2, 3)}, backend.Known{Ref: ref, Job: job, Positions: []int{1, 3}}, []string{"77_1", "77_3"}},
		"an element, the others' ended":   {[]record{element("COMPLETED", 0), element("RUNNING", 1)}, backend.Known{Ref: ref, Job: job, Positions: []int{1}}, []string{"77_1"}},
		"an array of which all has ended": {[]record{element("COMPLETED", 0, 1, 2, 3)}, knownTask, nil},
	} {
		w := &witnesses{controller: c.records}
		require.Equal(t, []error{nil}, newWitnessed(t, w).Cancel(t.Context(), []backend.Known{c.known}), name)
		require.Equal(t, c.want, w.cancelled, name)
	}
}

func TestOnlyWhatWaitsIsReleased(t *testing.T) {
	t.Parallel()
	w := &witnesses{controller: []record{said(func(r *record) { r.words, r.held = []string{"PENDING"}, true })}}
	change := []backend.Change{{Ref: ref, Job: job, Release: true}, {Ref: backend.NativeRef{ID: "78", Token: stranger}, Job: job, Release: true}}
	require.Equal(t, []error{nil, nil}, newWitnessed(t, w).Alter(t.Context(), change))
	require.Equal(t, []string{"77"}, w.released)
}

func TestALinkOutOfTheFolderIsNotFollowed(t *testing.T) {
	t.Parallel()
	b := newWitnessed(t, &witnesses{})
	secretFile := filepath.Join(t.TempDir(), "shadow")
	marker(t, secretFile, "root's own")
	require.NoError(t, os.Symlink(secretFile, slurm.StdoutPath(b.site, job.Id, token, -1)))
	_, _, err := b.Log(t.Context(), ref, job, -1, "stdout", 0)
	require.Error(t, err)
	require.NotErrorIs(t, err, backend.ErrNoFile)

	require.NoError(t, os.Mkdir(slurm.StderrPath(b.site, job.Id, token, -1), 0o755))
	_, _, err = b.Log(t.Context(), ref, job, -1, "stderr", 0)
	require.ErrorContains(t, err, "no plain file")
}

func TestObserveAsksNothingWhileNothingIsKnown(t *testing.T) {
	t.Parallel()
	w := &witnesses{controllerErr: errors.New("must not be asked")}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	newWitnessed(t, w).Observe(ctx, func() []backend.Known {
		if asked++; asked == 3 {
			cancel()
		}
		return nil
	}, func(news backend.News) { t.Error("news of nothing", news) })
	require.Equal(t, 3, asked)
}

func TestACancelLeavesItsMarkWhateverSlurmSays(t *testing.T) {
	t.Parallel()
	w := &witnesses{controllerErr: errors.New("down")}
	b := newWitnessed(t, w)
	require.Error(t, b.Cancel(t.Context(), []backend.Known{knownTask})[0])
	for position := range 4 {
		require.FileExists(t, slurm.CancelMark(b.site, job.Id, token, position))
	}
	b = newWitnessed(t, &witnesses{})
	double := knownJob
	double.Double = true
	require.NoError(t, b.Cancel(t.Context(), []backend.Known{double})[0])
	require.NoFileExists(t, slurm.CancelMark(b.site, job.Id, token, -1))
	require.NoError(t, b.Cancel(t.Context(), []backend.Known{{Job: job, Ref: backend.NativeRef{Token: token}}})[0], "no native job is known")
	require.FileExists(t, slurm.CancelMark(b.site, job.Id, token, -1))
}

func TestWhatWasCancelledWhileItWaitedIsAsGoodAsAbsent(t *testing.T) {
	t.Parallel()
	gone := said(func(r *record) { r.words, r.node = []string{"CANCELLED"}, "" })
	want := []backend.Want{{Token: token, Job: job, Since: ref.SubmitTime.Add(-time.Minute)}}
	b := newWitnessed(t, &witnesses{controller: []record{gone}, accounting: []record{gone}})
	require.Equal(t, backend.Absent, b.Find(t.Context(), want)[0].Presence)
	late := said(func(r *record) { r.id = "78" })
	found := newWitnessed(t, &witnesses{controller: []record{gone, late}}).Find(t.Context(), want)
	require.Len(t, found[0].Refs, 1)
	require.Equal(t, "78", found[0].Refs[0].ID)
}

func TestFindTellsWhichOfTwoIsHeld(t *testing.T) {
	t.Parallel()
	heldOne := said(func(r *record) { r.words, r.reason = []string{"PENDING"}, "JobHeldUser" })
	late := said(func(r *record) { r.id, r.submit = "78", ref.SubmitTime.Add(time.Second) })
	b := newWitnessed(t, &witnesses{controller: []record{heldOne, late}})
	found := b.Find(t.Context(), []backend.Want{{Token: token, Job: job, Since: ref.SubmitTime.Add(-time.Minute)}})
	require.Len(t, found[0].Refs, 2)
	require.Equal(t, []string{"77"}, found[0].Held)
}

// A start that slurmctld forgot, and repeats in vain, looks the same, but for the mark.
func TestAJobThatIsCancelledAsSoonAsItRunsIsCancelled(t *testing.T) {
	t.Parallel()
	b := newWitnessed(t, &witnesses{controller: []record{said(func(r *record) { r.words, r.end = []string{"CANCELLED"}, r.start })}})
	marker(t, slurm.StartMarker(b.site, job.Id, token, -1), "77 0\n")
	told, err := look(t, b, knownJob)
	require.NoError(t, err)
	require.True(t, told[-1].Gone)
	marker(t, slurm.CancelMark(b.site, job.Id, token, -1), "")
	told, err = look(t, b, knownJob)
	require.NoError(t, err)
	require.Equal(t, dagbridgev1.Job_CANCELLED, told[-1].State)
	require.False(t, told[-1].Gone)
}

// refusing is a way that takes no order.
type refusing struct {
	*witnesses
	sentence string
}

func (r refusing) release(_ context.Context, _ string, ids []string) []error {
	return everyError(make([]error, len(ids)), errors.New(r.sentence))
}

func TestAChangeThatSlurmMayNeverMakeIsStuck(t *testing.T) {
	t.Parallel()
	for sentence, stuck := range map[string]bool{
		"Job update not available right now, the DB index is being set, try again in a bit for job 77": true,
		"slurm_suspend error: Unexpected message received":                                             true,
		"Access/permission denied": false,
	} {
		w := &witnesses{controller: []record{said(func(r *record) { r.words, r.held = []string{"PENDING"}, true })}}
		b := newWitnessed(t, w)
		b.orders = refusing{w, sentence}
		errs := b.Alter(t.Context(), []backend.Change{{Ref: ref, Job: job, Release: true}})
		require.ErrorContains(t, errs[0], sentence)
		require.Equal(t, stuck, errors.Is(errs[0], backend.ErrStuck))
	}
}
