package slurmtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/translators"
)

// patience of these tests with anything: slurmctld forgets ended jobs once a minute only.
const patience = 2 * time.Minute

// bench is a cluster under faults, and a backend that looks at it.
type bench struct {
	*slurmtest.Cluster
	backend *slurm.Backend
	options slurm.Options
	watcher *backendtest.Watcher
}

func newBench(t *testing.T, c *slurmtest.Cluster, w way, change func(*slurm.Options)) *bench {
	t.Helper()
	o := w.options(t, c)
	if change != nil {
		change(&o)
	}
	b := newBackend(t, o)
	bench := &bench{Cluster: c, backend: b, options: o, watcher: backendtest.Watch(t, b)}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return bench
}

// task is a small program.
func task(argv ...string) *dagbridgev1.Task {
	return &dagbridgev1.Task{
		Command: &dagbridgev1.Command{Argv: argv}, Resources: &dagbridgev1.Resources{Cpu: "1", Memory: "50Mi"},
	}
}

func (b *bench) try(t *testing.T, sub translators.Submission) backend.SubmitResult {
	t.Helper()
	results := b.backend.Submit(t.Context(), []translators.Submission{sub})
	require.Len(t, results, 1)
	return results[0]
}

// submit submits and watches.
func (b *bench) submit(t *testing.T, sub translators.Submission) backend.Known {
	t.Helper()
	result := b.try(t, sub)
	require.Equal(t, backend.Submitted, result.Outcome, result.Message)
	known := backend.Known{Ref: result.Ref, Job: sub.Job}
	for _, instance := range sub.Instances {
		known.Positions = append(known.Positions, instance.Position)
	}
	b.watcher.Add(known)
	return known
}

func (b *bench) await(t *testing.T, known backend.Known, what string, wanted func(backend.Observation) bool) backend.Observation {
	t.Helper()
	return b.watcher.Await(t, known.Ref, -1, patience, what, wanted)
}

func is(state dagbridgev1.Job_State) func(backend.Observation) bool {
	return func(o backend.Observation) bool { return o.State == state }
}

func (b *bench) find(t *testing.T, sub translators.Submission) backend.Finding {
	t.Helper()
	return b.backend.Find(t.Context(), []backend.Want{{Token: sub.Token, Job: sub.Job, Since: time.Now().Add(-time.Hour)}})[0]
}

func held(sub translators.Submission) translators.Submission {
	sub.Hold = true
	return sub
}

// forgotten waits until slurmctld has no more of an ended job.
func (b *bench) forgotten(t *testing.T, known backend.Known) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := exec.Command(filepath.Join(b.Bin(), "squeue"), "-h", "-a", "-t", "all", "-j", known.Ref.ID).CombinedOutput()
		return err != nil && strings.Contains(string(text), "Invalid job id") || strings.TrimSpace(string(text)) == ""
	}, patience, 500*time.Millisecond)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, release := range releases() {
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{Release: release, Set: []string{"MinJobAge=2", "MaxJobCount=40"}})
			for _, name := range apart {
				w := ways[name]
				t.Run(name, func(t *testing.T) {
					t.Run("a job that the controller has forgotten is told by accounting", func(t *testing.T) { forgottenButAccounted(t, c, w) })
					t.Run("a controller that forgets a job gives its id to another", func(t *testing.T) { amnesia(t, c, w) })
					t.Run("accounting that is down proves nothing", func(t *testing.T) { accountingDown(t, c, w) })
					t.Run("a limit on how many is for now, one on how large is not", func(t *testing.T) { limits(t, c, w) })
				})
			}
			t.Run("a queue that is full is for now", func(t *testing.T) { queueFull(t, c) })
			t.Run("a slurmrestd that is down has not been sent anything", func(t *testing.T) { restDown(t, c) })
			t.Run("a token that expires ends nothing", func(t *testing.T) { tokenExpires(t, c) })
		})
	}
}

func forgottenButAccounted(t *testing.T, c *slurmtest.Cluster, w way) {
	b := newBench(t, c, w, nil)
	sub := backendtest.Submission(t, task("sh", "-c", "exit 3"))
	results := b.backend.Submit(t.Context(), []translators.Submission{sub})
	known := backend.Known{Ref: results[0].Ref, Job: sub.Job}
	b.forgotten(t, known)
	b.watcher.Add(known)
	// until accounting has heard of the end it is the exit marker that tells
	o := b.await(t, known, "FAILED by accounting", func(o backend.Observation) bool { return o.State == dagbridgev1.Job_FAILED && !o.Gone })
	require.EqualValues(t, 3, *o.ExitCode)
	require.False(t, o.StartTime.IsZero())
	require.False(t, o.EndTime.Before(o.StartTime), "%v to %v", o.StartTime, o.EndTime)

	finding := b.find(t, sub)
	require.Equal(t, backend.Found, finding.Presence, finding.Proof)
	require.Equal(t, known.Ref.ID, finding.Refs[0].ID)
	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{known}))
}

func amnesia(t *testing.T, c *slurmtest.Cluster, w way) {
	b := newBench(t, c, w, func(o *slurm.Options) { o.AccountingLag = 2 * time.Second })
	var lost, other backend.Known
	// slurmctld saves its state every few seconds; a job that it has saved in time is not lost
	require.Eventually(t, func() bool {
		lost = b.submit(t, held(backendtest.Submission(t, task("true"))))
		b.Daemon(t, "kill", "slurmctld")
		b.Daemon(t, "start", "slurmctld")
		b.AwaitController(t)
		other = b.submit(t, held(backendtest.Submission(t, task("true"))))
		if lost.Ref.ID == other.Ref.ID {
			return true
		}
		require.Equal(t, []error{nil, nil}, b.backend.Cancel(t.Context(), []backend.Known{lost, other}))
		return false
	}, patience, time.Millisecond, "slurmctld forgets a job and hands out its id again")

	o := b.await(t, lost, "gone", func(o backend.Observation) bool { return o.Gone })
	require.False(t, o.Started)
	require.Equal(t, dagbridgev1.Job_STATE_UNSPECIFIED, o.State)
	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{lost}))
	require.Equal(t, []error{nil}, b.backend.Alter(t.Context(), []backend.Change{{Ref: lost.Ref, Job: lost.Job, Release: true}}))
	b.await(t, other, "held still", func(o backend.Observation) bool { return o.Held })

	require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{other}))
	b.await(t, other, "CANCELLED", is(dagbridgev1.Job_CANCELLED))
}

func accountingDown(t *testing.T, c *slurmtest.Cluster, w way) {
	b := newBench(t, c, w, nil)
	b.Daemon(t, "stop", "slurmdbd")
	known := b.submit(t, backendtest.Submission(t, task("true")))
	b.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	never := backendtest.Submission(t, task("true"))
	finding := b.find(t, never)
	require.Equal(t, backend.Uncertain, finding.Presence, finding.Proof)

	b.Daemon(t, "start", "slurmdbd")
	require.Eventually(t, func() bool { return b.find(t, never).Presence == backend.Absent }, patience, 200*time.Millisecond)
}

func limits(t *testing.T, c *slurmtest.Cluster, w way) {
	b := newBench(t, c, w, nil)
	user := slurmtest.User
	if !w.rest {
		user = "root"
	}
	set := func(limit string) { c.Run(t, "sacctmgr", "-i", "modify", "user", user, "set", limit) }
	t.Cleanup(func() { set("MaxSubmitJobs=-1"); set("MaxWall=-1") })
	set("MaxSubmitJobs=0")
	// slurmctld hears of the limit a moment later
	require.Eventually(t, func() bool {
		sub := held(backendtest.Submission(t, task("true")))
		result := b.try(t, sub)
		if result.Outcome == backend.Submitted {
			require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{{Ref: result.Ref, Job: sub.Job}}))
			return false
		}
		require.Equal(t, backend.Busy, result.Outcome, result.Message)
		require.Contains(t, result.Message, "limit")
		return true
	}, patience, 200*time.Millisecond)

	set("MaxSubmitJobs=-1")
	for field, change := range map[string]func(*dagbridgev1.Task){
		"partition": func(t *dagbridgev1.Task) { t.Slurm = &dagbridgev1.SlurmOptions{Partition: "nowhere"} },
		"account":   func(t *dagbridgev1.Task) { t.Slurm = &dagbridgev1.SlurmOptions{Account: "nobody"} },
		"qos":       func(t *dagbridgev1.Task) { t.Slurm = &dagbridgev1.SlurmOptions{Qos: "none"} },
		"memory":    func(t *dagbridgev1.Task) { t.Resources.Memory = "100Ti" },
	} {
		refused := task("true")
		change(refused)
		require.Eventually(t, func() bool { // slurmctld hears of the limit's end a moment later
			result := b.try(t, backendtest.Submission(t, refused))
			require.Contains(t, []backend.Outcome{backend.Refused, backend.Busy}, result.Outcome, "%s: %s", field, result.Message)
			require.NotEmpty(t, result.Message)
			return result.Outcome == backend.Refused
		}, patience, 200*time.Millisecond, field)
	}
}

func queueFull(t *testing.T, c *slurmtest.Cluster) {
	b := newBench(t, c, ways["REST"], nil)
	submissions := make([]translators.Submission, 60)
	for i := range submissions {
		submissions[i] = held(backendtest.Submission(t, task("true")))
	}
	outcomes := map[backend.Outcome]int{}
	var in []backend.Known
	for i, result := range b.backend.Submit(t.Context(), submissions) {
		outcomes[result.Outcome]++
		if result.Outcome == backend.Submitted {
			in = append(in, backend.Known{Ref: result.Ref, Job: submissions[i].Job})
		}
	}
	require.Positive(t, outcomes[backend.Submitted])
	require.Positive(t, outcomes[backend.Busy])
	require.Len(t, outcomes, 2, fmt.Sprint(outcomes))
	for _, err := range b.backend.Cancel(t.Context(), in) {
		require.NoError(t, err)
	}
	for _, known := range in {
		b.forgotten(t, known) // ended jobs count, too
	}
}

func restDown(t *testing.T, c *slurmtest.Cluster) {
	b := newBench(t, c, ways["REST"], nil)
	known := b.submit(t, backendtest.Submission(t, task("sleep", "5")))
	b.await(t, known, "RUNNING", is(dagbridgev1.Job_RUNNING))
	b.Daemon(t, "kill", "slurmrestd")
	sub := backendtest.Submission(t, task("true"))
	// Of a connection that was kept from before nobody knows whether it still carried the request; each is tried once.
	require.Eventually(t, func() bool {
		outcome := b.try(t, sub).Outcome
		require.Contains(t, []backend.Outcome{backend.NotSent, backend.Unknown}, outcome)
		return outcome == backend.NotSent
	}, patience, 10*time.Millisecond)
	require.Equal(t, backend.Uncertain, b.find(t, sub).Presence)
	require.Error(t, b.backend.Cancel(t.Context(), []backend.Known{known})[0])
	b.Daemon(t, "start", "slurmrestd")
	b.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	require.Eventually(t, func() bool { return b.find(t, sub).Presence == backend.Absent }, patience, 200*time.Millisecond)
}

func tokenExpires(t *testing.T, c *slurmtest.Cluster) {
	file := filepath.Join(t.TempDir(), "jwt")
	renew := func(seconds string) {
		require.NoError(t, os.WriteFile(file, []byte(c.Token(t, slurmtest.User, seconds)), 0o600))
	}
	renew("3")
	b := newBench(t, c, ways["REST"], func(o *slurm.Options) { o.REST.TokenFile = file })
	known := b.submit(t, held(backendtest.Submission(t, task("true"))))
	var refused translators.Submission
	require.Eventually(t, func() bool {
		refused = held(backendtest.Submission(t, task("true")))
		result := b.try(t, refused)
		if result.Outcome == backend.Submitted {
			_ = b.backend.Cancel(t.Context(), []backend.Known{{Ref: result.Ref, Job: refused.Job}})
			return false
		}
		require.Equal(t, backend.NotSent, result.Outcome, result.Message)
		require.Contains(t, result.Message, file)
		token, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, result.Message, string(token))
		return true
	}, patience, 200*time.Millisecond)
	other := newBackend(t, b.options)
	for _, news := range observe(t, other, []backend.Known{known}, 2) {
		require.ErrorContains(t, news.Err, file)
		require.Empty(t, news.Observations, "of a job that cannot be asked for nothing is known")
	}
	require.NoError(t, other.Close())
	renew("3600")
	require.Equal(t, backend.Absent, b.find(t, refused).Presence)
	again := b.submit(t, refused)
	for _, k := range []backend.Known{known, again} {
		b.await(t, k, "held", func(o backend.Observation) bool { return o.Held })
		require.Equal(t, []error{nil}, b.backend.Cancel(t.Context(), []backend.Known{k}))
	}
}

func TestWithoutAccountingTheMarkersTell(t *testing.T) {
	t.Parallel()
	for _, release := range releases() {
		t.Run(string(release), func(t *testing.T) {
			t.Parallel()
			c := slurmtest.Start(t, slurmtest.Options{Release: release, NoAccounting: true, Set: []string{"MinJobAge=2"}})
			for _, name := range apart {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					markersTell(t, newBench(t, c, ways[name], nil))
				})
			}
		})
	}
}

func markersTell(t *testing.T, b *bench) {
	ok, ko := backendtest.Submission(t, task("true")), backendtest.Submission(t, task("sh", "-c", "exit 3"))
	killed := backendtest.Submission(t, task("sh", "-c", `kill -KILL $PPID`))
	submissions := []translators.Submission{ok, ko, killed}
	results := b.backend.Submit(t.Context(), submissions)
	var knowns []backend.Known
	for i, result := range results {
		require.Equal(t, backend.Submitted, result.Outcome, result.Message)
		knowns = append(knowns, backend.Known{Ref: result.Ref, Job: submissions[i].Job})
	}
	for _, known := range knowns {
		b.forgotten(t, known)
		b.watcher.Add(known)
	}
	o := b.await(t, knowns[0], "told by its marker", func(o backend.Observation) bool { return o.Gone })
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, o.State)
	o = b.await(t, knowns[1], "told by its marker", func(o backend.Observation) bool { return o.Gone })
	require.Equal(t, dagbridgev1.Job_FAILED, o.State)
	require.EqualValues(t, 3, *o.ExitCode)

	require.Equal(t, backend.Found, b.find(t, ok).Presence, "its exit marker is there")
	finding := b.find(t, backendtest.Submission(t, task("true")))
	require.Equal(t, backend.Absent, finding.Presence, finding.Proof)
	require.Contains(t, finding.Proof, "no accounting")
}
