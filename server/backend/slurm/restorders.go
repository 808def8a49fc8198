package slurm

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// Paths of slurmrestd's, and an id that is beyond all ids of Slurm's.
const (
	pathJob         = "/slurm/v0.0.38/job/"
	pathSubmit      = "/slurm/v0.0.38/job/submit"
	pathJobs        = "/slurm/v0.0.38/jobs"
	pathDiag        = "/slurm/v0.0.38/diag"
	pathAccounting  = "/slurmdb/v0.0.38/jobs"
	impossibleJobID = "4000000000"
)

func (r *rest) submit(ctx context.Context, user string, job *slurm.Job) answer {
	body, faults := job.REST("v0.0.38")
	if len(faults) > 0 {
		return answer{outcome: backend.Refused, message: faults.Error()}
	}
	token, _ := r.token()
	s, err := r.order(ctx, user, http.MethodPost, pathSubmit, body)
	if err == nil && s.code() == errnoZeroBytes && r.refused(ctx, user) {
		// refused for its token: nothing was submitted. If the file has changed meanwhile, the call is repeated once.
		if renewed, _ := r.token(); renewed == token {
			err = r.unauthorized()
		} else if s, err = r.order(ctx, user, http.MethodPost, pathSubmit, body); err == nil && s.code() == errnoZeroBytes && r.refused(ctx, user) {
			err = r.unauthorized()
		}
	}
	var notSent *errNotSent
	switch {
	case errors.As(err, &notSent):
		return answer{outcome: backend.NotSent, message: notSent.sentence}
	case err != nil:
		return answer{outcome: backend.Unknown, message: err.Error()}
	}
	return s.answer()
}

// answer classifies what slurmrestd said.
func (s submitted) answer() answer {
	var notes []string
	if s.SubmitMessage != "" {
		notes = append(notes, s.SubmitMessage)
	}
	if s.JobID.value > 0 {
		// it exists, whatever errors says beside: that it is held, that no node is free
		for _, e := range s.Errors {
			notes = append(notes, e.sentence())
		}
		return answer{outcome: backend.Submitted, id: strconv.FormatInt(s.JobID.value, 10), notes: notes}
	}
	if len(s.Errors) == 0 {
		return answer{outcome: backend.Unknown, message: "slurmrestd answered with neither a job id nor an error", notes: notes}
	}
	a := answer{message: s.Errors[0].sentence(), notes: notes}
	switch code := s.code(); {
	case isNumber(limiting, code):
		a.outcome = backend.Limited
	case isNumber(passing, code):
		a.outcome, a.full = backend.Busy, code == errnoAgain
	case code == errnoPolicy:
		a.outcome = backend.Busy
		a.message += "; slurmrestd does not tell which limit, so it is tried again"
	case code == errnoAuth:
		a.outcome = backend.NotSent
	case code >= errnoFirst && code <= errnoLast, code >= errnoRestFirst:
		a.outcome = backend.Refused
	default:
		// the system's numbers, and those of a connection that failed between slurmrestd and slurmctld
		a.outcome = backend.Unknown
	}
	return a
}

func (s submitted) code() int {
	if s.JobID.value > 0 || len(s.Errors) == 0 {
		return 0
	}
	return s.Errors[0].number()
}

// refused says whether it is the token that slurmctld refuses. It then closes the connection without a word, just as it
// does when it dies; so it is asked something that means nothing, to cancel a job whose id is beyond all ids.
func (r *rest) refused(ctx context.Context, user string) bool {
	s, err := r.order(ctx, user, http.MethodDelete, pathJob+impossibleJobID, nil)
	return err == nil && s.code() == errnoZeroBytes
}

func (r *rest) release(ctx context.Context, user string, ids []string) []error {
	errs := make([]error, len(ids))
	parallel(ctx, len(ids), func(ctx context.Context, i int) {
		errs[i] = r.change(ctx, user, http.MethodPost, ids[i], map[string]any{"hold": false})
	})
	return errs
}

func (r *rest) depend(ctx context.Context, user, id, expression string) error {
	return r.change(ctx, user, http.MethodPost, id, map[string]any{"dependency": expression})
}

func (r *rest) cancel(ctx context.Context, user string, ids []string) []error {
	errs := make([]error, len(ids))
	parallel(ctx, len(ids), func(ctx context.Context, i int) {
		errs[i] = r.change(ctx, user, http.MethodDelete, ids[i], nil)
	})
	return errs
}

// change orders something about a user's job; that it is unknown or has ended is no error.
func (r *rest) change(ctx context.Context, user, method, id string, body any) error {
	s, err := r.order(ctx, user, method, pathJob+id, body)
	if err != nil {
		return err
	}
	switch code := s.code(); {
	case code == 0, isNumber(over, code):
		return nil
	case code == errnoZeroBytes, code == errnoUnexpected, code == errnoAuth:
		return errors.New(s.Errors[0].sentence() + ": slurmctld refuses the token, or died")
	default:
		return errors.New(s.Errors[0].sentence())
	}
}
