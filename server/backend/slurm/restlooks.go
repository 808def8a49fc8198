package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// listing is a complete answer of GET /jobs, of which only the jobs with a token of the gateway's are kept.
type listing struct {
	records []record
	// asOf is the latest moment, by slurmctld's clock, that the listing speaks of: it was made then or later.
	asOf int64
	// size is how many jobs it told of.
	size int
}

// listings remembers the last one.
type listings struct {
	mu sync.Mutex
	// last complete listing, which "unchanged" repeats.
	last listing
	// size of the last complete listing.
	size atomic.Int64
}

// dearer is how many jobs of a listing cost as much as to ask for one by its id: 17 s for 10,000, 30 ms for one.
const dearer = 20

// fewToAsk is up to how many jobs are asked for by their ids, whatever the size of the listing.
const fewToAsk = 8

func (r *rest) jobs(ctx context.Context, ids []string) ([]record, error) {
	if len(ids) == 0 || len(ids) > fewToAsk && r.dear(len(ids)) {
		return r.everything(ctx)
	}
	found, err := r.each(ctx, ids)
	var all []record
	for _, records := range found {
		all = append(all, records...)
	}
	return all, err
}

// dear says whether so many jobs are cheaper to find in the listing of everything.
func (r *rest) dear(jobs int) bool { return jobs*dearer >= int(r.listings.size.Load()) }

// each asks for jobs one by one.
func (r *rest) each(ctx context.Context, ids []string) ([][]record, error) {
	found := make([][]record, len(ids))
	errs := make([]error, len(ids))
	parallel(ctx, len(ids), func(ctx context.Context, i int) {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		var l listing
		l, errs[i] = r.list(ctx, func(d *dialect) (call, error) { return call{method: http.MethodGet, path: d.job(ids[i])}, nil })
		found[i] = l.records
	})
	return found, errors.Join(errs...)
}

// everything is the whole table of the controller. While nothing has changed since the last one slurmrestd says only that.
func (r *rest) everything(ctx context.Context) ([]record, error) {
	r.listings.mu.Lock()
	defer r.listings.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 4*r.timeout)
	defer cancel()
	last := r.listings.last
	l, err := r.list(ctx, func(d *dialect) (call, error) {
		path := d.jobs()
		if last.asOf > 0 {
			path += "?update_time=" + d.since(time.Unix(last.asOf, 0))
		}
		return call{method: http.MethodGet, path: path}, nil
	})
	if errors.Is(err, errUnchanged) {
		return last.records, nil
	}
	if err != nil {
		r.listings.last = listing{}
		return nil, err
	}
	r.listings.last = l
	r.listings.size.Store(int64(l.size))
	return l.records, nil
}

var errUnchanged = errors.New("nothing has changed")

// list reads an answer of the controller with jobs.
func (r *rest) list(ctx context.Context, say func(*dialect) (call, error)) (listing, error) {
	var l listing
	err := r.read(ctx, say, func(raw json.RawMessage) {
		l.size++
		var job controllerJob
		if err := json.Unmarshal(raw, &job); err != nil {
			l.records = append(l.records, unreadable(raw))
			return
		}
		record := job.record()
		if record.token() != "" {
			l.records = append(l.records, record)
		}
		native, known := record.native()
		moments := []number{job.Submit, job.Evaluated}
		if known && ended(native.State) { // of a live job it is the expected end
			moments = append(moments, job.End)
		}
		for _, moment := range moments {
			l.asOf = max(l.asOf, moment.value)
		}
	})
	return l, err
}

// unreadable is the record of a job of which no more than the id can be read.
func unreadable(raw json.RawMessage) record {
	var job struct {
		JobID      json.RawMessage `json:"job_id"`
		ArrayJobID json.RawMessage `json:"array_job_id"`
	}
	_ = json.Unmarshal(raw, &job)
	var id, array number
	_ = json.Unmarshal(job.JobID, &id)
	_ = json.Unmarshal(job.ArrayJobID, &array)
	if array.value > 0 {
		id = array
	}
	return record{id: strconv.FormatInt(id.value, 10), unread: true}
}

// read hands over the jobs of an answer one by one; it is an error when the answer is not complete.
func (r *rest) read(ctx context.Context, say func(*dialect) (call, error), visit func(json.RawMessage)) error {
	answer, err := r.do(ctx, say)
	if err != nil {
		return err
	}
	defer func() { _ = answer.body.Close() }()
	if answer.status == http.StatusNotModified {
		return errUnchanged
	}
	s, err := decodeJobs(answer.body, visit)
	if err != nil {
		return fmt.Errorf("slurmrestd at %s answers %d, and not with a complete list of jobs: %w", r.URL, answer.status, err)
	}
	for _, e := range s.Errors {
		switch e.number() {
		case errnoInvalidJobID, errnoNothingFound:
		case -1:
			return fmt.Errorf("%s: slurmctld does not answer slurmrestd, or refuses the token in %s (user %s)", e.sentence(), r.TokenFile, r.User)
		default:
			return errors.New(e.sentence())
		}
	}
	for _, w := range s.Warnings {
		switch {
		case w.unchanged():
			return errUnchanged
		case w.unknownField(): // a filter that was ignored, so that the answer is to another question
			return errors.New("slurmrestd did not understand the question: " + w.sentence())
		}
	}
	return nil
}

// seesAll: a token that acts as others is root's or SlurmUser's, and is told of everything.
func (r *rest) seesAll(context.Context) error { return nil }

// accountedChunk is how many jobs are asked for in one address.
const accountedChunk = 100

func (r *rest) accountedByID(ctx context.Context, ids []string) ([]record, error) {
	return r.accounted(ctx, "step", ids, time.Time{})
}

func (r *rest) accountedByName(ctx context.Context, names []string, since time.Time) ([]record, error) {
	return r.accounted(ctx, "job_name", names, since)
}

func (r *rest) accounted(ctx context.Context, parameter string, values []string, since time.Time) ([]record, error) {
	var all []record
	for len(values) > 0 {
		n := min(len(values), accountedChunk)
		some := values[:n]
		values = values[n:]
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		err := r.read(ctx, func(d *dialect) (call, error) {
			if !d.accounting {
				return call{}, errNoAccounting // the plug-in for slurmdbd is not loaded: the site has none
			}
			query := url.Values{"skip_steps": {"true"}, parameter: d.many(some)}
			if !since.IsZero() {
				query.Set("start_time", fmt.Sprintf("uts%d", since.Unix()))
			}
			return call{method: http.MethodGet, path: d.accounted() + "?" + query.Encode()}, nil
		}, func(raw json.RawMessage) {
			var job accountedJob
			if err := json.Unmarshal(raw, &job); err != nil {
				all = append(all, unreadable(raw))
				return
			}
			all = append(all, job.record())
		})
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
