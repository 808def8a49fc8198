package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// Submission of a task as the engine would make it: a fresh job, its first attempt. What the task's key leaves out is filled in.
func Submission(t testing.TB, task *dagbridgev1.Task) translators.Submission {
	t.Helper()
	task = proto.CloneOf(task)
	if task.Key == nil {
		task.Key = &dagbridgev1.TaskKey{}
	}
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&task.Key.Deployment, "default")
	fill(&task.Key.Orchestrator, "backendtest")
	fill(&task.Key.Workflow, "suite")
	fill(&task.Key.Run, "manual__2026-01-01T00:00:00+00:00")
	fill(&task.Key.Task, "step")
	fill(&task.TriggerRule, "all_success")
	task.TryNumber, task.MaxTries, task.AtMostOnce = max(task.TryNumber, 1), max(task.MaxTries, 1), proto.Bool(true)
	if task.Launch == dagbridgev1.Task_LAUNCH_UNSPECIFIED {
		task.Launch = dagbridgev1.Task_ONCE
	}
	if task.Resources == nil {
		task.Resources = &dagbridgev1.Resources{}
	}
	task.Resources.Nodes, task.Resources.TasksPerNode = max(task.Resources.Nodes, 1), max(task.Resources.TasksPerNode, 1)
	job := &dagbridgev1.Job{Id: newID(t), Key: task.Key, TryNumber: task.TryNumber, Owner: "backendtest", Cluster: task.Cluster}
	return translators.Submission{Token: job.Id + ".1", Job: job, Task: task}
}

func newID(t testing.TB) string {
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return id.String()
}

// sh is a task that runs lines of sh; $0 is a folder of its own, seen by the test too.
func (s *suite) sh(t *testing.T, lines string) (task *dagbridgev1.Task, dir string) {
	dir = s.dir(t)
	return command("sh", "-c", lines, dir), dir
}

func command(argv ...string) *dagbridgev1.Task {
	return &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: argv}}
}

func script(text string) *dagbridgev1.Task {
	return &dagbridgev1.Task{Script: &dagbridgev1.Script{Text: text}}
}

// dir makes a folder that jobs may write to, whoever they run as.
func (s *suite) dir(t *testing.T) string {
	dir, err := os.MkdirTemp(s.Dir, "test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777)) // MkdirTemp makes it the tests' alone
	return dir
}

// attempt is a native job that a test has submitted.
type attempt struct {
	t     *testing.T
	suite *suite
	translators.Submission
	ref backend.NativeRef
}

func (s *suite) submission(t *testing.T, task *dagbridgev1.Task) translators.Submission {
	task = proto.CloneOf(task)
	if task.Resources == nil && s.Resources != nil {
		task.Resources = proto.CloneOf(s.Resources)
	}
	return Submission(t, task)
}

// run submits a task. It is cancelled when the test ends, should it still be there.
func (s *suite) run(t *testing.T, task *dagbridgev1.Task) *attempt {
	t.Helper()
	return s.submit(t, s.submission(t, task))
}

// hold submits a task held.
func (s *suite) hold(t *testing.T, task *dagbridgev1.Task) *attempt {
	t.Helper()
	sub := s.submission(t, task)
	sub.Hold = true
	return s.submit(t, sub)
}

func (s *suite) submit(t *testing.T, sub translators.Submission) *attempt {
	t.Helper()
	_, faults := s.Backend.Render(sub)
	require.NoError(t, faults.OrNil())
	results := s.Backend.Submit(s.context(t), []translators.Submission{sub})
	require.Len(t, results, 1)
	return s.submitted(t, sub, results[0])
}

func (s *suite) submitted(t *testing.T, sub translators.Submission, result backend.SubmitResult) *attempt {
	t.Helper()
	require.Equal(t, backend.Submitted, result.Outcome, result.Message)
	require.Equal(t, sub.Token, result.Ref.Token)
	require.NotEmpty(t, result.Ref.ID)
	require.Regexp(t, "^[0-9a-f]{64}$", result.Digest)
	a := &attempt{t: t, suite: s, Submission: sub, ref: result.Ref}
	s.watcher.Add(a.known())
	t.Cleanup(func() {
		s.watcher.Remove(a.ref)
		if t.Failed() || len(sub.Instances) > 0 || sub.Hold {
			ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
			defer cancel()
			_ = s.Backend.Cancel(ctx, []backend.Known{a.known()})
		}
	})
	return a
}

func (a *attempt) known() backend.Known {
	k := backend.Known{Ref: a.ref, Job: a.Job}
	for _, instance := range a.Instances {
		k.Positions = append(k.Positions, instance.Position)
	}
	return k
}

// await waits for an observation of a single task.
func (a *attempt) await(what string, wanted func(backend.Observation) bool) backend.Observation {
	a.t.Helper()
	return a.awaitAt(-1, what, wanted)
}

func (a *attempt) awaitAt(position int, what string, wanted func(backend.Observation) bool) backend.Observation {
	a.t.Helper()
	return a.suite.watcher.Await(a.t, a.ref, position, a.suite.Patience, what, wanted)
}

// running waits until the scheduler says so.
func (a *attempt) running() backend.Observation {
	a.t.Helper()
	return a.await("RUNNING", func(o backend.Observation) bool { return o.State == dagbridgev1.Job_RUNNING })
}

// end waits for the end, which must be the given one.
func (a *attempt) end(state dagbridgev1.Job_State) backend.Observation {
	a.t.Helper()
	return a.endAt(-1, state)
}

func (a *attempt) endAt(position int, state dagbridgev1.Job_State) backend.Observation {
	a.t.Helper()
	o := a.awaitAt(position, "at its end", ended)
	require.Equal(a.t, state, o.State, describe(o, true))
	require.False(a.t, o.EndTime.IsZero(), "an end has a time")
	return o
}

// ended: at its end, or gone.
func ended(o backend.Observation) bool {
	switch o.State {
	case dagbridgev1.Job_SUCCEEDED, dagbridgev1.Job_FAILED, dagbridgev1.Job_CANCELLED, dagbridgev1.Job_LOST:
		return true
	default:
		return o.Gone
	}
}

func (a *attempt) cancel() {
	a.t.Helper()
	require.Equal(a.t, []error{nil}, a.suite.Backend.Cancel(a.suite.context(a.t), []backend.Known{a.known()}))
}

func (a *attempt) alter(change backend.Change) {
	a.t.Helper()
	change.Ref, change.Job = a.ref, a.Job
	require.Equal(a.t, []error{nil}, a.suite.Backend.Alter(a.suite.context(a.t), []backend.Change{change}))
}

func (a *attempt) find() backend.Finding {
	a.t.Helper()
	return a.suite.find(a.t, a.Submission)
}

func (s *suite) find(t *testing.T, sub translators.Submission) backend.Finding {
	t.Helper()
	want := backend.Want{Token: sub.Token, Job: sub.Job, Since: time.Now().Add(-s.Patience)}
	findings := s.Backend.Find(s.context(t), []backend.Want{want})
	require.Len(t, findings, 1)
	return findings[0]
}

// log reads a stream from an offset to its present end.
func (a *attempt) log(position int, stream string, offset int64) (string, error) {
	r, size, err := a.suite.Backend.Log(a.suite.context(a.t), a.ref, a.Job, position, stream, offset)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	if err == nil && int64(len(text))+offset < size {
		return "", fmt.Errorf("%d bytes read from offset %d of a file of %d", len(text), offset, size)
	}
	return string(text), err
}

// stdout of a job that has ended. A file system may show it a moment later.
func (a *attempt) stdout(position int) string {
	a.t.Helper()
	var text string
	a.eventually("standard output is there", func() error {
		var err error
		text, err = a.log(position, "stdout", 0)
		return err
	})
	return text
}

// eventually waits until a check passes.
func (a *attempt) eventually(what string, check func() error) {
	a.t.Helper()
	eventually(a.t, a.suite.Patience, what, check)
}

func eventually(t *testing.T, patience time.Duration, what string, check func() error) {
	t.Helper()
	var err error
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if err = check(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("waited %v until %s: %v", patience, what, err)
}

var errNotYet = errors.New("not yet")

// exists is a check that a file is there.
func exists(elem ...string) func() error {
	return func() error {
		_, err := os.Stat(filepath.Join(elem...))
		return err
	}
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	return string(text)
}

func touch(t *testing.T, elem ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(elem...), nil, 0o644))
}
