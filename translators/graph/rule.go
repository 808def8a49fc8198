package graph

import dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"

// Airflow's trigger rules.
const (
	AllSuccess              = "all_success"
	AllFailed               = "all_failed"
	AllDone                 = "all_done"
	AllDoneMinOneSuccess    = "all_done_min_one_success"
	AllDoneSetupSuccess     = "all_done_setup_success"
	OneSuccess              = "one_success"
	OneFailed               = "one_failed"
	OneDone                 = "one_done"
	NoneFailed              = "none_failed"
	NoneFailedMinOneSuccess = "none_failed_min_one_success"
	NoneSkipped             = "none_skipped"
	AllSkipped              = "all_skipped"
	Always                  = "always"
)

// Rules are all trigger rules.
func Rules() []string {
	return []string{
		AllSuccess, AllFailed, AllDone, AllDoneMinOneSuccess, AllDoneSetupSuccess, OneSuccess, OneFailed, OneDone,
		NoneFailed, NoneFailedMinOneSuccess, NoneSkipped, AllSkipped, Always,
	}
}

// Counts are how many direct upstreams of a task, an array counted by its instances, ended in which way. What is in Total
// and nowhere else lives.
type Counts struct {
	Success, Failed, UpstreamFailed, Skipped int
	// Removed are instances that an upstream array no longer has. It is an input of the rules, no state of a job.
	Removed int
	Total   int
	// Of the above, those that are set-ups.
	SetupSuccess, SetupSkipped, SetupTotal int
}

// Add counts one upstream. CANCELLED and LOST count as failed: whatever comes after cannot rely on either.
func (c *Counts) Add(s dagbridgev1.Job_State, setup bool) { c.AddSome(1, s, setup) }

// AddSome counts several upstreams that are alike, as the instances of an array are.
func (c *Counts) AddSome(n int, s dagbridgev1.Job_State, setup bool) {
	c.Total += n
	if setup {
		c.SetupTotal += n
	}
	switch s {
	case succeeded:
		c.Success += n
		if setup {
			c.SetupSuccess += n
		}
	case skipped:
		c.Skipped += n
		if setup {
			c.SetupSkipped += n
		}
	case upstreamFailed:
		c.UpstreamFailed += n
	case failed, cancelled, lost:
		c.Failed += n
	}
}

// Decision is what a trigger rule says.
type Decision int

// Decisions.
const (
	// Wait: not decided yet.
	Wait Decision = iota
	// Run the task.
	Run
	// Skip it: it ends SKIPPED.
	Skip
	// UpstreamFail: it ends UPSTREAM_FAILED.
	UpstreamFail
)

// Decide applies a trigger rule, as Airflow 3.3 does. A task without upstream runs. Of a rule it does not know it makes
// nothing: Wait.
func Decide(rule string, c Counts) Decision {
	if c.Total == 0 {
		return Run
	}
	failed := c.Failed + c.UpstreamFailed
	ended := c.Success+failed+c.Skipped+c.Removed >= c.Total
	switch rule {
	case Always:
		return Run
	case AllSuccess:
		switch {
		case failed > 0:
			return UpstreamFail
		case c.Skipped > 0:
			return Skip
		case ended:
			return Run
		}
	case AllFailed:
		switch {
		case c.Success > 0 || c.Skipped > 0:
			return Skip
		case ended:
			return Run
		}
	case AllDone:
		if ended {
			return Run
		}
	case AllDoneMinOneSuccess:
		switch {
		case c.Skipped > 0:
			return Skip
		case ended && c.Success == 0:
			return UpstreamFail
		case ended:
			return Run
		}
	case AllDoneSetupSuccess:
		switch {
		case !ended:
			return Wait
		case c.SetupTotal > 0 && c.SetupSkipped == c.SetupTotal:
			return Skip
		case c.SetupTotal > 0 && c.SetupSuccess == 0:
			return UpstreamFail
		}
		return Run
	case OneSuccess:
		switch {
		case c.Success > 0:
			return Run
		case c.Skipped == c.Total:
			return Skip
		case ended:
			return UpstreamFail
		}
	case OneFailed:
		switch {
		case failed > 0:
			return Run
		case ended:
			return Skip
		}
	case OneDone:
		// Airflow's word for it is done, but it counts neither what was skipped nor what never ran for want of an upstream.
		switch {
		case c.Success > 0 || c.Failed > 0:
			return Run
		case ended:
			return Skip
		}
	case NoneFailed:
		switch {
		case failed > 0:
			return UpstreamFail
		case ended:
			return Run
		}
	case NoneFailedMinOneSuccess:
		switch {
		case failed > 0:
			return UpstreamFail
		case c.Skipped == c.Total:
			return Skip
		case ended && c.Success == 0:
			return UpstreamFail
		case ended:
			return Run
		}
	case NoneSkipped:
		switch {
		case c.Skipped > 0:
			return Skip
		case ended:
			return Run
		}
	case AllSkipped:
		switch {
		case c.Success > 0 || failed > 0:
			return Skip
		case c.Skipped == c.Total:
			return Run
		}
	}
	return Wait
}
