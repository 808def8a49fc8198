package graph

import (
	"slices"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Short names for the states, which every file of the package speaks of.
const (
	accepted       = dagbridgev1.Job_ACCEPTED
	submitted      = dagbridgev1.Job_SUBMITTED
	running        = dagbridgev1.Job_RUNNING
	succeeded      = dagbridgev1.Job_SUCCEEDED
	failed         = dagbridgev1.Job_FAILED
	cancelled      = dagbridgev1.Job_CANCELLED
	skipped        = dagbridgev1.Job_SKIPPED
	upstreamFailed = dagbridgev1.Job_UPSTREAM_FAILED
	lost           = dagbridgev1.Job_LOST
)

// moves is the state table: what may follow each state.
//
// A live job may end in any way, also without having been seen running: a look can miss short lives. It goes back to
// ACCEPTED when another attempt follows, and from RUNNING to SUBMITTED when the scheduler requeues it. An end is final, with
// two exceptions: LOST is corrected when late evidence turns up (once; the record remembers it), and an explicit retry,
// nothing else, takes an end other than success back to ACCEPTED.
var moves = map[dagbridgev1.Job_State][]dagbridgev1.Job_State{
	accepted:       {submitted, running, succeeded, failed, cancelled, skipped, upstreamFailed, lost},
	submitted:      {accepted, running, succeeded, failed, cancelled, skipped, upstreamFailed, lost},
	running:        {accepted, submitted, succeeded, failed, cancelled, skipped, upstreamFailed, lost},
	succeeded:      {},
	failed:         {accepted},
	cancelled:      {accepted},
	skipped:        {accepted},
	upstreamFailed: {accepted},
	lost:           {accepted, succeeded, failed, cancelled, skipped},
}

// CanMove says whether a job may go from one state to another. A state does not move to itself. The state of an array's
// parent is not moved but derived, by Aggregate.
func CanMove(from, to dagbridgev1.Job_State) bool {
	return slices.Contains(moves[from], to)
}

// IsTerminal says whether a state is an end.
func IsTerminal(s dagbridgev1.Job_State) bool {
	switch s {
	case succeeded, failed, cancelled, skipped, upstreamFailed, lost:
		return true
	}
	return false
}

// Aggregate is the state of an array's parent, from how many of its instances are in each state. While some live and
// others run or have ended, it is RUNNING. At the end the worst one counts; skipped instances count only when there is
// nothing else. An array of no instances is SKIPPED, as Airflow's empty maps are.
func Aggregate(counts map[dagbridgev1.Job_State]int) dagbridgev1.Job_State {
	live, ended := 0, 0
	for state, n := range counts {
		if IsTerminal(state) {
			ended += n
		} else {
			live += n
		}
	}
	switch {
	case live > 0 && (ended > 0 || counts[running] > 0):
		return running
	case live > 0 && counts[submitted] > 0:
		return submitted
	case live > 0:
		return accepted
	}
	for _, state := range []dagbridgev1.Job_State{failed, upstreamFailed, lost, cancelled, succeeded} {
		if counts[state] > 0 {
			return state
		}
	}
	return skipped
}
