package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pause is how long a job waits that could not be started, before it is tried again.
const pause = time.Second

// phase of a job that has not ended.
type phase int

const (
	held phase = iota
	queued
	// delayed: it could not be started just now.
	delayed
	running
)

// job is an attempt that has not ended. Backend.mu guards it.
type job struct {
	token       string
	folder      folder
	phase       phase
	cpu, memory int64
	submitTime  time.Time
	// Of a running one.
	startTime  time.Time
	supervisor process
	// why a queued one waits, as a sentence; empty: for those before it.
	why string
}

// load fills the queue from disk, in the order of submission. The caller holds the mutex.
func (b *Backend) load() error {
	entries, err := os.ReadDir(b.queueDir())
	if err != nil {
		return fmt.Errorf("the queue of the local cluster %s cannot be read: %w", b.options.Name, err)
	}
	var jobs []*job
	for _, entry := range entries {
		j, err := b.recover(entry.Name())
		if err != nil {
			return fmt.Errorf("the local job %s cannot be read: %w", entry.Name(), err)
		}
		if j != nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, c *job) int {
		if n := a.submitTime.Compare(c.submitTime); n != 0 {
			return n
		}
		return strings.Compare(a.token, c.token)
	})
	for _, j := range jobs {
		b.enter(j)
	}
	return nil
}

// recover reads a job from disk; nil when it is not live, and then its place in the queue is given up.
func (b *Backend) recover(token string) (*job, error) {
	f, ok := b.folder(token)
	if !ok {
		return nil, nil // no file of ours
	}
	var s spec
	there, err := readMarker(f.spec(), &s)
	if err != nil {
		return nil, err
	}
	ended, err := exists(f.end())
	if err != nil {
		return nil, err
	}
	if !there || ended {
		return nil, b.leave(token)
	}
	info, err := os.Stat(f.spec())
	if err != nil {
		return nil, err
	}
	j := &job{token: token, folder: f, phase: queued, cpu: s.CPU, memory: s.Memory, submitTime: info.ModTime()}
	var began start
	started, err := readMarker(f.start(), &began)
	if err != nil {
		return nil, err
	}
	if started {
		j.phase, j.startTime, j.supervisor = running, began.Time, began.Supervisor
		return j, nil
	}
	if cancelled, err := exists(f.cancel()); err != nil || cancelled {
		return nil, errors.Join(err, b.endUnstarted(j))
	}
	released, err := exists(f.release())
	if s.Hold && !released {
		j.phase = held
	}
	return j, err
}

// enter puts a live job where it belongs.
func (b *Backend) enter(j *job) {
	b.jobs[j.token] = j
	switch j.phase {
	case queued:
		b.queue = append(b.queue, j)
	case running:
		b.take(j)
		b.watch(j)
	case held, delayed:
	}
}

// leave gives up a job's place in the queue's folder.
func (b *Backend) leave(token string) error {
	if err := os.Remove(b.queueFile(token)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (b *Backend) take(j *job) {
	b.cpu += j.cpu
	b.memory += j.memory
}

func (b *Backend) give(j *job) {
	b.cpu -= j.cpu
	b.memory -= j.memory
}

// admit starts what fits, in order: none overtakes, so that a large job is not kept waiting for ever by small ones. The
// caller holds the mutex.
func (b *Backend) admit() {
	for len(b.queue) > 0 && b.alive.Err() == nil {
		j := b.queue[0]
		if b.jobs[j.token] != j || j.phase != queued { // cancelled while it waited
			b.queue = b.queue[1:]
			continue
		}
		free, memory := int64(b.options.CPUs)*1000-b.cpu, b.options.Memory-b.memory
		// What is larger than the machine has become is let in alone rather than never.
		if (j.cpu > free || j.memory > memory) && b.cpu > 0 {
			j.why = fmt.Sprintf("waits for %s CPUs and %d bytes of memory; %s and %d are free", thousandths(j.cpu), j.memory, thousandths(free), memory)
			return
		}
		b.queue = b.queue[1:]
		b.launch(j)
	}
}

// launch starts a job's supervisor, which has nothing of this process: neither session, environment, files nor folder.
func (b *Backend) launch(j *job) {
	messages, err := os.OpenFile(j.folder.supervisor(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		defer func() { _ = messages.Close() }()
		cmd := exec.Command(b.options.Supervisor[0], append(slices.Clone(b.options.Supervisor[1:]), j.folder.spec())...)
		cmd.Env, cmd.Dir, cmd.Stderr, cmd.SysProcAttr = []string{}, "/", messages, &syscall.SysProcAttr{Setsid: true}
		if err = cmd.Start(); err == nil {
			// Not waited for, it cannot have left its pid to another yet.
			j.supervisor, err = lookup(cmd.Process.Pid)
			_ = cmd.Process.Release()
		}
	}
	if err != nil {
		b.postpone(j, fmt.Sprintf("its supervisor cannot be started: %v", err))
		return
	}
	j.phase, j.startTime, j.why = running, time.Now(), ""
	b.take(j)
	b.watch(j)
}

// postpone tries to start a job again after a pause. The caller holds the mutex.
func (b *Backend) postpone(j *job, why string) {
	b.options.Log.Warn("a local job waits", "token", j.token, "why", why)
	j.phase, j.why = delayed, why
	b.wait.Go(func() {
		if !sleep(b.alive, pause) {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.jobs[j.token] == j && j.phase == delayed {
			j.phase = queued
			b.queue = append(b.queue, j)
			b.admit()
		}
	})
}

// watch waits for the end of a running job's supervisor.
func (b *Backend) watch(j *job) {
	supervisor := j.supervisor
	b.wait.Go(func() {
		died, err := supervisor.died(b.alive)
		for err != nil && sleep(b.alive, pause) { // no handle to be had: look again
			b.options.Log.Warn("a local job's supervisor cannot be watched", "token", j.token, "error", err)
			died, err = supervisor.died(b.alive)
		}
		if died {
			b.settle(j, supervisor)
		}
	})
}

// settle finds out what became of a job whose supervisor is no more.
func (b *Backend) settle(j *job, supervisor process) {
	ended, err := exists(j.folder.end())
	var began start
	started, startErr := readMarker(j.folder.start(), &began)
	if err = errors.Join(err, startErr); err == nil && started && !ended && !began.Supervisor.running() {
		err = began.Supervisor.killOrphans(b.alive, j.folder)
	}
	if b.alive.Err() != nil {
		return // the next gateway does it
	}
	// A supervisor that this process started is its corpse, and kept its pid from being used again until here.
	_, _ = unix.Wait4(supervisor.PID, nil, unix.WNOHANG, nil)
	if err != nil {
		b.options.Log.Error("what a local job left cannot be seen", "token", j.token, "error", err)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.changed()
	defer b.admit()
	b.give(j)
	if err == nil && !ended {
		if started && began.Supervisor != supervisor && began.Supervisor.running() {
			// One that an earlier gateway had started was faster.
			j.supervisor, j.startTime = began.Supervisor, began.Time
			b.take(j)
			b.watch(j)
			return
		}
		if !started {
			if again, err := b.recover(j.token); err == nil && again != nil {
				message, _ := os.ReadFile(j.folder.supervisor())
				b.postpone(j, "its supervisor ended before it began: "+strings.TrimSpace(string(message)))
				return
			}
		}
	}
	delete(b.jobs, j.token)
	if err := b.leave(j.token); err != nil {
		b.options.Log.Warn("a local job's place in the queue cannot be given up", "token", j.token, "error", err)
	}
}

// changed wakes Observe.
func (b *Backend) changed() {
	select {
	case b.notify <- struct{}{}:
	default:
	}
}

// sleep is false when the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
