package faults

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// TestWorkDirFails has the file system of workDir be full, read-only and gone. What cannot be known is waited for, and nothing
// that a program left is made up, or taken for nothing.
func TestWorkDirFails(t *testing.T) {
	c := slurmtest.Shared(t)
	for name, test := range map[string]func(*testing.T, *slurmtest.Cluster, *disk, *rig){
		"full": diskFull, "read-only": diskReadOnly, "gone": diskGone, "a log that is huge": hugeLog,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, c)
			o := reach(t, c, "rest")
			o.WorkDir = d.work
			test(t, c, d, newRig(t, c, o))
		})
	}
}

// disk is a small file system in memory, which is mounted as a workDir too.
type disk struct{ self, work string }

func newDisk(t *testing.T, c *slurmtest.Cluster) *disk {
	t.Helper()
	dir := c.WorkDir(t)
	d := &disk{filepath.Join(dir, "self"), filepath.Join(dir, "work")}
	for _, dir := range []string{d.self, d.work} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	mount(t, "mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "dagbridge", d.self)
	t.Cleanup(func() { mount(t, "umount", "--lazy", d.self) })
	d.mount(t)
	t.Cleanup(func() { d.unmount(t) })
	return d
}

func (d *disk) mount(t *testing.T)   { mount(t, "mount", "--bind", d.self, d.work) }
func (d *disk) unmount(t *testing.T) { mount(t, "umount", "--lazy", d.work) }

func mount(t *testing.T, command string, arguments ...string) {
	t.Helper()
	text, err := exec.Command(command, arguments...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", command, arguments, text)
}

// fill leaves no room, and says how to make some again.
func (d *disk) fill(t *testing.T) (free func()) {
	t.Helper()
	name := filepath.Join(d.self, "filler")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	require.ErrorContains(t, err, "no space left")
	require.NoError(t, file.Close())
	return func() { require.NoError(t, os.Remove(name)) }
}

// waits is a task whose program leaves an output, or none, and ends when a gate is opened.
func (w *workload) waits(output string) edit {
	return func(task *dagbridgev1.Task) {
		then := "until [ -e " + w.gate(task.GetKey().GetTask()) + " ]; do sleep 0.1; done"
		if output != "" {
			then = "echo " + output + " >$DAGBRIDGE_OUTPUT; " + then
		}
		task.Command = w.program(then)
	}
}

func (w *workload) gate(task string) string { return w.ledger.path + "." + task }

func (w *workload) open(t *testing.T, task string) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.gate(task), nil, 0o644))
}

func diskFull(t *testing.T, c *slurmtest.Cluster, d *disk, r *rig) {
	r.add("within",
		r.task("leaves", nil, r.waits("text=$(head -c 20000 /dev/zero | tr '\\0' x)"), becomes(dagbridgev1.Job_FAILED, 1)),
		r.task("leaves_nothing", nil, r.waits("")))
	r.submit(t)
	r.await(t, "running", running)
	require.True(t, poll(patience, func() bool {
		text, _ := os.ReadFile(strings.TrimSuffix(r.one(t, "leaves").GetLogs().GetStdout(), ".out") + ".output")
		return len(text) > 20000
	}), "it leaves nothing")
	free := d.fill(t)
	r.open(t, "leaves")
	r.open(t, "leaves_nothing")
	r.awaitEnd(t)
	require.Empty(t, r.one(t, "leaves").GetOutputs())

	r.add("meanwhile", r.task("starts", nil, retries(0, 0), becomes(dagbridgev1.Job_FAILED, 0)))
	r.submit(t)
	r.awaitEnd(t)
	require.Equal(t, "LAUNCH_FAILED", r.one(t, "starts").GetReason())
	require.Contains(t, r.one(t, "starts").GetMessage(), d.work)

	free()
	r.single()
	r.submit(t)
	r.finish(t, c)
}

func diskReadOnly(t *testing.T, c *slurmtest.Cluster, d *disk, r *rig) {
	r.add("before", r.task("cancelled", nil, becomes(dagbridgev1.Job_CANCELLED, 0), func(task *dagbridgev1.Task) {
		task.Slurm.Options = map[string]string{"begin": "now+1hour"}
	}))
	r.submit(t)
	r.awaitWaiting(t, "BeginTime", "")
	mount(t, "mount", "-o", "remount,ro", d.self)
	_, err := r.engine.Cancel(t.Context(), r.ids)
	require.NoError(t, err)
	r.awaitEnd(t)

	r.single()
	r.submit(t)
	r.awaitWaiting(t, "CLUSTER_UNREACHABLE", "read-only file system")
	mount(t, "mount", "-o", "remount,rw", d.self)
	r.finish(t, c)
}

func diskGone(t *testing.T, c *slurmtest.Cluster, d *disk, r *rig) {
	r.add("within",
		r.task("ended", nil, r.waits("auc=0.9")),
		r.task("ends", nil, r.waits("auc=0.9"), becomes(dagbridgev1.Job_FAILED, 1)))
	r.submit(t)
	r.await(t, "running", running)
	ended := r.one(t, "ended").GetNativeId()
	r.stop()
	r.open(t, "ended")
	require.True(t, poll(patience, func() bool {
		return !strings.Contains(c.Run(t, "squeue", "-h", "-a", "-o", "%i"), ended)
	}), "it does not end")
	d.unmount(t)
	r.start(t)
	r.open(t, "ends")
	r.awaitOne(t, "ends", "at its end", func(job *dagbridgev1.Job) bool { return graph.IsTerminal(job.GetState()) })
	r.single()
	r.submit(t)
	r.awaitWaiting(t, "CLUSTER_UNREACHABLE", "is not there any more")
	r.awaitLooks(t)
	require.Equal(t, dagbridgev1.Job_RUNNING, r.one(t, "ended").GetState(), "what it has left cannot be read")

	d.mount(t)
	r.finish(t, c)
	require.Equal(t, `"0.9"`, r.one(t, "ended").GetOutputs()["auc"].GetText())
}

// hugeLog reads the end, and then the beginning, of a log of 5 GiB.
func hugeLog(t *testing.T, c *slurmtest.Cluster, _ *disk, r *rig) {
	r.single()
	r.submit(t)
	r.finish(t, c)
	job := r.one(t, "only")
	const size, tail, enough = 5 << 30, 1 << 20, 200 << 20
	require.NoError(t, os.Truncate(job.GetLogs().GetStdout(), size)) // one hole
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read := func(request *dagbridgev1.ReadLogsRequest, most int) (n int, first int64, err error) {
		request.Id, first = job.GetId(), -1
		err = r.engine.ReadLogs(t.Context(), request, func(data []byte, offset int64) error {
			if first < 0 {
				first = offset
			}
			if n += len(data); n >= most {
				return errEnough
			}
			return nil
		})
		return n, first, err
	}
	n, first, err := read(&dagbridgev1.ReadLogsRequest{Tail: tail}, size)
	require.NoError(t, err)
	require.Equal(t, tail, n)
	require.EqualValues(t, size-tail, first)
	began := time.Now()
	n, first, err = read(&dagbridgev1.ReadLogsRequest{}, enough)
	require.ErrorIs(t, err, errEnough)
	require.Less(t, n, enough+1<<20, "it stops at once")
	require.Zero(t, first)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "it is not read whole")
	t.Logf("200 MiB in %v", time.Since(began))
}

var errEnough = errors.New("the reader has enough")
