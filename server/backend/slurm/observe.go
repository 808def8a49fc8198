package slurm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// Observe looks at the cluster every now and then, while there is anything to look for.
func (b *Backend) Observe(ctx context.Context, known func() []backend.Known, emit func(backend.News)) {
	o := observer{b: b, emit: emit}
	defer o.follows.Wait()
	p := newPace(b.pollInterval, b.minJobAge)
	for {
		if jobs := known(); len(jobs) > 0 {
			p.told(o.look(ctx, jobs))
		} else {
			p.told(true) // the next job is looked at soon
		}
		if !p.wait(ctx, b.ordered) {
			return
		}
	}
}

// order notes that something was asked of the cluster, which the next looks should show.
func (b *Backend) order() {
	select {
	case b.ordered <- struct{}{}:
	default: // the observer will see the one before
	}
}

// observer is one Observe: what it must remember from one look to the next.
type observer struct {
	b    *Backend
	emit func(backend.News)
	// telling is held while news is told, one piece at a time.
	telling sync.Mutex
	// following: there is a follow, one at a time; what it remembers is below. follows are waited for at the end.
	following atomic.Bool
	follows   sync.WaitGroup
	// lagging are jobs that the controller has no more and of which accounting has not all yet, since when.
	lagging map[instance]time.Time
	// shown is what the last look has shown of each job.
	shown map[instance]shown
	// accountingFrom is when accounting, having failed, is asked again: it may have hung until our patience ended.
	accountingFrom time.Time
}

// instance is a native job or one element of an array.
type instance struct {
	id, token string
	position  int
}

// shown is what moves when a job does. Why it waits changes with every other's coming and going, and is none of it.
type shown struct {
	state                dagbridgev1.Job_State
	held, neverSatisfied bool
	dependencies         int
	node                 string
}

// show takes in what a look has shown, and says whether it is anything new.
func (o *observer) show(news []backend.Observation) bool {
	now := make(map[instance]shown, len(news))
	for _, n := range news {
		now[instance{n.Ref.ID, n.Ref.Token, n.Position}] = shown{n.State, n.Held, n.NeverSatisfied, len(n.Dependencies), n.Node}
	}
	same := maps.Equal(now, o.shown)
	o.shown = now
	return !same
}

// absent is a job that a complete listing of the controller lacks.
type absent struct {
	known    backend.Known
	position int
	// array: other elements of its array are there.
	array bool
	// doubtful: it may be among the waiting elements of its array after all, whose list was cut short.
	doubtful bool
	// cancelled: the controller has it after all, as cancelled by somebody who is yet to be found out.
	cancelled *record
}

func (o *observer) tell(news backend.News) {
	o.telling.Lock()
	defer o.telling.Unlock()
	o.emit(news)
}

// look asks the controller about all, tells what it knows, and goes after the rest beside the looks to come, so that an
// accounting that hangs holds up no news of live jobs. It says whether anything has moved since the last look, or is still to
// be found out.
func (o *observer) look(ctx context.Context, jobs []backend.Known) bool {
	asOf := time.Now()
	ids := make([]string, len(jobs))
	for i, job := range jobs {
		ids[i] = job.Ref.ID
	}
	// its folder was made, be it by a gateway before this one
	home := o.b.home(jobs[0].Job)
	o.b.used.CompareAndSwap(nil, &home)
	records, err := o.b.looks.watch(ctx, slices.Compact(slices.Sorted(slices.Values(ids))))
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		o.tell(backend.News{AsOf: asOf, Err: err})
		return false
	}
	x := o.b.index(records)
	elements := 0
	for _, k := range jobs {
		elements += len(positionsOf(k))
	}
	news := make([]backend.Observation, 0, elements)
	var missing []absent
	for _, k := range jobs {
		var last *record
		for _, position := range positionsOf(k) {
			r := x.at(k, position)
			switch {
			case r != nil && r.rest && (r.ended() || o.b.markers(k.Job, k.Ref.Token, position).started):
				// an element that ended long ago is in no record, and not in this one either
				missing = append(missing, absent{known: k, position: position, array: true, doubtful: !r.ended()})
			case r != nil && r == last && r.waiting():
				alike := news[len(news)-1] // what the record tells of all its elements
				alike.Position = position
				news = append(news, alike)
			case r != nil && o.b.unasked(k, position, r):
				missing = append(missing, absent{known: k, position: position, array: x.has(k), cancelled: r})
			case r != nil:
				news, last = append(news, o.b.observe(k, position, r)), r
			case !x.unread[k.Ref.ID]:
				missing = append(missing, absent{known: k, position: position, array: x.has(k)})
			}
		}
	}
	server := o.b.orders.server()
	moved := o.show(news)
	o.tell(backend.News{AsOf: asOf, Server: server, Observations: news})
	if len(missing) == 0 {
		return moved
	}
	if o.following.CompareAndSwap(false, true) {
		o.follows.Go(func() {
			defer o.following.Store(false)
			if news := o.follow(ctx, missing); len(news) > 0 && ctx.Err() == nil {
				o.tell(backend.News{AsOf: asOf, Server: server, Observations: news})
			}
		})
	}
	return true
}

// follow finds out what became of jobs that the controller does not have, and who has cancelled those that never started.
func (o *observer) follow(ctx context.Context, missing []absent) []backend.Observation {
	x, late, err := o.accounting(ctx, missing)
	noAccounting := errors.Is(err, errNoAccounting)
	if err != nil && !noAccounting && !errors.Is(err, errResting) { // said when it is asked, not at every look
		o.b.log.Warn("accounting does not answer; jobs that the controller has forgotten are left as they are", "error", err, "jobs", len(missing))
	}
	before := o.lagging
	o.lagging = map[instance]time.Time{}
	var news []backend.Observation
	for _, job := range missing {
		r := x.at(job.known, job.position)
		if r != nil && r.ended() && !r.writtenOff() && (!r.end.IsZero() || o.lagged(before, job)) { // accounting may have a state first, and the rest later
			news = append(news, o.b.observe(job.known, job.position, r))
			continue
		}
		if job.cancelled != nil && noAccounting {
			news = append(news, o.b.observe(job.known, job.position, job.cancelled))
			continue
		}
		m := o.b.markers(job.known.Job, job.known.Ref.Token, job.position)
		gone := backend.Observation{Ref: job.known.Ref, Position: job.position, Gone: true, Started: m.started || m.deleted}
		switch {
		case m.of(job.known.Ref):
			m.observe(&gone)
			news = append(news, gone)
		case err != nil && !noAccounting, x.unread[job.known.Ref.ID], job.doubtful, (r != nil || job.cancelled != nil) && !o.lagged(before, job), late:
		case m.err != nil:
			o.b.log.Warn("the folder of a job that Slurm has forgotten cannot be read", "job", job.known.Job.GetId(), "error", m.err)
		case job.cancelled != nil:
			gone.Message = "the controller calls it " + job.cancelled.sentence() + " before it started, and accounting names nobody who has cancelled it"
			news = append(news, gone)
		case job.array && !gone.Started:
			// an element that is cancelled while it waits vanishes from its array, and accounting never hears of it
			gone.Gone, gone.State, gone.EndTime = false, dagbridgev1.Job_CANCELLED, time.Now()
			gone.Message = "Slurm has the array, and this element no more: it was cancelled before it started"
			news = append(news, gone)
		default:
			gone.Message = "neither the controller nor accounting has it"
			if r != nil {
				gone.Message = "the controller does not have it; accounting still has it as " + r.sentence()
			} else if noAccounting {
				gone.Message = "the controller does not have it, and the site keeps no accounting"
			}
			if m.deleted {
				gone.Message += "; its folder has been deleted, so that nothing tells whether it ran"
			}
			news = append(news, gone)
		}
	}
	return news
}

// lagged says whether accounting has called a job live for so long that it is not its delay any more: the controller lost
// the job, and nobody will ever tell accounting of an end.
func (o *observer) lagged(before map[instance]time.Time, job absent) bool {
	at := instance{job.known.Ref.ID, job.known.Ref.Token, job.position}
	since, have := before[at]
	if !have {
		since = time.Now()
	}
	o.lagging[at] = since
	return time.Since(since) >= o.b.accountingLag
}

var errResting = errors.New("accounting has failed, and is asked again in a while")

// accounting is what accounting has of the missing, and whether it is late: slurmctld still has something to tell it. That is
// asked first, since what arrives in between is in the answer. After a failure accounting is left alone for longer than the
// failure took.
func (o *observer) accounting(ctx context.Context, missing []absent) (x index, late bool, err error) {
	began := time.Now()
	if began.Before(o.accountingFrom) {
		return o.b.index(nil), false, errResting
	}
	var ids []string
	for _, job := range missing {
		ids = append(ids, job.known.Ref.ID)
	}
	untold, err := o.b.looks.untold(ctx)
	if err != nil {
		return o.b.index(nil), false, err
	}
	records, err := o.b.looks.accountedByID(ctx, slices.Compact(slices.Sorted(slices.Values(ids))))
	if err != nil && !errors.Is(err, errNoAccounting) {
		o.accountingFrom = time.Now().Add(4 * time.Since(began))
	}
	return o.b.index(records), untold > 0, err
}
