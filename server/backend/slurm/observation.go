package slurm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// Reasons of Slurm's that mean more than why a job waits.
const (
	reasonNeverSatisfied = "DependencyNeverSatisfied"
	reasonDependency     = "Dependency"
	reasonLaunchFailed   = "launch failed requeued held"
)

// reasonDuplicate: another native job of the same token had started before, and the program did not run.
const reasonDuplicate = "DUPLICATE"

// reasonPremature: an upstream that must have succeeded has not, and the program did not run.
const reasonPremature = "PREMATURE"

// reasonMarked: the mark of a cancel was there, and the program did not run.
const reasonMarked = "MARKED"

// signalNotLaunched is how Slurm tells that slurmd could not open the job's files (the lower bits of an error number of its own).
const signalNotLaunched = 53

// waiting says whether the record is of a job that is not running yet. A word that no table knows may be of one.
func (r *record) waiting() bool {
	native, known := r.native()
	return !known || native.State == dagbridgev1.Job_SUBMITTED
}

// ended says whether the record is of an end. A word that no table knows is never one.
func (r *record) ended() bool {
	native, known := r.native()
	return known && ended(native.State)
}

func ended(state dagbridgev1.Job_State) bool {
	switch state {
	case dagbridgev1.Job_SUCCEEDED, dagbridgev1.Job_FAILED, dagbridgev1.Job_CANCELLED, dagbridgev1.Job_LOST:
		return true
	default:
		return false
	}
}

// observe is what a record tells of a known job.
func (b *Backend) observe(k backend.Known, position int, r *record) backend.Observation {
	o := backend.Observation{Ref: k.Ref, Position: position, Message: r.sentence(), SubmitTime: r.submit}
	native, known := r.native()
	if !known {
		b.odd("no table knows this state of Slurm's: the job counts as live", r.sentence())
		return o
	}
	o.State, o.Reason, o.Infrastructure = native.State, native.Reason, native.Infrastructure
	if native.State == dagbridgev1.Job_SUBMITTED {
		b.observeWaiting(&o, r)
		return o
	}
	if r.node != "" { // of a job that never had a node, Slurm tells when it was cancelled as its start
		o.StartTime, o.Node = r.start, r.node
	}
	if ended(native.State) {
		b.observeEnd(&o, k, r)
	}
	return o
}

// writtenOff: accounting calls a job CANCELLED that slurmctld has lost, before it had started, or COMPLETED when its id has been
// given anew. What has succeeded has started, on some node. Of a job that somebody has cancelled it tells who and when, and of
// one whose dependency could not hold the reason.
func (r *record) writtenOff() bool {
	native, known := r.native()
	succeeded := known && native.State == dagbridgev1.Job_SUCCEEDED && r.killer == "" && r.node == ""
	return r.start.IsZero() && (succeeded || r.cancelledByNobody())
}

// cancelledByNobody: it is CANCELLED, never had a node, and neither somebody nor its dependency is named as the cause.
func (r *record) cancelledByNobody() bool {
	native, known := r.native()
	return known && native.State == dagbridgev1.Job_CANCELLED && r.killer == "" && r.node == "" && !r.dependencyFailed()
}

// dependencyFailed: the reason is a dependency that could not hold.
func (r *record) dependencyFailed() bool {
	return r.reason == reasonDependency || r.reason == reasonNeverSatisfied
}

// unasked: the controller calls it CANCELLED before it started, and no order of the gateway's tells why. A slurmctld that is
// killed again and again has been seen to do so to jobs that it had requeued, or could not start for long. Accounting tells who
// has cancelled it, when it was somebody.
func (b *Backend) unasked(k backend.Known, position int, r *record) bool {
	if !r.cancelledByNobody() || k.Job.GetCancelRequestTime() != nil {
		return false
	}
	marked, err := b.isMarked(k, position)
	return !marked && err == nil
}

// isMarked says whether a cancel has left its mark.
func (b *Backend) isMarked(k backend.Known, position int) (bool, error) {
	mark, err := b.readFile(k.Job, slurm.CancelMark(b.siteOf(k.Job), k.Job.GetId(), k.Ref.Token, position), 0)
	return mark != nil, err
}

// isHeld: it waits to be released.
func (r *record) isHeld() bool { return r.held || strings.HasPrefix(r.reason, "JobHeld") }

func (b *Backend) observeWaiting(o *backend.Observation, r *record) {
	if o.Reason == "" && r.reason != "None" {
		o.Reason = r.reason
	}
	o.Held = r.isHeld()
	o.LaunchFailed = r.reason == reasonLaunchFailed || r.description == reasonLaunchFailed
	o.NeverSatisfied = r.reason == reasonNeverSatisfied
	o.Dependencies, o.Failed = r.dependencies()
	o.DependenciesKnown = true
}

func (b *Backend) observeEnd(o *backend.Observation, k backend.Known, r *record) {
	o.EndTime = r.end
	switch {
	case o.State == dagbridgev1.Job_CANCELLED:
		// How the program took the signal is told in one answer of Slurm's and not in another. A reason that is older than
		// the start says nothing of the end.
		if r.node == "" && r.dependencyFailed() {
			o.Reason = "DEPENDENCY"
		}
	case o.State == dagbridgev1.Job_SUCCEEDED || r.exit != nil && *r.exit != 0:
		// a 0 beside an end like TIMEOUT is not the program's
		o.ExitCode, o.Signal = r.exit, r.signal
	}
	switch {
	case o.State != dagbridgev1.Job_FAILED && o.State != dagbridgev1.Job_CANCELLED:
	case o.Reason == "" && r.inVain() && (b.startForgotten(o, k) || b.refusedByNode(o, k, r)):
	case o.State == dagbridgev1.Job_CANCELLED, o.Infrastructure, o.Reason == "TIMEOUT":
		b.forgotten(o, k)
		b.markedFirst(o, k)
	case o.Reason == "":
		b.explain(o, k)
	}
}

// forgotten corrects what is no end of the job's: a slurmctld that was killed forgets ends of its last seconds, takes such a
// job for one that still runs or waits, and in the end for one that vanished with its node, had too little time or was
// cancelled. What came to its end unasked, before anybody sent it a signal, succeeded.
func (b *Backend) forgotten(o *backend.Observation, k backend.Known) {
	m := b.markers(k.Job, k.Ref.Token, o.Position)
	if m.of(k.Ref) && m.end.ExitCode == 0 && !m.end.Signalled {
		message := "Slurm calls it " + cmp.Or(o.Reason, o.State.String()) + "; its exit marker says that it had succeeded before"
		m.observe(o)
		o.Reason, o.Infrastructure, o.Message, o.Signal = "", false, message, nil
	}
}

// markedFirst: it was cancelled before it started, by the order that left the mark: perhaps not because anybody wanted an end,
// but because another token was to follow one that seemed to be gone.
func (b *Backend) markedFirst(o *backend.Observation, k backend.Known) {
	if o.State != dagbridgev1.Job_CANCELLED || o.Reason != "" || !o.StartTime.IsZero() {
		return
	}
	if marked, err := b.isMarked(k, o.Position); marked && err == nil {
		o.Reason = reasonMarked
	}
}

// inVain: it had no time to run at all. After a start that it forgot, slurmctld starts a job once more; the node may refuse
// that, and the job FAILED with a code that is not the program's, or is CANCELLED, and what the first start runs is killed. A
// signal, other than that by which Slurm tells an error of its own, has ended something that failed by itself; of a cancel by
// somebody accounting tells by whom. What Slurm ends by itself has root's name.
func (r *record) inVain() bool {
	cancelled := slices.Contains(r.words, "CANCELLED")
	somebody := r.killer != "" && r.killer != "0" && r.killer != "root"
	if somebody || !cancelled && r.signal != nil && *r.signal > 0 && *r.signal < signalNotLaunched {
		return false
	}
	return !r.start.IsZero() && !r.end.IsZero() && r.end.Sub(r.start) <= time.Second
}

// startForgotten: what the record tells of is another start of a job that had started before, and has not come to an end of its
// own: the node may have been told to end it first.
func (b *Backend) startForgotten(o *backend.Observation, k backend.Known) bool {
	m := b.markers(k.Job, k.Ref.Token, o.Position)
	if m.err != nil || m.startID != k.Ref.ID || m.unwritten || m.end != nil && !m.end.Signalled {
		return false
	}
	// one that was cancelled as soon as it ran had little time as well
	if o.State == dagbridgev1.Job_CANCELLED {
		if marked, err := b.isMarked(k, o.Position); marked || err != nil {
			return false
		}
	}
	startedTwice(o)
	return true
}

// refusedByNode: the node may not have started it, since a job with the same id still runs there, or was just killed, that
// slurmctld has forgotten. Slurm calls that CANCELLED, or FAILED with 1. Or it was cancelled as it started.
func (b *Backend) refusedByNode(o *backend.Observation, k backend.Known, r *record) bool {
	if r.node == "" || o.State == dagbridgev1.Job_FAILED && (r.exit == nil || *r.exit != 1) {
		return false
	}
	switch m := b.markers(k.Job, k.Ref.Token, o.Position); {
	case m.err != nil:
	case m.startID != "" && m.startID != k.Ref.ID:
		o.State, o.Reason, o.ExitCode, o.Signal = dagbridgev1.Job_FAILED, reasonDuplicate, nil, nil
		o.Message = "this try had been started by another job of Slurm's before; this one its node did not start"
		return true
	default:
		o.Refused = !m.started && m.end == nil
	}
	return o.Refused
}

// startedTwice: of the run that did start nothing is known. It may go on for a while, on a node that has not told of it.
func startedTwice(o *backend.Observation) {
	*o = backend.Observation{
		Ref: o.Ref, Position: o.Position, Gone: true, Started: true, SubmitTime: o.SubmitTime,
		Message: "Slurm had started it, forgot that, and started it once more, in vain; it knows nothing of what became of the first run",
	}
}

// explain adds to a program's failure what only the job's folder tells.
func (b *Backend) explain(o *backend.Observation, k backend.Known) {
	m := b.markers(k.Job, k.Ref.Token, o.Position)
	switch {
	case m.of(k.Ref) && o.ExitCode != nil && *o.ExitCode == slurm.ExitDuplicate && m.end.ExitCode != slurm.ExitDuplicate:
		m.observe(o) // it had ended, and Slurm, which forgot that, started it once more
	case m.of(k.Ref):
		m.explain(o)
	case o.ExitCode == nil || m.err != nil:
	case *o.ExitCode == slurm.ExitDuplicate && m.startID == k.Ref.ID:
		startedTwice(o)
	case *o.ExitCode == slurm.ExitDuplicate:
		o.Reason, o.Message = reasonDuplicate, "this try had been started by another job of Slurm's before; the program did not run"
	case *o.ExitCode == slurm.ExitPremature:
		o.Reason, o.Message = reasonPremature, "Slurm started it before what it waits for had succeeded; the program did not run"
	case *o.ExitCode == slurm.ExitCancelled:
		o.State, o.Reason, o.ExitCode, o.Message = dagbridgev1.Job_CANCELLED, reasonMarked, nil, "Slurm started it although it had been cancelled; the program did not run"
	case m.started: // the program ran, and that is how it ended
	case *o.ExitCode == slurm.ExitNoFolder:
		b.notLaunched(o, k, "could not be written to")
	case o.Signal != nil && *o.Signal == signalNotLaunched:
		b.notLaunched(o, k, "could not be opened")
	}
}

// notLaunched: the program never ran, for want of its folder on the node.
func (b *Backend) notLaunched(o *backend.Observation, k backend.Known, why string) {
	o.Reason, o.Infrastructure, o.ExitCode, o.Signal = "LAUNCH_FAILED", true, nil, nil
	o.Message = "the folder " + slurm.Dir(b.siteOf(k.Job), k.Job.GetId()) + " " + why + " on " + o.Node + "; the program did not run"
}
