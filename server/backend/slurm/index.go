package slurm

import (
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// clockSkew is by how much a submit time may lie before the moment from which it is looked for, which the gateway's clock tells.
const clockSkew = 5 * time.Minute

// place is a native job: an id alone may be another's by now, and a token may be copied by a stranger.
type place struct{ id, token, user string }

// index of a listing: all that it tells of jobs with a token of ours.
type index struct {
	jobs map[place]*indexed
	// owner is whose a known job is.
	owner func(*dagbridgev1.Job) string
	// unread are ids with a record that cannot be read, so that nothing about them is absent.
	unread map[string]bool
}

// indexed is all that a listing tells of one native job.
type indexed struct {
	single *record
	// elements of an array by position, and the record of those that none of them is about.
	elements map[int]*record
	rest     *record
}

// index sorts records that carry a token.
func (b *Backend) index(records []record) index {
	x := index{map[place]*indexed{}, b.userOf, map[string]bool{}}
	for i := range records {
		r := &records[i]
		if r.unread {
			x.unread[r.id] = true
			b.odd("a job in Slurm's answer cannot be read", r.id)
			continue
		}
		token := r.token()
		if token == "" {
			continue
		}
		at := place{r.id, token, r.owner()}
		job := x.jobs[at]
		if job == nil {
			job = &indexed{elements: map[int]*record{}}
			x.jobs[at] = job
		}
		job.add(r)
	}
	return x
}

// odd logs what is odd about something, once.
func (b *Backend) odd(message, what string) {
	if _, logged := b.oddities.LoadOrStore(message+what, true); !logged {
		b.log.Warn(message, "what", what)
	}
}

// add takes a record in. Of several of the same thing, as accounting has them of a requeued job, the last submitted counts.
func (j *indexed) add(r *record) {
	later := func(have *record) *record {
		if have != nil && have.submit.After(r.submit) {
			return have
		}
		return r
	}
	switch {
	case r.rest:
		j.rest = r
	case r.positions == nil:
		j.single = later(j.single)
	default:
		for _, position := range r.positions {
			j.elements[position] = later(j.elements[position])
		}
	}
}

// job is what there is of a known job; nil when there is nothing.
func (x index) job(ref backend.NativeRef, job *dagbridgev1.Job) *indexed {
	if found := x.jobs[place{ref.ID, ref.Token, x.owner(job)}]; found != nil {
		return found
	}
	return x.jobs[place{ref.ID, ref.Token, ""}]
}

// at is the record of a native job at a position of its array, -1 without; nil when there is none.
func (x index) at(k backend.Known, position int) *record {
	job := x.job(k.Ref, k.Job)
	if job == nil {
		return nil
	}
	r := job.single
	if position >= 0 {
		if r = job.elements[position]; r == nil {
			r = job.rest
		}
	}
	if r != nil && !r.submit.IsZero() && r.submit.Before(k.Ref.SubmitTime.Add(-clockSkew)) {
		return nil
	}
	return r
}

// has says whether the listing has anything of an array.
func (x index) has(k backend.Known) bool {
	job := x.job(k.Ref, k.Job)
	return job != nil && job.single == nil
}

// live says whether the controller has something of a job that has not ended.
func (j *indexed) live(position int) bool {
	if r := j.elements[position]; r != nil {
		return !r.ended()
	}
	return j.rest != nil && !j.rest.ended()
}

// positionsOf are an array's positions that have not ended, -1 alone for a single job.
func positionsOf(k backend.Known) []int {
	if len(k.Positions) == 0 {
		return []int{-1}
	}
	return k.Positions
}
