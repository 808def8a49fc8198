// Package slurm is the backend for Slurm clusters, over slurmrestd (JWT; v0.0.38 and v0.0.40 to v0.0.45) and over Slurm's own
// commands, which are run on the gateway's machine or, over ssh, on a login node.
//
// Each is a way to the same slurmctld; a way carries orders and answers and decides nothing. With both configured, REST
// submits, changes and cancels, and the commands look: one formatted squeue is some sixty times cheaper than slurmrestd's GET
// /jobs, which is the whole table in JSON (17 s at 10,000 jobs). With REST alone, and since Slurm 24.05, it is the list of
// bare states that is looked at, a hundredth of that table, and a job is asked for by its id when its state has changed. Before,
// the table is asked for with update_time, so that a quiet cluster answers that nothing has changed.
//
// Which version of slurmrestd's interface is spoken, slurmrestd is asked: the newest that both know, and again when it has been
// replaced. Jobs are described to it by the translator, in that version's words, and answers of all versions are decoded by the
// same types, so that what is beyond them knows of no version. A job of which slurmrestd ignored a field is not the job
// that was asked for: it is marked, cancelled and refused.
//
// What is known of a job is told by three witnesses, in this order. The controller's listing is one look for all jobs; it
// has every live job, and those that ended within MinJobAge. Accounting is asked, in chunks, only for the jobs that a
// complete listing lacks, beside the looks, and its silence counts only once slurmctld has nothing left to tell it. The markers
// that the wrapper script leaves in workDir tell what neither knows. Ids are reused (a
// slurmctld that was killed hands out the ids of the jobs it forgot), so a record counts only if it carries the job's token,
// in its comment or as the end of its name, and belongs to the user.
//
// A slurmctld that was killed forgets ends, too. Such a job counts as running until its node registers (at the start, and
// some twenty times SlurmdTimeout/3 later; scontrol reconfigure has it at once), then as vanished with it: it is requeued, and
// its wrapper tells its end once more without running anything, or it is NODE_FAIL, or TIMEOUT, and the marker tells that it
// had succeeded before.
//
// A job belongs to the user of the way in, or, with Impersonate, to its own (Job.User): its orders are given as that user (a header, setuid,
// sudo), its folder is that user's, and a record of anybody else's is not its. Looks are the gateway's own.
//
// No answer is ever taken for absence: a witness that fails leaves the job out of the news, and a submission whose answer
// was not heard is Unknown.
//
// slurmctld is bothered no more than it must be: not at all while no job is live, ever more seldom while nothing moves (type
// pace), by no more submissions a second than the site wants (type submitRate), and not while it answers slowly. The package
// keeps nothing between calls but the connections, the last listing, and what these need.
package slurm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// Options of a cluster; the configuration's slurm section. REST, CLI or SSH is set, or REST beside one of the others.
type Options struct {
	// Name of the cluster, for logs.
	Name string
	// REST, when set, is how slurmrestd is reached.
	REST *REST
	// CLI, when set, is how Slurm's commands are run.
	CLI *CLI
	// SSH, when set, is how they are run on a login node.
	SSH *SSH
	// Impersonate: a job belongs to its Job.User instead of the user of the way in.
	Impersonate bool
	// WorkDir is the absolute path of a folder that the gateway and the nodes see under the same name.
	WorkDir string
	// PollInterval is how often the cluster is looked at while anything moves there; while nothing does, up to four times as
	// long passes. Left out: 5 s.
	PollInterval time.Duration
	// Prologue holds shell lines that run before every job's program.
	Prologue string
	// LoginShell runs programs from a login shell.
	LoginShell bool
	// Partition, Account and QOS of tasks that name none.
	Partition, Account, QOS string
	// Container is the runtime of tasks that name none, one of translators/slurm's Runtimes. Left out: there is none.
	Container string
	// Images are what stands in for container images, by name: the folder of an environment, whose bin goes before PATH.
	Images map[string]string
	// Pipelines is the folder that the steps of pipelines share. Left out: one in WorkDir for each user.
	Pipelines string
	// Limits of the site that slurmrestd does not tell.
	Limits Limits
	// Timeout of one call; a listing of everything, and sbatch, which waits by itself while the queue is full, may take four
	// times as long. Left out: 60 s. More than Slurm's MessageTimeout, or a controller that is down looks like one that hangs.
	Timeout time.Duration
	// AccountingLag is how long accounting may go on calling a job live that the controller has no more, before the job
	// counts as gone. Left out: a minute.
	AccountingLag time.Duration
	// Log is where what cannot be told in an answer goes.
	Log *slog.Logger
}

// REST is how slurmrestd is reached.
type REST struct {
	// URL of slurmrestd, without a path.
	URL string
	// User that jobs belong to.
	User string
	// Version of slurmrestd's interface. Empty or auto: the newest that both sides speak.
	Version string
	// TokenFile holds that user's JWT. It is read for every call, so that whoever renews it need not tell.
	TokenFile string
	// Client, when set, replaces the package's own.
	Client *http.Client
}

// CLI is how Slurm's commands are run: as the gateway's own user.
type CLI struct {
	// Path is the folder of the commands. Empty: they are found in PATH.
	Path string
}

// Limits of the site, with Slurm's defaults.
type Limits struct {
	// MaxArraySize: the greatest array index plus one. 0: 1001.
	MaxArraySize int
	// MinJobAge: for how long slurmctld remembers an ended job. 0: 300 s.
	MinJobAge time.Duration
	// SubmitRate is how many jobs a second are submitted for one user. 0: as many as there are.
	SubmitRate float64
}

// concurrency of calls: slurmctld and slurmrestd gain nothing from more.
const concurrency = 8

// Backend is one Slurm cluster.
type Backend struct {
	name          string
	site          slurm.Site
	impersonate   bool
	orders, looks way
	pollInterval  time.Duration
	accountingLag time.Duration
	minJobAge     time.Duration
	log           *slog.Logger
	submitRate    submitRate
	// ordered tells the observer that something was asked of the cluster.
	ordered  chan struct{}
	accounts accounts
	// oddities that have been logged: a state no table knows would fill the log at every look.
	oddities sync.Map
	// used is the last home that a job's folder was made in.
	used atomic.Pointer[string]
}

var _ backend.Backend = (*Backend)(nil)

// New makes the backend and contacts nothing.
func New(o Options) (*Backend, error) {
	if !filepath.IsAbs(o.WorkDir) {
		return nil, fmt.Errorf("cluster %s: workDir is %q, but must be an absolute path that the gateway and the nodes share", o.Name, o.WorkDir)
	}
	setDefault(&o.PollInterval, 5*time.Second)
	setDefault(&o.Timeout, time.Minute)
	setDefault(&o.AccountingLag, time.Minute)
	setDefault(&o.Limits.MaxArraySize, slurm.DefaultMaxArraySize)
	setDefault(&o.Limits.MinJobAge, 300*time.Second)
	if o.PollInterval >= o.Limits.MinJobAge {
		return nil, fmt.Errorf("cluster %s: pollInterval is %v, but Slurm forgets ended jobs after a minJobAge of %v: look more often",
			o.Name, o.PollInterval, o.Limits.MinJobAge)
	}
	b := &Backend{
		name: o.Name, pollInterval: o.PollInterval, accountingLag: o.AccountingLag, minJobAge: o.Limits.MinJobAge,
		submitRate: submitRate{perSecond: o.Limits.SubmitRate}, ordered: make(chan struct{}, 1), log: o.Log,
		impersonate: o.Impersonate,
		site: slurm.Site{
			WorkDir: filepath.Clean(o.WorkDir), Prologue: o.Prologue, LoginShell: o.LoginShell,
			Partition: o.Partition, Account: o.Account, QOS: o.QOS, Container: o.Container, MaxArraySize: o.Limits.MaxArraySize,
			Images: o.Images, Pipelines: o.Pipelines,
		},
	}
	if o.CLI != nil {
		me, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("cluster %s: the gateway's own user is unknown: %w", o.Name, err)
		}
		b.site.User = me.Username
		c := &cli{runner: &processes{o.CLI.Path, &b.accounts, os.Geteuid() == 0}, timeout: o.Timeout, self: me.Username}
		b.orders, b.looks = c, c
	}
	if o.SSH != nil {
		if o.CLI != nil {
			return nil, fmt.Errorf("cluster %s: the commands run here (cli) or on a login node (ssh), not both", o.Name)
		}
		l, err := newLogin(*o.SSH, b.log)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
		}
		b.site.User = o.SSH.User
		c := &cli{runner: l, timeout: o.Timeout, self: o.SSH.User}
		b.orders, b.looks = c, c
	}
	if o.REST != nil {
		r, err := newREST(*o.REST, o.Timeout, b.log)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
		}
		b.site.User = o.REST.User
		b.orders = r
		if b.looks == nil {
			b.looks = r
		}
	}
	var err error
	if b.site.Launcher, err = launcherIn(b.site.WorkDir); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	if b.orders == nil {
		return nil, fmt.Errorf("cluster %s: neither rest nor cli nor ssh is configured: there is no way to Slurm", o.Name)
	}
	return b, nil
}

func setDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// Kind is "slurm".
func (b *Backend) Kind() string { return "slurm" }

// Capabilities say what the cluster can do.
func (b *Backend) Capabilities() backend.Capabilities {
	return backend.Capabilities{Dependencies: true, MaxArraySize: b.site.MaxArraySize, Folds: true, Containers: true, Launcher: true, Impersonates: b.impersonate}
}

// Check is what Slurm cannot say of a submission.
func (b *Backend) Check(s translators.Submission) translators.Faults {
	_, faults := slurm.Translate(b.siteOf(s.Job), s)
	if sentence := b.refuseUser(s); sentence != "" {
		faults.Add("slurm.user", "%s", sentence)
	}
	return faults
}

// Render is the text that sbatch would take.
func (b *Backend) Render(s translators.Submission) (translators.Rendering, translators.Faults) {
	if faults := b.Check(s); len(faults) > 0 {
		return translators.Rendering{}, faults
	}
	job, _ := slurm.Translate(b.siteOf(s.Job), s)
	return translators.Rendering{Text: job.Text(), Notices: job.Notices}, nil
}

// Close ends idle connections.
func (b *Backend) Close() error {
	return errors.Join(b.orders.close(), b.looks.close())
}

// parallel does something for each of n, some at a time.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i := range n {
		group.Go(func() error {
			do(ctx, i)
			return nil
		})
	}
	_ = group.Wait()
}
