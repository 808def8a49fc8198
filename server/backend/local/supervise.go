package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

const (
	// grace is what a program has between SIGTERM and SIGKILL.
	grace = 5 * time.Second
	// soon is how long a killed process may take to die; one that hangs in the kernel is looked at ever less often.
	soon = 5 * time.Millisecond
)

// Supervise runs one attempt, whose spec file is its only argument, from its start marker to its end marker. It is the
// main loop of a process of its own; what it returns is that process's exit code, which nobody needs.
func Supervise(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "supervise is started by the gateway, with the file of one local job")
		return 2
	}
	// A program gets its parent-death signal when the thread that made it ends, so this one must last.
	runtime.LockOSThread()
	if err := supervise(folder(filepath.Dir(args[0]))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func supervise(f folder) error {
	// Signals are caught, not ignored: what is ignored would be ignored by the program too. SIGTERM is the gateway's only
	// where a cancel marker lies beside it; a machine that shuts down sends one to everybody.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	// What the program leaves behind becomes this process's child, so that it can be ended.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	var s spec
	if ok, err := readMarker(f.spec(), &s); err != nil || !ok {
		return errors.Join(err, errors.New("there is no such job"))
	}
	self, err := lookup(os.Getpid())
	if err != nil {
		return err
	}
	begun := start{Supervisor: self, Time: time.Now()}
	if err := writeOnce(f.start(), begun); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return errors.New("the job has a supervisor already")
		}
		return err
	}
	if cancelled, err := exists(f.cancel()); err != nil || cancelled {
		return errors.Join(err, conclude(f, end{State: dagbridgev1.Job_CANCELLED, EndTime: time.Now()}))
	}
	result := s.run(f, signals)
	result.StartTime, result.EndTime = begun.Time, time.Now()
	return conclude(f, result)
}

// conclude leaves the end, and does not give up while a disk is full: without it nobody would ever know.
func conclude(f folder, result end) error {
	for {
		err := writeOnce(f.end(), result)
		if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		fmt.Fprintln(os.Stderr, "the end cannot be written down yet:", err)
		time.Sleep(pause)
	}
}

// run runs the program to its end, and ends what it leaves behind.
func (s *spec) run(f folder, signals <-chan os.Signal) end {
	pid, failure := s.begin(f)
	if failure != nil {
		return *failure
	}
	exited, drained := reap(pid)
	var limit, kill <-chan time.Time
	if s.TimeLimit > 0 {
		limit = time.After(s.TimeLimit)
	}
	verdict, overdue := end{}, false
	terminate := func(v end) {
		if verdict.State == dagbridgev1.Job_STATE_UNSPECIFIED {
			verdict, kill = v, time.After(grace)
			_ = unix.Kill(-pid, unix.SIGTERM)
		}
	}
	for {
		select {
		case status := <-exited:
			result := ending(status)
			if verdict.State == dagbridgev1.Job_STATE_UNSPECIFIED {
				killChildren(drained)
				return result
			}
			if !overdue { // what else the program started has the rest of the grace
				select {
				case <-drained:
				case <-kill:
				}
			}
			killChildren(drained)
			verdict.ExitCode, verdict.Signal = result.ExitCode, result.Signal
			return verdict
		case <-signals:
			if cancelled, err := exists(f.cancel()); cancelled && err == nil {
				terminate(end{State: dagbridgev1.Job_CANCELLED, Message: "cancelled while it ran"})
			}
		case <-limit:
			terminate(end{
				State: dagbridgev1.Job_FAILED, Reason: "TIMEOUT",
				Message: fmt.Sprintf("the program ran longer than its time limit of %v", s.TimeLimit),
			})
		case <-kill:
			overdue = true
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
	}
}

// reap waits for all children: exited has the program's status, drained is closed when there is none left.
func reap(program int) (exited <-chan unix.WaitStatus, drained <-chan struct{}) {
	statuses, none := make(chan unix.WaitStatus, 1), make(chan struct{})
	go func() {
		defer close(none)
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, 0, nil)
			switch {
			case err == unix.EINTR:
			case err != nil: // ECHILD
				return
			case pid == program:
				statuses <- status
			}
		}
	}()
	return statuses, none
}

// killChildren ends all that is left. Killing a parent makes its children ours, so it goes on until there is none.
func killChildren(drained <-chan struct{}) {
	self := os.Getpid()
	for delay := soon; ; delay = min(2*delay, pause) {
		select {
		case <-drained:
			return
		default:
		}
		if list, err := processes(); err == nil {
			for _, p := range list {
				if p.parent == self {
					_ = unix.Kill(p.pid, unix.SIGKILL)
				}
			}
		}
		select {
		case <-drained:
			return
		case <-time.After(delay):
		}
	}
}

// ending of a program that ended by itself.
func ending(status unix.WaitStatus) end {
	code := int32(status.ExitStatus())
	if status.Signaled() {
		number := int32(status.Signal())
		code = 128 + number
		return end{
			State: dagbridgev1.Job_FAILED, ExitCode: &code, Signal: &number,
			Message: fmt.Sprintf("the program was killed by signal %d (%s)", number, unix.SignalName(status.Signal())),
		}
	}
	if code != 0 {
		return end{State: dagbridgev1.Job_FAILED, ExitCode: &code, Message: fmt.Sprintf("the program ended with exit code %d", code)}
	}
	return end{State: dagbridgev1.Job_SUCCEEDED, ExitCode: &code}
}
