package slurm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// watchlist are the jobs of the last look, where slurmrestd lists states alone: a job is asked for again only when its state
// has changed, or when what the listing leaves out may have. It is for watching; before a job is acted upon it is asked for
// afresh, since its id may be another's by now.
type watchlist struct {
	mu   sync.Mutex
	jobs map[string]*watchedJob
	// altered are jobs about which something was ordered since the last look.
	altered map[string]bool
}

// watchedJob is a job, or a whole array, as it was when it was last asked for.
type watchedJob struct {
	// states is a sum over the states of all its elements.
	states  uint64
	records []record
	read    time.Time
}

const (
	// fresh is for how long a waiting job's reason, hold and dependencies count without being asked for again.
	fresh = 30 * time.Second
	// refreshed is how many waiting jobs at most are asked for again in one look, the longest unread first.
	refreshed = 50
	// askedByID is up to how many jobs the listing of states is asked for by id.
	askedByID = 100
)

// alter notes that something was ordered about a job.
func (w *watchlist) alter(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.altered == nil {
		w.altered = map[string]bool{}
	}
	id, _, _ = strings.Cut(id, "_")
	w.altered[id] = true
}

// forget is for when a look failed: what was known before an outage proves nothing after it.
func (w *watchlist) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = nil
}

// watch is jobs, for who looks again and again.
func (r *rest) watch(ctx context.Context, ids []string) ([]record, error) {
	d, err := r.spoken(ctx)
	if err != nil {
		return nil, err
	}
	if !d.states {
		return r.jobs(ctx, ids)
	}
	records, err := r.changed(ctx, ids)
	if err != nil {
		r.watched.forget()
	}
	return records, err
}

// changed asks for the states of all jobs, and then for those jobs of which it must know more.
func (r *rest) changed(ctx context.Context, ids []string) ([]record, error) {
	w := &r.watched
	w.mu.Lock()
	before, altered := w.jobs, w.altered
	w.altered = nil
	w.mu.Unlock()

	states, err := r.states(ctx, append(slices.Clone(ids), dependenciesOf(before)...), before)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	jobs := map[string]*watchedJob{}
	var again, waiting []string
	for _, id := range ids {
		job := before[id]
		switch {
		case job == nil, job.states != states[id].sum, altered[id]:
			again = append(again, id)
		case job.due(states, now):
			waiting = append(waiting, id)
		}
		if job == nil {
			job = &watchedJob{}
		}
		jobs[id] = job
	}
	slices.SortFunc(waiting, func(a, b string) int { return cmp.Or(jobs[a].read.Compare(jobs[b].read), strings.Compare(a, b)) })
	again = append(again, waiting[:min(len(waiting), refreshed)]...)
	read, err := r.byID(ctx, again)
	if err != nil {
		return nil, err
	}
	for _, id := range again {
		jobs[id] = &watchedJob{states: states[id].sum, records: read[id], read: now}
	}
	w.mu.Lock()
	w.jobs = jobs
	w.mu.Unlock()
	all := make([]record, 0, len(jobs))
	for _, job := range jobs {
		all = append(all, job.records...)
	}
	return all, nil
}

// due says whether a waiting job is to be asked for again, although its state is the same: something that it waits for has
// ended, or it was asked long ago.
func (j *watchedJob) due(states map[string]stateSum, now time.Time) bool {
	for i := range j.records {
		r := &j.records[i]
		if r.waiting() {
			dependencies, _ := r.dependencies()
			return now.Sub(j.read) >= fresh || slices.ContainsFunc(dependencies, func(id string) bool {
				id, _, _ = strings.Cut(id, "_")
				return states[id].live == 0
			})
		}
	}
	return false
}

// dependenciesOf are the jobs that others wait for.
func dependenciesOf(jobs map[string]*watchedJob) []string {
	var ids []string
	for _, job := range jobs {
		for i := range job.records {
			dependencies, _ := job.records[i].dependencies()
			for _, id := range dependencies {
				id, _, _ = strings.Cut(id, "_")
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// byID asks for jobs, each by its id or all at once, whichever is cheaper.
func (r *rest) byID(ctx context.Context, ids []string) (map[string][]record, error) {
	read := map[string][]record{}
	if len(ids) > fewToAsk && r.dear(len(ids)) {
		records, err := r.everything(ctx)
		for _, record := range records {
			read[record.id] = append(read[record.id], record)
		}
		return read, err
	}
	found, err := r.each(ctx, ids)
	for i, id := range ids {
		read[id] = found[i]
	}
	return read, err
}

// stateSum is what the listing of states tells of a job; zero when it has nothing of it.
type stateSum struct {
	// sum over its elements, in whatever order they come.
	sum uint64
	// live is how many of them have not ended.
	live int
}

// states lists the states of jobs, by id. 26.05 lists an element of an array as "65_1", by an id of its own, once it has
// started: those that were seen are known for what they are.
func (r *rest) states(ctx context.Context, ids []string, seen map[string]*watchedJob) (map[string]stateSum, error) {
	base := map[string]string{}
	for _, job := range seen {
		for i := range job.records {
			base[job.records[i].own] = job.records[i].id
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, id := range ids {
		base[id] = id
	}
	ctx, cancel := context.WithTimeout(ctx, 4*r.timeout)
	defer cancel()
	sums := map[string]stateSum{}
	var unreadable error
	size := 0
	err := r.read(ctx, func(d *dialect) (call, error) {
		path := d.jobStates()
		if len(ids) <= askedByID {
			path += "?" + url.Values{"job_id": ids}.Encode()
		}
		return call{method: http.MethodGet, path: path}, nil
	}, func(raw json.RawMessage) {
		size++
		var job struct {
			JobID string `json:"job_id"`
			State words  `json:"state"`
		}
		if err := json.Unmarshal(raw, &job); err != nil {
			unreadable = fmt.Errorf("a job in slurmrestd's list of states cannot be read: %w", err)
			return
		}
		own, position, _ := strings.Cut(job.JobID, "_")
		id, wanted := base[own]
		if !wanted {
			return
		}
		hash := fnv.New64a()
		fmt.Fprint(hash, position, job.State)
		s := sums[id]
		s.sum += hash.Sum64()
		if r := (record{words: job.State}); !r.ended() {
			s.live++
		}
		sums[id] = s
	})
	if err = cmp.Or(err, unreadable); err != nil {
		return nil, err
	}
	if len(ids) > askedByID {
		r.listings.size.Store(int64(size))
	}
	return sums, nil
}
