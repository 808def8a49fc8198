package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// listing is a complete answer of GET /jobs.
type listing struct {
	records []record
	// asOf is the latest moment, by slurmctld's clock, that the listing speaks of: it was made then or later.
	asOf int64
}

// dearer is how many jobs of a listing cost as much as to ask for one by its id: 17 s for 10,000, 30 ms for one.
const dearer = 20

func (r *rest) jobs(ctx context.Context, ids []string) ([]record, error) {
	if len(ids) == 0 || len(ids)*dearer >= int(r.size.Load()) {
		return r.everything(ctx)
	}
	found := make([][]record, len(ids))
	errs := make([]error, len(ids))
	parallel(ctx, len(ids), func(ctx context.Context, i int) {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		var l listing
		l, errs[i] = r.list(ctx, pathJob+ids[i])
		found[i] = l.records
	})
	var all []record
	for _, records := range found {
		all = append(all, records...)
	}
	return all, errors.Join(errs...)
}

// everything is the whole table of the controller. While nothing has changed since the last one slurmrestd says only that.
func (r *rest) everything(ctx context.Context) ([]record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 4*r.timeout)
	defer cancel()
	path := pathJobs
	if r.last.asOf > 0 {
		path += "?update_time=" + strconv.FormatInt(r.last.asOf, 10)
	}
	l, err := r.list(ctx, path)
	if errors.Is(err, errUnchanged) {
		return r.last.records, nil
	}
	if err != nil {
		r.last = listing{}
		return nil, err
	}
	r.last = l
	r.size.Store(int64(len(l.records)))
	return l.records, nil
}

var errUnchanged = errors.New("nothing has changed")

// list reads an answer of the controller with jobs.
func (r *rest) list(ctx context.Context, path string) (listing, error) {
	var l listing
	err := r.read(ctx, path, func(raw json.RawMessage) {
		var job controllerJob
		if err := json.Unmarshal(raw, &job); err != nil {
			l.records = append(l.records, unreadable(raw))
			return
		}
		record := job.record()
		l.records = append(l.records, record)
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
func (r *rest) read(ctx context.Context, path string, visit func(json.RawMessage)) error {
	answer, err := r.do(ctx, r.User, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.body.Close() }()
	switch answer.status {
	case http.StatusNotModified:
		return errUnchanged
	case http.StatusNotFound:
		return errNoAccounting // the plug-in for slurmdbd is not loaded: the site has none
	}
	errs, err := decodeJobs(answer.body, visit)
	if err != nil {
		return fmt.Errorf("slurmrestd at %s answers %d, and not with a complete list of jobs: %w", r.URL, answer.status, err)
	}
	for _, e := range errs {
		switch e.number() {
		case errnoInvalidJobID, errnoNothingFound:
		case -1:
			return fmt.Errorf("%s: slurmctld does not answer slurmrestd, or refuses the token in %s (user %s)", e.sentence(), r.TokenFile, r.User)
		default:
			return errors.New(e.sentence())
		}
	}
	return nil
}

// accountedChunk is how many jobs are asked for in one address.
const accountedChunk = 100

func (r *rest) accountedByID(ctx context.Context, ids []string) ([]record, error) {
	return r.accounted(ctx, "step", ids, nil)
}

func (r *rest) accountedByName(ctx context.Context, names []string, since time.Time) ([]record, error) {
	return r.accounted(ctx, "job_name", names, url.Values{"start_time": {fmt.Sprintf("uts%d", since.Unix())}})
}

func (r *rest) accounted(ctx context.Context, parameter string, values []string, query url.Values) ([]record, error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("skip_steps", "true")
	var all []record
	for len(values) > 0 {
		n := min(len(values), accountedChunk)
		query.Set(parameter, strings.Join(values[:n], ","))
		values = values[n:]
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		err := r.read(ctx, pathAccounting+"?"+query.Encode(), func(raw json.RawMessage) {
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
