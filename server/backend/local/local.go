// Package local is the cluster that is always there: processes on this machine.
//
// A job is a program in its own process group under a supervisor, a small process of its own session (this same binary, see
// Supervise) that outlives the gateway. The supervisor bounds the program's time, ends everything that the program started,
// and leaves the end in a file. What is true of a job is on disk and in /proc, never in the gateway's memory alone:
//
//	<Dir>/queue/<token>                     an empty file for each attempt that has not ended
//	<Dir>/<user>/<job id>/                  the job's own folder, where its program runs
//	    attempt-<n>/spec                    what to run; there once the attempt is submitted
//	    attempt-<n>/release                 a held attempt may start
//	    attempt-<n>/cancel                  the attempt is to end
//	    attempt-<n>/start                   its supervisor; there before the program starts, once for all time
//	    attempt-<n>/end                     its end; there when nothing of it runs any more
//	    attempt-<n>/{stdout,stderr,output,inputs,script,prologue,supervisor}
//
// So a spec alone is a queued job; start with a living supervisor a running one; start without it, and without end, is a
// job of whose end nothing is known. spec, start and end are made by link(2), which refuses a second one: whoever submits
// twice, and whatever dies between, the program starts at most once.
//
// The gateway keeps the queue, in the order of submission, and starts a job when its CPUs and memory fit. One process at a
// time may: it holds a lock on the folder. A process is never signalled by its pid alone, since pids are used again.
//
// The package needs Linux 5.11 (pidfd, close_range, parent-death signals, sub-reapers). A service manager that ends the
// gateway must leave its supervisors alone (systemd: KillMode=process). The package must not end a job because the gateway
// ends, and must not hand anything of the gateway's environment or open files to a program.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/dagbridge/dagbridge/server/backend"
)

// defaultOutputLimit is how much a job may leave as outputs, in bytes.
const defaultOutputLimit = 48 << 10

// Options of a local cluster.
type Options struct {
	// Name of the cluster in the configuration.
	Name string
	// Dir is the cluster's folder; it is made when the first job comes. Jobs run in Dir/<user>/<job id>.
	Dir string
	// CPUs that jobs may take together; 0: all that this process may use.
	CPUs int
	// Memory in bytes that jobs may ask for together; 0: all that the machine has.
	Memory int64
	// Images are what stands in for container images, by name: the folder of an environment, whose bin goes before PATH.
	Images map[string]string
	// Prologue is lines of bash before every job's program.
	Prologue string
	// OutputLimit is how much a job may leave as outputs, in bytes; 0: 48 KiB.
	OutputLimit int
	// Supervisor is the command, without its last argument, that calls Supervise; empty: this binary's "supervise".
	Supervisor []string
	// Launcher is the program that runs the steps of pipelines; empty: this binary.
	Launcher string
	Log      *slog.Logger
}

// Backend is a local cluster.
type Backend struct {
	options Options
	// user whose jobs all are, node they run on, PATH they have.
	user, node, path string

	// alive ends with Close.
	alive context.Context
	close context.CancelFunc
	wait  sync.WaitGroup
	// notify wakes Observe.
	notify chan struct{}

	mu    sync.Mutex
	lock  *os.File
	jobs  map[string]*job
	queue []*job
	// What running jobs have taken, in thousandths of a CPU and in bytes.
	cpu, memory int64
}

// New makes a local cluster. It touches nothing: the folder is opened, and its queue set going, by the first call that
// submits, looks, alters or cancels.
func New(o Options) (*Backend, error) {
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("the folder of the local cluster %s: %w", o.Name, err)
	}
	if o.CPUs == 0 {
		o.CPUs = runtime.NumCPU()
	}
	if o.Memory == 0 {
		var machine unix.Sysinfo_t
		if err := unix.Sysinfo(&machine); err != nil {
			return nil, fmt.Errorf("the machine's memory is not known: %w; set the memory of the local cluster %s", err, o.Name)
		}
		o.Memory = int64(machine.Totalram) * int64(machine.Unit)
	}
	if o.CPUs < 0 || o.Memory < 0 {
		return nil, fmt.Errorf("the local cluster %s cannot have %d CPUs and %d bytes of memory", o.Name, o.CPUs, o.Memory)
	}
	if o.OutputLimit == 0 {
		o.OutputLimit = defaultOutputLimit
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own file, that supervises local jobs, is not known: %w", err)
	}
	if len(o.Supervisor) == 0 {
		o.Supervisor = []string{self, "supervise"}
	}
	o.Launcher = cmp.Or(o.Launcher, self)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Backend{options: o, user: userName(), jobs: map[string]*job{}, notify: make(chan struct{}, 1)}
	b.node, _ = os.Hostname() // for show
	if b.path = os.Getenv("PATH"); b.path == "" {
		b.path = "/usr/local/bin:/usr/bin:/bin"
	}
	b.alive, b.close = context.WithCancel(context.Background())
	return b, nil
}

// userName is the gateway's, whose all local jobs are; its number where it has no name.
func userName() string {
	if u, err := user.Current(); err == nil && filepath.IsLocal(u.Username) {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// Kind is "local".
func (b *Backend) Kind() string { return "local" }

// Capabilities are few: the engine keeps dependencies, and submits instances one by one.
func (b *Backend) Capabilities() backend.Capabilities { return backend.Capabilities{Launcher: true} }

// Close stops the queue and leaves jobs as they are.
func (b *Backend) Close() error {
	b.close()
	b.wait.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock == nil {
		return nil
	}
	err := b.lock.Close()
	b.lock = nil
	return err
}

var errClosed = errors.New("the local cluster is closed")

// open takes the folder and sets its queue going, once. The caller holds the mutex.
func (b *Backend) open() error {
	if b.alive.Err() != nil {
		return errClosed
	}
	if b.lock != nil {
		return nil
	}
	// What this process was started with, beside what Go opens, must not be held open by jobs that outlive it.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("a local cluster needs Linux 5.11 or newer: %w", os.NewSyscallError("close_range", err))
	}
	if err := os.MkdirAll(b.queueDir(), 0o700); err != nil {
		return fmt.Errorf("the folder of the local cluster %s cannot be made: %w", b.options.Name, err)
	}
	lock, err := os.OpenFile(filepath.Join(b.options.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the folder of the local cluster %s cannot be opened: %w", b.options.Name, err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = b.load()
	} else {
		err = fmt.Errorf("another process runs the jobs in %s: stop it, or give the local cluster %s another folder", b.options.Dir, b.options.Name)
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	b.lock = lock
	b.admit()
	return nil
}
