package faults

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// deadline of the gateway's calls in these tests; a listing may take four times as long.
const deadline = 2 * time.Second

// TestAnswerCut: whatever becomes of a submission, the program runs once. What is not known is found out.
func TestAnswerCut(t *testing.T) {
	c := slurmtest.Shared(t)
	for _, one := range []struct {
		name  string
		fault fault
		// twice: the gateway has to submit each job a second time.
		twice bool
		// late: a request arrives when it is not looked for any more. What it makes may stay in the queue, where it can run nothing.
		late bool
	}{
		{name: "the answer is cut", fault: func(x *exchange) {
			x.forward()
		}},
		{name: "the answer comes after the deadline", fault: func(x *exchange) {
			answer := x.forward()
			<-x.gone
			x.answer = answer
		}},
		{name: "the request is cut", fault: func(*exchange) {}, twice: true},
		{name: "the request arrives after the deadline", fault: func(x *exchange) {
			<-x.gone
			x.forward()
		}},
		{name: "the request arrives after the second, which is held", fault: func(x *exchange) {
			x.await(x.answered, x.name)
			x.forward()
		}, twice: true, late: true},
		{name: "the request arrives after the second was released", fault: func(x *exchange) {
			x.await(x.released, x.name)
			x.forward()
		}, twice: true, late: true},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, c.URL)
			p.fault = first(one.fault)
			r := newRig(t, c, through(t, c, p))
			r.single()
			r.chain(3)
			r.mapped(4)
			r.submit(t)
			r.awaitEnd(t)
			if one.late {
				clearAway(t, c, tokens(r.jobs(t)))
			}
			sum := r.finish(t, c)
			const jobs = 1 + 3 + 3
			require.Equal(t, r.programs, sum.attempts, "no attempt was given up")
			require.Len(t, p.received, jobs, "each met with the fault")
			if one.twice {
				require.Equal(t, 2*jobs, p.total(p.received))
			}
			t.Logf("%d submissions of %d jobs; %d native jobs ran nothing", p.total(p.received), jobs, sum.doubles)
		})
	}
	t.Run("anything is cut", func(t *testing.T) {
		t.Parallel()
		p := newProxy(t, c.URL)
		p.fault, p.storm = sometimes, sometimes
		r := newRig(t, c, through(t, c, p))
		for range 2 {
			r.single()
			r.retried()
			r.chain(4)
			r.fan(3)
			r.mapped(4)
			r.rules()
		}
		r.submit(t)
		sum := r.finish(t, c)
		require.Equal(t, r.programs, sum.programs)
		t.Logf("%d submissions; %d native jobs ran nothing", p.total(p.received), sum.doubles)
	})
}

// sometimes cuts a request or its answer.
func sometimes(x *exchange) {
	switch rand.IntN(6) {
	case 0:
	case 1:
		x.forward()
	default:
		x.pass()
	}
}

// through is a way to Slurm through a proxy, with little patience.
func through(t *testing.T, c *slurmtest.Cluster, p *proxy) slurm.Options {
	t.Helper()
	return slurm.Options{REST: &slurm.REST{URL: p.URL, User: slurmtest.User, TokenFile: c.TokenFile(t)}, Timeout: deadline}
}

// clearAway cancels what is left in the queue of some tokens whose jobs have all ended, when it waits for what will never
// come, and says how much that was.
func clearAway(t *testing.T, c *slurmtest.Cluster, tokens map[string]bool) int {
	t.Helper()
	var waiting []string
	var other string
	still := !poll(patience, func() bool {
		tend(t, c) // what Slurm starts later by itself
		waiting, other = waiting[:0], ""
		for line := range strings.Lines(c.Run(t, "squeue", "-h", "-a", "-r", "-o", "%i %r %j")) {
			fields := strings.Fields(line)
			if _, token, _ := strings.Cut(fields[len(fields)-1], "."); !tokens[token] {
				continue
			}
			// One that came back after a forgotten cancel may wait for what will never be, or start and find its mark; one
			// whose end was forgotten is started again, in vain, and held ("launch failed requeued held").
			if !slices.Contains([]string{"JobHeldUser", "DependencyNeverSatisfied", "Dependency", "launch"}, fields[1]) {
				other = line
				return false
			}
			waiting = append(waiting, fields[0])
		}
		return true
	})
	require.False(t, still, "this may still run: %s", other)
	if len(waiting) > 0 {
		c.Run(t, "scancel", waiting...)
	}
	return len(waiting)
}
