package bridge

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/graph"
)

const (
	// changesAtOnce is how many changes one look at the log takes.
	changesAtOnce = 1000
	// pace is how often a busy watch looks at the log: each look answers for all commits since the last one.
	pace = 10 * time.Millisecond
)

// WatchJobs sends the present state of what is asked for, then a bookmark, then changes as they come, and a bookmark whenever
// it has been quiet for a while. After each further request comes the present state of what it adds, and a bookmark again:
// an id that has got no state by then is unknown.
//
// Each watch reads the change log at its own speed, so a slow client holds up nobody; one that falls behind what the log
// keeps is told OUT_OF_RANGE. Present states carry no resume token: whoever loses the stream before the bookmark asks again.
func (b *Bridge) WatchJobs(stream grpc.BidiStreamingServer[dagbridgev1.WatchJobsRequest, dagbridgev1.WatchJobsResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	requests, broken := receive(ctx, stream)
	w := &watch{store: b.store, send: stream.Send, ids: map[string]bool{}, keys: map[string]bool{}, shown: map[string]bool{}}

	var first *dagbridgev1.WatchJobsRequest
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-broken:
		return err
	case first = <-requests:
	}
	if first == nil {
		return translators.Faults{{Description: "the stream was closed before it said what to watch"}}
	}
	if err := w.begin(first); err != nil {
		return err
	}
	quiet := time.NewTimer(b.heartbeat)
	defer quiet.Stop()
	for {
		changed := b.store.Changed()
		sent, err := w.catchUp()
		if err != nil {
			return err
		}
		if sent {
			quiet.Reset(b.heartbeat)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			return err
		case req, open := <-requests:
			if !open {
				requests = nil // It says no more, and still listens.
				continue
			}
			if err := w.extend(req); err != nil {
				return err
			}
		case <-quiet.C:
			if err := w.bookmark(); err != nil {
				return err
			}
			quiet.Reset(b.heartbeat)
		case <-changed:
			time.Sleep(pace) // Not to wake for every commit of a busy store.
		}
	}
}

// receive hands on the requests of a stream until the client says no more, which closes requests, or it breaks.
func receive(ctx context.Context, stream grpc.BidiStreamingServer[dagbridgev1.WatchJobsRequest, dagbridgev1.WatchJobsResponse]) (<-chan *dagbridgev1.WatchJobsRequest, <-chan error) {
	requests := make(chan *dagbridgev1.WatchJobsRequest)
	broken := make(chan error, 1)
	go func() {
		for {
			req, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				close(requests)
				return
			}
			if err != nil {
				broken <- err
				return
			}
			select {
			case requests <- req:
			case <-ctx.Done():
				return
			}
		}
	}()
	return requests, broken
}

// watch is what one stream watches, and how far it has come.
type watch struct {
	store *store.Store
	send  func(*dagbridgev1.WatchJobsResponse) error

	ids  map[string]bool
	keys map[string]bool
	// filter is nil when there is none.
	filter *dagbridgev1.JobFilter
	// shown are, of a filter by state, the jobs it has chosen: each is sent once more when it leaves the state.
	shown map[string]bool
	// seq is the last change that was looked at.
	seq uint64
	// silent: a resumed watch begins, whose client knows the present states.
	silent bool
	// backlog is the last change before a resumed watch began. Of the changes up to it nobody knows which jobs the filter had
	// chosen before, so its states are not looked at.
	backlog uint64
}

func (w *watch) begin(req *dagbridgev1.WatchJobsRequest) error {
	if len(req.GetIds())+len(req.GetKeys()) == 0 && req.GetFilter() == nil {
		return translators.Faults{{Field: "filter", Description: "say what to watch: ids, keys or a filter ({} chooses all jobs)"}}
	}
	if req.GetResumeToken() == "" {
		w.seq = w.store.Seq()
		return w.add(req)
	}
	seq, err := w.store.ParseResumeToken(req.GetResumeToken())
	if err != nil {
		return err
	}
	w.seq, w.backlog, w.silent = seq, w.store.Seq(), true
	defer func() { w.silent = false }()
	return w.add(req)
}

func (w *watch) extend(req *dagbridgev1.WatchJobsRequest) error {
	if req.GetResumeToken() != "" {
		return translators.Faults{{Field: "resumeToken", Description: "belongs into the first request of a stream"}}
	}
	return w.add(req)
}

// present sends the present state of a job, if there is one.
func (w *watch) present(job *dagbridgev1.Job, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && w.silent:
		return nil
	case err != nil:
		return err
	}
	return w.send(&dagbridgev1.WatchJobsResponse{Job: job})
}

// add changes what is watched, and sends the present state of what it adds.
func (w *watch) add(req *dagbridgev1.WatchJobsRequest) error {
	for _, id := range req.GetRemoveIds() {
		delete(w.ids, id)
	}
	for _, id := range req.GetIds() {
		w.ids[id] = true
		if err := w.present(w.store.Job(id)); err != nil {
			return err
		}
	}
	for _, key := range req.GetKeys() {
		key = withDeployment(key)
		w.keys[graph.KeyString(key)] = true
		if err := w.present(w.store.Lookup(key, 0)); err != nil {
			return err
		}
	}
	if req.GetFilter() != nil {
		w.filter, w.shown = req.GetFilter(), map[string]bool{}
		if err := w.list(); err != nil {
			return err
		}
	}
	return w.bookmark()
}

// list sends the jobs that the filter chooses now.
func (w *watch) list() error {
	if w.silent && len(w.filter.GetState()) == 0 {
		return nil
	}
	for token := ""; ; {
		jobs, next, _, err := w.store.List(w.filter, store.MaxPageSize, token)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			w.show(job)
			if err := w.present(job, nil); err != nil {
				return err
			}
		}
		if token = next; token == "" {
			return nil
		}
	}
}

func (w *watch) show(job *dagbridgev1.Job) {
	if len(w.filter.GetState()) > 0 {
		w.shown[job.GetId()] = true
	}
}

// catchUp sends the changes since the last look, and says whether there were any to send.
func (w *watch) catchUp() (sent bool, err error) {
	for {
		changes, last, err := w.store.Changes(w.seq, changesAtOnce)
		if err != nil {
			return sent, err
		}
		for _, change := range changes {
			wanted, err := w.wants(change)
			if err != nil {
				return sent, err
			}
			if !wanted {
				continue
			}
			sent = true
			if err := w.send(&dagbridgev1.WatchJobsResponse{Job: change.Job, ResumeToken: w.store.ResumeToken(change.Seq)}); err != nil {
				return sent, err
			}
		}
		if last == w.seq {
			return sent, nil
		}
		w.seq = last
	}
}

func (w *watch) wants(change store.Change) (bool, error) {
	job := change.Job
	if w.ids[job.GetId()] {
		return true, nil
	}
	if w.keys[graph.KeyString(job.GetKey())] {
		newest, err := w.store.Lookup(job.GetKey(), 0)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		if newest.GetId() == job.GetId() {
			return true, nil
		}
	}
	if w.filter == nil {
		return false, nil
	}
	if store.Match(w.filter, job) {
		w.show(job)
		return true, nil
	}
	if w.shown[job.GetId()] {
		delete(w.shown, job.GetId())
		return true, nil
	}
	if change.Seq <= w.backlog && len(w.filter.GetState()) > 0 {
		anyState := proto.CloneOf(w.filter)
		anyState.State = nil
		return store.Match(anyState, job), nil
	}
	return false, nil
}

func (w *watch) bookmark() error {
	return w.send(&dagbridgev1.WatchJobsResponse{ResumeToken: w.store.ResumeToken(w.seq)})
}
