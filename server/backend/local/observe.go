package local

import (
	"context"
	"fmt"
	"os"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

const (
	// soonest and latest a look follows another. After something has happened looks go on for a while, since known may not
	// have the job yet that it happened to.
	soonest = 20 * time.Millisecond
	latest  = time.Second
	// refresh is how often news is told that was told before: whoever lost an order learns that it is still to be given.
	refresh = 5 * time.Second
)

// Observe looks when something has happened, and tells what is new.
func (b *Backend) Observe(ctx context.Context, known func() []backend.Known, emit func(backend.News)) {
	told := map[backend.NativeRef]word{}
	refreshed := time.Now()
	delay := soonest
	for {
		if time.Since(refreshed) > refresh {
			told, refreshed = nil, time.Now()
		}
		asOf := time.Now()
		if refs := known(); len(refs) > 0 {
			var news []backend.Observation
			var err error
			news, told, err = b.look(refs, told)
			if err != nil {
				emit(backend.News{AsOf: asOf, Err: err})
			} else if len(news) > 0 {
				emit(backend.News{AsOf: asOf, Observations: news})
			}
		} else {
			told = nil
		}
		noticed, goesOn := backend.Pause(ctx, b.notify, soonest, delay)
		if !goesOn {
			return
		}
		if delay = min(2*delay, latest); noticed {
			delay = soonest
		}
	}
}

// word is what tells one observation of a job from the next.
type word struct {
	state   dagbridgev1.Job_State
	held    bool
	gone    bool
	message string
}

// look tells what of the jobs is not what was told, and what has been told now: nothing when it fails.
func (b *Backend) look(refs []backend.Known, told map[backend.NativeRef]word) ([]backend.Observation, map[backend.NativeRef]word, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, nil, err
	}
	// Had the whole folder been taken away, nothing that it lacks would be proven gone.
	if _, err := os.Stat(b.queueDir()); err != nil {
		return nil, nil, fmt.Errorf("the folder of the local cluster %s cannot be seen: %w", b.options.Name, err)
	}
	var news []backend.Observation
	now := make(map[backend.NativeRef]word, len(refs))
	for _, known := range refs {
		last, before := told[known.Ref]
		if before && (last.gone || last.state > dagbridgev1.Job_RUNNING) && b.jobs[known.Ref.Token] == nil {
			now[known.Ref] = last // at its end, which does not change
			continue
		}
		o, err := b.observe(known.Ref)
		if err != nil {
			return nil, nil, err
		}
		now[known.Ref] = word{o.State, o.Held, o.Gone, o.Message}
		if !before || last != now[known.Ref] {
			news = append(news, o)
		}
	}
	return news, now, nil
}

func (b *Backend) observe(ref backend.NativeRef) (backend.Observation, error) {
	o := backend.Observation{Ref: ref, Position: -1}
	f, ok := b.folder(ref.Token)
	if !ok || !own(ref) {
		o.Gone = true
		return o, nil
	}
	if j := b.jobs[ref.Token]; j != nil {
		o.SubmitTime, o.Message = j.submitTime, j.why
		switch j.phase {
		case running:
			o.State, o.StartTime, o.Node = dagbridgev1.Job_RUNNING, j.startTime, b.node
		case queued, delayed:
			o.State, o.Reason = dagbridgev1.Job_SUBMITTED, "RESOURCES"
			if o.Message == "" {
				o.Message = "waits for the jobs before it"
			}
		case held:
			o.State, o.Reason, o.Held = dagbridgev1.Job_SUBMITTED, "HELD", true
		}
		return o, nil
	}
	var ending end
	ended, err := readMarker(f.end(), &ending)
	if err != nil {
		return o, err
	}
	if info, err := os.Stat(f.spec()); err == nil {
		o.SubmitTime = info.ModTime()
	}
	if !ended {
		o.Gone = true
		o.Started, err = exists(f.start())
		return o, err
	}
	o.State, o.Reason, o.Message, o.ExitCode, o.Signal = ending.State, ending.Reason, ending.Message, ending.ExitCode, ending.Signal
	if o.EndTime = ending.EndTime; !ending.StartTime.IsZero() {
		o.StartTime, o.Node = ending.StartTime, b.node
	}
	return o, nil
}
