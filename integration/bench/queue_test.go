package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

var queued = flag.Int("queued", 10_000, "how many jobs wait in the large queue, a multiple of 1,000")

// BenchmarkQueue measures looks at a large queue, and its cancel, over Slurm's commands and over slurmrestd of the oldest and
// the newest release.
func BenchmarkQueue(b *testing.B) {
	for _, release := range []slurmtest.Release{slurmtest.Oldest, slurmtest.Newest} {
		b.Run(string(release), func(b *testing.B) {
			q := &queue{rival: newRival(b, release, "root")}
			over := []watcher{q.watchREST()}
			if release == slurmtest.Oldest {
				over = append(over, q.watchCommands())
			}
			q.run(over)
		})
	}
}

// queue is a Slurm with many waiting jobs.
type queue struct {
	*rival
	// dir is the folder of the gateway whose jobs they are, ids its jobs.
	dir string
	ids []string
}

// watcher is a way for a gateway to look at it.
type watcher struct {
	name    string
	options slurm.Options
	calls   func() calls
}

func (q *queue) watchREST() watcher {
	w := watcher{name: "slurmrestd", options: q.overREST()}
	w.options.REST.URL, w.calls = countREST(q.b, q.URL)
	w.options.PollInterval = time.Second
	return w
}

func (q *queue) watchCommands() watcher {
	w := watcher{name: "commands", options: q.overREST()}
	w.options.REST, w.options.CLI = nil, &slurm.CLI{}
	w.options.CLI.Path, w.calls = countCommands(q.b, q.Bin())
	w.options.PollInterval = time.Second
	return w
}

func (q *queue) run(over []watcher) {
	jobs := fmt.Sprintf("%d jobs, Slurm %s", *queued, q.Version)
	q.fill("auto")
	for _, w := range over {
		q.look(fmt.Sprintf("%s in arrays of 1,000, %s", jobs, w.name), w, [2]aim{}).stop()
	}
	q.drain()
	q.fill("off")
	alone := q.cancelled(func() { q.Run(q.b, "scancel", "--user="+q.user) })
	for _, w := range over {
		q.fill("off")
		gateway := q.look(fmt.Sprintf("%s, %s", jobs, w.name), w, [2]aim{{atLeast: 30}, {atLeast: 10}})
		ours := q.cancelled(func() {
			body, err := json.Marshal(map[string]any{"ids": q.ids})
			require.NoError(q.b, err)
			gateway.post(q.b, "/v1/jobs:batchCancel", body)
		})
		gateway.stop()
		times(fmt.Sprintf("cancel of %s, %s", jobs, w.name), "scancel --user", "s", []float64{ours}, []float64{alone}, aim{})
	}
}

// fill submits the jobs, by a gateway that is gone afterwards.
func (q *queue) fill(fold string) {
	q.dir, q.ids = q.b.TempDir(), nil
	gateway := q.startGateway(q.dir, q.overREST())
	for thousand := range *queued / 1000 {
		w := &dagbridgev1.Workflow{Fold: fold}
		for i := range 1000 {
			task := fan(fmt.Sprintf("task_%d_%03d", thousand, i))
			task.Command.Argv = []string{"echo", task.GetKey().GetTask()}
			w.Tasks = append(w.Tasks, task)
		}
		q.ids = append(q.ids, q.submitted(gateway.post(q.b, "/v1/runs", q.request(w)))...)
	}
	gateway.stop()
}

// drain empties the queue.
func (q *queue) drain() {
	q.Run(q.b, "scancel", "--user="+q.user)
	q.awaitEmpty("all")
}

// cancelled tells how long a cancel of everything takes, until nothing waits any more.
func (q *queue) cancelled(cancel func()) (seconds float64) {
	began := time.Now()
	cancel()
	q.awaitEmpty("PENDING")
	seconds = time.Since(began).Seconds()
	q.awaitEmpty("all")
	return seconds
}

// looksATurn are how many looks of the gateway's make its turn.
const looksATurn = 2

// look compares a gateway's looks at the queue with squeue --json; the aims are of the bytes and the time. The gateway is left
// running.
func (q *queue) look(what string, w watcher, aims [2]aim) *process {
	gateway := q.startGateway(q.dir, w.options)
	q.awaitLooks(gateway, 2) // the first may have to ask for more
	var ours, json []cost
	for range *rounds {
		idle, one := q.idle(gateway), q.turn(gateway, w)
		one.controller -= idle * one.lasted / looksATurn
		other := q.squeueJSON(gateway)
		other.controller -= idle * other.lasted
		ours, json = append(ours, one), append(json, other)
	}
	column := func(costs []cost, of func(cost) float64) (column []float64) {
		for _, c := range costs {
			column = append(column, of(c))
		}
		return column
	}
	beside := func(what, unit string, of func(cost) float64, aim aim) {
		times("  "+what, "squeue --json", unit, column(ours, of), column(json, of), aim)
	}
	figure("a look at "+what+", calls", "", column(ours, func(c cost) float64 { return c.number }), aim{})
	beside("bytes", "kB", func(c cost) float64 { return c.bytes / 1000 }, aims[0])
	beside("time", "s", func(c cost) float64 { return c.seconds }, aims[1])
	beside("processor time of slurmctld", "s", func(c cost) float64 { return max(c.controller, 0.005) }, aim{})
	figure("  processor time of the gateway", "s", column(ours, func(c cost) float64 { return c.own }), aim{})
	now, most := gateway.memory(q.b)
	figure("  memory of the gateway", "MiB", []float64{now}, aim{atMost: 150})
	figure("  memory of the gateway, at most", "MiB", []float64{most}, aim{atMost: 150})
	return gateway
}

// cost of a look: calls, bytes, its own time, the processor time of slurmctld and of the gateway, and how long a turn lasted.
type cost struct {
	calls
	seconds, controller, own, lasted float64
}

// turn is a turn of the gateway's, the cost of one look.
func (q *queue) turn(gateway *process, w watcher) cost {
	before, seconds := q.awaitLooks(gateway, 1)
	began, called, controller, own := time.Now(), w.calls(), q.cpu("slurmctld"), gateway.cpu(q.b)
	after, now := q.awaitLooks(gateway, looksATurn)
	looks := after - before
	c := w.calls().since(called)
	return cost{
		calls{c.number / looks, c.bytes / looks}, (now - seconds) / looks, (q.cpu("slurmctld") - controller).Seconds() / looks,
		(gateway.cpu(q.b) - own).Seconds() / looks, time.Since(began).Seconds(),
	}
}

// awaitLooks waits until the gateway has looked so many times more; it tells how often it has, and how long all looks took.
func (q *queue) awaitLooks(gateway *process, more float64) (looks, seconds float64) {
	count := func() float64 { return gateway.metric(q.b, `dagbridge_look_seconds_count{cluster="hpc"}`) }
	for before, end := count(), time.Now().Add(10*time.Minute); count() < before+more; time.Sleep(200 * time.Millisecond) {
		require.True(q.b, time.Now().Before(end), "the gateway does not look at Slurm")
	}
	return count(), gateway.metric(q.b, `dagbridge_look_seconds_sum{cluster="hpc"}`)
}

// idle is the processor time that slurmctld takes by itself in a second, with the gateway stopped.
func (q *queue) idle(gateway *process) float64 {
	gateway.pause(q.b)
	defer gateway.resume(q.b)
	before, began := q.cpu("slurmctld"), time.Now()
	time.Sleep(5 * time.Second)
	return (q.cpu("slurmctld") - before).Seconds() / time.Since(began).Seconds()
}

// squeueJSON is what a script would do, with the gateway stopped.
func (q *queue) squeueJSON(gateway *process) cost {
	gateway.pause(q.b)
	defer gateway.resume(q.b)
	controller, began := q.cpu("slurmctld"), time.Now()
	output, err := exec.Command(filepath.Join(q.Bin(), "squeue"), "--json").Output()
	require.NoError(q.b, err)
	took := time.Since(began).Seconds()
	return cost{calls{1, float64(len(output))}, took, (q.cpu("slurmctld") - controller).Seconds(), 0, took}
}

// pause stops a process where it is, resume lets it go on.
func (p *process) pause(b *testing.B)  { require.NoError(b, syscall.Kill(p.pid, syscall.SIGSTOP)) }
func (p *process) resume(b *testing.B) { require.NoError(b, syscall.Kill(p.pid, syscall.SIGCONT)) }

// memory of a process in MiB: what it has now, and the most that it had.
func (p *process) memory(b *testing.B) (now, most float64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		var kilobytes float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kilobytes); n == 1 {
			now = kilobytes / 1024
		} else if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); n == 1 {
			most = kilobytes / 1024
		}
	}
	return now, most
}
