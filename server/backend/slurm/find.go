package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// Find asks the controller for all tokens at once, then accounting, by name, for those that it does not have, then looks
// for the markers of the rest.
func (b *Backend) Find(ctx context.Context, wants []backend.Want) []backend.Finding {
	findings := make([]backend.Finding, len(wants))
	if len(wants) == 0 {
		return findings
	}
	records, err := b.looks.jobs(ctx, nil)
	if err != nil {
		return uncertain(findings, err)
	}
	b.found(findings, wants, records, "the controller has it")

	var names []string
	since := wants[0].Since
	for i, want := range wants {
		if findings[i].Presence != backend.Found {
			names = append(names, slurm.Name(want.Job.GetKey().GetTask(), want.Token))
		}
		if want.Since.Before(since) {
			since = want.Since
		}
	}
	if len(names) == 0 {
		return findings
	}
	// asked first, since what arrives in between is in the answer
	untold := 0
	if b.forgettable(wants, findings) {
		if untold, err = b.looks.untold(ctx); err != nil {
			return uncertain(findings, err)
		}
	}
	records, err = b.looks.accountedByName(ctx, names, since.Add(-clockSkew))
	if err != nil && !errors.Is(err, errNoAccounting) {
		return uncertain(findings, err)
	}
	b.found(findings, wants, records, "accounting has it")

	proof := "neither the controller nor accounting has a job with this token"
	if errors.Is(err, errNoAccounting) {
		proof = "the controller has no job with this token, and the site keeps no accounting"
	}
	for i, want := range wants {
		if findings[i].Presence != backend.Found {
			findings[i] = b.findMarkers(want, proof)
		}
		if untold > 0 && findings[i].Presence == backend.Absent && time.Since(want.Since) > b.minJobAge {
			findings[i] = backend.Finding{Presence: backend.Uncertain, Proof: fmt.Sprintf("accounting lags behind: slurmctld has %d messages for it", untold)}
		}
	}
	return findings
}

// forgettable says whether the controller may have forgotten by now that there was a job with one of the tokens.
func (b *Backend) forgettable(wants []backend.Want, findings []backend.Finding) bool {
	for i, want := range wants {
		if findings[i].Presence != backend.Found && time.Since(want.Since) > b.minJobAge {
			return true
		}
	}
	return false
}

// uncertain is what is not found yet, for want of an answer.
func uncertain(findings []backend.Finding, err error) []backend.Finding {
	for i := range findings {
		if findings[i].Presence != backend.Found {
			findings[i] = backend.Finding{Presence: backend.Uncertain, Proof: err.Error()}
		}
	}
	return findings
}

// found fills in what records tell of.
func (b *Backend) found(findings []backend.Finding, wants []backend.Want, records []record, proof string) {
	users := map[string]string{}
	for _, want := range wants {
		users[want.Token] = b.userOf(want.Job)
	}
	refs := map[string]map[string]backend.NativeRef{}
	for i := range records {
		r := &records[i]
		token := r.token()
		if user, wanted := users[token]; r.unread || !wanted || !r.of(user) || r.neverRan() {
			continue
		}
		if refs[token] == nil {
			refs[token] = map[string]backend.NativeRef{}
		}
		ref, have := refs[token][r.id]
		if !have || r.submit.Before(ref.SubmitTime) {
			refs[token][r.id] = backend.NativeRef{ID: r.id, Token: token, SubmitTime: r.submit}
		}
	}
	for i, want := range wants {
		if findings[i].Presence == backend.Found {
			continue
		}
		var mine []backend.NativeRef
		for _, ref := range refs[want.Token] {
			if !ref.SubmitTime.Before(want.Since.Add(-clockSkew)) {
				mine = append(mine, ref)
			}
		}
		if len(mine) == 0 {
			continue
		}
		slices.SortFunc(mine, func(a, b backend.NativeRef) int {
			return cmp.Or(a.SubmitTime.Compare(b.SubmitTime), cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
		})
		findings[i] = backend.Finding{Presence: backend.Found, Refs: mine, Held: held(records, mine), Proof: proof}
	}
}

// neverRan: it was cancelled while it waited.
func (r *record) neverRan() bool {
	native, known := r.native()
	return known && native.State == dagbridgev1.Job_CANCELLED && r.node == ""
}

// held are the ids of those refs whose every record waits to be released.
func held(records []record, refs []backend.NativeRef) []string {
	var ids []string
	for _, ref := range refs {
		waiting := false
		for i := range records {
			r := &records[i]
			if r.id != ref.ID || r.token() != ref.Token {
				continue
			}
			native, known := r.native()
			if waiting = known && native.State == dagbridgev1.Job_SUBMITTED && r.isHeld(); !waiting {
				break
			}
		}
		if waiting {
			ids = append(ids, ref.ID)
		}
	}
	return ids
}

// findMarkers looks for what the job itself has left in its folder, once nobody else knows it.
func (b *Backend) findMarkers(want backend.Want, proof string) backend.Finding {
	positions := want.Positions
	if len(positions) == 0 {
		positions = []int{-1}
	}
	started := false
	for _, position := range positions {
		m := b.markers(want.Job, want.Token, position)
		if m.deleted { // or never made, since nothing has been submitted
			m.err = b.unmounted()
		}
		if m.err != nil {
			return backend.Finding{Presence: backend.Uncertain, Proof: m.err.Error()}
		}
		if m.end != nil {
			id, _, _ := strings.Cut(m.end.NativeID, "_")
			return backend.Finding{
				Presence: backend.Found, Refs: []backend.NativeRef{{ID: id, Token: want.Token}},
				Proof: proof + ", but its exit marker is there",
			}
		}
		started = started || m.started
		if m.startID != "" && len(want.Positions) > 0 {
			return backend.Finding{
				Presence: backend.Found, Refs: []backend.NativeRef{{ID: m.startID, Token: want.Token}},
				Proof: proof + ", but the start marker of an instance is there",
			}
		}
	}
	if started {
		proof += fmt.Sprintf(", but its start marker is in %s", slurm.Dir(b.siteOf(want.Job), want.Job.GetId()))
	}
	return backend.Finding{Presence: backend.Absent, Proof: proof, Started: started}
}
