package faults

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Labels by which a task says what it is designed to become.
const (
	// labelEnds: the state in which it ends.
	labelEnds = "ends"
	// labelRuns: how many programs run for it, or for each of its instances.
	labelRuns = "runs"
)

// patience with anything: slurmctld forgets ended jobs once a minute only, and calls to one that is down hang for half a minute.
const patience = 3 * time.Minute

// tally is what was seen beside the rule.
type tally struct {
	// programs that ran, attempts that were made, native jobs that ran nothing, requeues.
	programs, attempts, doubles, requeued int
}

// verdict holds jobs that have ended to what they are designed to become: each is in its state; as many programs ran for it
// as should have, each attempt's at most once, and one native job of that attempt ran it; whatever else was submitted under
// its tokens ran nothing; nothing is left in the queue.
func verdict(t *testing.T, c *slurmtest.Cluster, l ledger, jobs []*dagbridgev1.Job) tally {
	t.Helper()
	var sum tally
	ran := map[string][]string{} // native ids by what they ran
	for _, e := range l.entries(t) {
		ran[e.what] = append(ran[e.what], e.native)
	}
	tokens := tokens(jobs)
	var wanted []string
	for _, job := range jobs {
		if len(job.GetCounts()) > 0 {
			continue // its instances are told one by one
		}
		require.Equal(t, job.GetLabels()[labelEnds], job.GetState().String(), "%v", job)
		var programs int
		for _, what := range runs(job) {
			require.LessOrEqual(t, len(ran[what]), 1, "%s ran more than once, as %v: %v", what, ran[what], job)
			if len(ran[what]) > 0 {
				programs++
				wanted = append(wanted, what)
			}
			sum.attempts++
		}
		require.Equal(t, job.GetLabels()[labelRuns], strconv.Itoa(programs), "programs that ran: %v", job)
		sum.programs += programs
	}
	require.Len(t, ran, sum.programs, "something ran that no job tells of")
	left(t, c, tokens)
	natives := accounted(t, c, tokens, wanted)
	for what, all := range natives {
		var ranIt []string
		for _, n := range all {
			switch {
			case n.state == "REQUEUED":
				sum.requeued++
			case n.ran():
				ranIt = append(ranIt, n.id)
			default:
				sum.doubles++
			}
		}
		require.Equal(t, ran[what], ranIt, "%s: the program ran as the first, by the accounting as the second of %v", what, all)
	}
	for _, job := range jobs {
		for i, what := range runs(job) {
			if len(job.GetCounts()) == 0 && len(ran[what]) > 0 {
				id, _, _ := strings.Cut(job.GetAttempts()[i].GetNativeId(), "_")
				require.Equal(t, ran[what][0], id, "the native job that ran %s is the one on record: %v", what, job)
			}
		}
	}
	return sum
}

// tokens of jobs.
func tokens(jobs []*dagbridgev1.Job) map[string]bool {
	all := map[string]bool{}
	for _, job := range jobs {
		for _, at := range job.GetAttempts() {
			all[at.GetToken()] = true
		}
	}
	return all
}

// left waits until the queue has nothing of the tokens.
func left(t *testing.T, c *slurmtest.Cluster, tokens map[string]bool) {
	t.Helper()
	var some []string
	clear := func() bool {
		some = some[:0]
		for line := range strings.Lines(c.Run(t, "squeue", "-h", "-a", "-o", "%i %T %r %j")) {
			name := line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:]
			if _, token, _ := strings.Cut(strings.TrimSpace(name), "."); tokens[token] {
				some = append(some, strings.TrimSpace(line))
			}
		}
		return len(some) == 0
	}
	if !poll(time.Minute, clear) {
		require.Empty(t, some, "all jobs have ended, and this is still in the queue")
	}
}

// poll asks until something is so, and says whether it came to be.
func poll(within time.Duration, is func() bool) bool {
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// inOrder: no program of a task ran before those of the tasks that its rule makes it wait for.
func inOrder(t *testing.T, l ledger, workflows []*dagbridgev1.Workflow, jobs []*dagbridgev1.Job) {
	t.Helper()
	first, last := map[string]int{}, map[string]int{}
	place := map[string][]int{}
	for i, e := range l.entries(t) {
		place[e.what] = append(place[e.what], i)
	}
	name := func(run, task string) string { return run + "/" + task }
	for _, job := range jobs {
		for _, what := range runs(job) {
			for _, i := range place[what] {
				task := name(job.GetKey().GetRun(), job.GetKey().GetTask())
				if at, have := first[task]; !have || i < at {
					first[task] = i
				}
				last[task] = max(last[task], i)
			}
		}
	}
	for _, w := range workflows {
		for _, task := range w.GetTasks() {
			if strings.HasPrefix(task.GetTriggerRule(), "one_") {
				continue // it may start beside some of its upstreams
			}
			at, ran := first[name(w.GetRun().GetRun(), task.GetKey().GetTask())]
			for _, edge := range task.GetUpstream() {
				before, upRan := last[name(w.GetRun().GetRun(), edge.GetTask())]
				require.False(t, ran && upRan && at < before, "%s of run %s started before %s had ended", task.GetKey().GetTask(), w.GetRun().GetRun(), edge.GetTask())
			}
		}
	}
}

// once: of each task there is one job; what a caller repeated, not knowing, made no other.
func once(t *testing.T, jobs []*dagbridgev1.Job) {
	t.Helper()
	var keys []string
	for _, job := range jobs {
		keys = append(keys, job.GetKey().String())
	}
	slices.Sort(keys)
	require.Len(t, slices.Compact(slices.Clone(keys)), len(keys))
}
