package faults

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// aftermath is what was seen beside the rule.
type aftermath struct {
	states map[string]int
	// again: attempts that were not the first. reused: strangers' jobs with an id that one of ours bore.
	again, reused int
	// late: native jobs of requests that slurmrestd brought to slurmctld when nobody looked for them any more. They are held,
	// and can run nothing.
	late int
	// requeued: programs that Slurm killed, and started again by itself.
	requeued int
}

// verdict holds the jobs of a campaign to what must hold when slurmctld forgets, too: of a job's attempts at most one ran a
// program, as the native job on record, and a program that came to its end has not run again; a job that was not cancelled
// has succeeded, and its program came to its end, or Slurm, having forgotten its start, has killed it: then it is LOST, or
// FAILED by the signal; or it comes after one that is. Whatever was cancelled may have ended in its own way before; nothing is
// left in the queue, and no stranger's job was touched.
func (x *campaign) verdict(t *testing.T, jobs []*dagbridgev1.Job) aftermath {
	t.Helper()
	sum := aftermath{states: map[string]int{}}
	ran, done := x.byWhat(t, x.ledger), x.byWhat(t, x.done)
	tokens, natives := tokens(jobs), map[string]bool{}
	lost := map[string]bool{} // runs
	for _, job := range jobs {
		if job.GetState() == dagbridgev1.Job_LOST || job.GetState() == dagbridgev1.Job_FAILED {
			lost[job.GetKey().GetRun()] = true
		}
	}
	programs, tasks := 0, 0
	for _, job := range jobs {
		for _, at := range job.GetAttempts() {
			natives[nativeID(at)] = true
		}
		if len(job.GetCounts()) > 0 {
			continue // its instances are told one by one
		}
		tasks++
		sum.again += len(job.GetAttempts()) - 1
		sum.states[job.GetState().String()]++
		started, ended := false, false
		for i, what := range runs(job) {
			if len(ran[what]) == 0 {
				continue
			}
			if started {
				t.Errorf("programs ran in two attempts: %v\n%s", job, x.story(t, job))
			}
			started = true
			programs++
			sum.requeued += len(ran[what]) - 1
			ended = x.ranOnce(t, ran[what], done[what], nativeID(job.GetAttempts()[i]), job)
		}
		cancelled := x.cancelled[job.GetKey().GetRun()]
		switch job.GetState() {
		case dagbridgev1.Job_SUCCEEDED:
			if !ended {
				t.Errorf("its program has not come to its end: %v\n%s", job, x.story(t, job))
			}
		case dagbridgev1.Job_LOST, dagbridgev1.Job_FAILED:
			if !x.killed(t, job) {
				t.Errorf("nobody has killed it: %v\n%s", job, x.story(t, job))
			}
		case dagbridgev1.Job_UPSTREAM_FAILED:
			if started || !cancelled && !lost[job.GetKey().GetRun()] {
				t.Errorf("no upstream of it has failed: %v", job)
			}
		default:
			if job.GetState() != dagbridgev1.Job_CANCELLED || !cancelled {
				t.Errorf("nobody has cancelled it: %v\n%s", job, x.story(t, job))
			}
		}
	}
	require.Equal(t, x.tasks, tasks, "what was answered is there, once")
	require.Len(t, ran, programs, "something ran that no job tells of")
	sum.late = clearAway(t, x.c, tokens)
	left(t, x.c, tokens)
	sum.reused = x.strangers.verdict(t, x.c, natives)
	return sum
}

// ranOnce holds the runs of one attempt to having been the native job's on record, and one: only a program that was killed, of
// a task that Slurm may requeue, has run again, after Slurm's own restart. It says whether the last came to its end.
func (x *campaign) ranOnce(t *testing.T, ran, done []entry, native string, job *dagbridgev1.Job) (ended bool) {
	t.Helper()
	for i, e := range ran {
		again := i > 0 && !(x.mayRequeue[job.GetKey().GetRun()+"/"+job.GetKey().GetTask()] && ran[i-1].restarts < e.restarts)
		if e.native != native || again {
			t.Errorf("it ran as %v, native job %s is on record: %v\n%s", ran, native, job, x.story(t, job))
		}
	}
	if len(done) > 1 || len(done) == 1 && done[0] != ran[len(ran)-1] {
		t.Errorf("it ran as %v, having come to its end as %v: %v\n%s", ran, done, job, x.story(t, job))
	}
	return len(done) == 1
}

// byWhat are the entries of a ledger by what ran.
func (x *campaign) byWhat(t *testing.T, l ledger) map[string][]entry {
	t.Helper()
	all := map[string][]entry{}
	for _, e := range l.entries(t) {
		all[e.what] = append(all[e.what], e)
	}
	return all
}

// killed says whether a job's last attempt has left a start marker, and no exit marker, or one that tells of a signal.
func (x *campaign) killed(t *testing.T, job *dagbridgev1.Job) bool {
	t.Helper()
	base := strings.TrimSuffix(job.GetLogs().GetStdout(), ".out")
	_, err := os.Stat(base + ".start")
	text, noExit := os.ReadFile(base + ".exit")
	return err == nil && (noExit != nil || strings.Contains(string(text), "signalled=yes\n"))
}

// nativeID is that of an attempt, of an array the base id.
func nativeID(at *dagbridgev1.Attempt) string {
	id, _, _ := strings.Cut(at.GetNativeId(), "_")
	return id
}

// story is what Slurm and the job's folder tell of a job's last attempt.
func (x *campaign) story(t *testing.T, job *dagbridgev1.Job) string {
	t.Helper()
	story := ""
	if job.GetNativeId() != "" {
		story = x.c.Run(t, "sacct", "-X", "-D", "-P", "-j", job.GetNativeId(), "-o", "JobID,State,ExitCode,Submit,Start,End,NodeList")
	}
	base := strings.TrimSuffix(job.GetLogs().GetStdout(), ".out")
	for _, extension := range []string{".start", ".exit", ".err"} {
		text, err := os.ReadFile(base + extension)
		story += fmt.Sprintf("\n%s: %s %v", extension, text, err)
	}
	return story
}
