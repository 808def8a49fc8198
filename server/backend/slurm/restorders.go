package slurm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// ordered is the answer to an order.
type ordered struct {
	remarks
	JobID         number `json:"job_id"`
	SubmitMessage string `json:"job_submit_user_msg"`
	// Results are of the jobs, or the elements of an array, that were changed.
	Results []struct {
		JobID string `json:"job_id"`
		Code  number `json:"error_code"`
		Error string `json:"error"`
	} `json:"results"`
	// Statistics of slurmctld's, where they were asked for.
	Statistics *struct {
		Untold number `json:"dbd_agent_queue_size"`
	} `json:"statistics"`
	// Status is of the jobs, or the elements of an array, that could not be cancelled.
	Status []unsignalled `json:"status"`
}

// unsignalled is a job that could not be cancelled, and why.
type unsignalled struct {
	// StepID is the job's id as it was asked for.
	StepID string `json:"step_id"`
	Error  struct {
		Code    number `json:"code"`
		String  string `json:"string"`
		Message string `json:"message"`
	} `json:"error"`
}

// code of the first error, 0 when there is none.
func (o ordered) code() int {
	if o.JobID.value > 0 || len(o.Errors) == 0 {
		return 0
	}
	return o.Errors[0].number()
}

func encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, &errNotSent{err.Error()}
	}
	return text, nil
}

// errRefused: the job cannot be said to this slurmrestd.
type errRefused struct{ sentence string }

func (e *errRefused) Error() string { return e.sentence }

func (r *rest) submit(ctx context.Context, user string, job *slurm.Job) answer {
	order := func() (ordered, error) {
		return r.order(ctx, func(d *dialect) (call, error) {
			description, faults := job.REST(d.version)
			if len(faults) > 0 {
				return call{}, &errRefused{faults.Error()}
			}
			body, err := encode(description)
			return call{http.MethodPost, d.submit(), user, body}, err
		})
	}
	token, _ := r.token()
	o, err := order()
	if err == nil && o.code() == errnoZeroBytes && r.refused(ctx, user) {
		// refused for its token: nothing was submitted. If the file has changed meanwhile, the call is repeated once.
		if renewed, _ := r.token(); renewed == token {
			err = r.unauthorized()
		} else if o, err = order(); err == nil && o.code() == errnoZeroBytes && r.refused(ctx, user) {
			err = r.unauthorized()
		}
	}
	var notSent *errNotSent
	var refused *errRefused
	switch {
	case errors.As(err, &refused):
		return answer{outcome: backend.Refused, message: refused.sentence}
	case errors.As(err, &notSent):
		return answer{outcome: backend.NotSent, message: notSent.sentence}
	case err != nil:
		return answer{outcome: backend.Unknown, message: err.Error()}
	}
	a := o.answer()
	if a.id != "" {
		r.watched.alter(a.id) // the id may have been another's
	}
	return a
}

// answer classifies what slurmrestd said.
func (o ordered) answer() answer {
	if o.JobID.value > 0 {
		return o.accepted()
	}
	var notes []string
	if o.SubmitMessage != "" {
		notes = append(notes, o.SubmitMessage)
	}
	if len(o.Errors) == 0 {
		return answer{outcome: backend.Unknown, message: "slurmrestd answered with neither a job id nor an error", notes: notes}
	}
	a := answer{message: o.Errors[0].sentence(), notes: notes}
	switch code := o.code(); {
	case isNumber(limiting, code):
		a.outcome = backend.Limited
	case isNumber(full, code):
		a.outcome, a.full = backend.Busy, true
	case isNumber(passing, code):
		a.outcome = backend.Busy
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

// accepted is of a job that exists, whatever is said beside: that it is held, that no node is free, or, and then it is not
// the job that was asked for, that a field was not taken.
func (o ordered) accepted() answer {
	a := answer{outcome: backend.Submitted, id: strconv.FormatInt(o.JobID.value, 10)}
	if o.SubmitMessage != "" {
		a.notes = append(a.notes, o.SubmitMessage)
	}
	var ignored []string
	for _, c := range slices.Concat(o.Errors, o.Warnings) {
		if c.ofField() {
			ignored = append(ignored, c.sentence()+" ("+c.Source+")")
		} else if s := c.sentence(); !slices.Contains(a.notes, s) {
			a.notes = append(a.notes, s)
		}
	}
	a.ignored = strings.Join(ignored, "; ")
	return a
}

// impossibleJobID is beyond all ids of Slurm's.
const impossibleJobID = "4000000000"

// refused says whether it is the token that slurmctld refuses. To v0.0.38 it then closes the connection without a word, just
// as it does when it dies; so it is asked something that means nothing, to cancel a job whose id is beyond all ids.
func (r *rest) refused(ctx context.Context, user string) bool {
	o, err := r.order(ctx, func(d *dialect) (call, error) {
		return call{method: http.MethodDelete, path: d.job(impossibleJobID), user: user}, nil
	})
	return err == nil && o.code() == errnoZeroBytes
}

func (r *rest) release(ctx context.Context, user string, ids []string) []error {
	errs := make([]error, len(ids))
	parallel(ctx, len(ids), func(ctx context.Context, i int) {
		errs[i] = r.change(ctx, user, ids[i], map[string]any{"hold": false})
	})
	return errs
}

func (r *rest) depend(ctx context.Context, user, id, expression string) error {
	return r.change(ctx, user, id, map[string]any{"dependency": expression})
}

// change alters a user's job.
func (r *rest) change(ctx context.Context, user, id string, fields map[string]any) error {
	defer r.watched.alter(id)
	body, err := encode(fields)
	if err != nil {
		return err
	}
	o, err := r.order(ctx, func(d *dialect) (call, error) { return call{http.MethodPost, d.job(id), user, body}, nil })
	if err != nil {
		return err
	}
	return o.failure()
}

func (r *rest) cancel(ctx context.Context, user string, ids []string) []error {
	errs := make([]error, len(ids))
	d, err := r.spoken(ctx)
	if err != nil {
		return everyError(errs, err)
	}
	if d.bulk {
		groups := (len(ids) + cancelledAtOnce - 1) / cancelledAtOnce
		parallel(ctx, groups, func(ctx context.Context, i int) {
			from, to := i*cancelledAtOnce, min((i+1)*cancelledAtOnce, len(ids))
			r.cancelMany(ctx, user, ids[from:to], errs[from:to])
		})
		return errs
	}
	parallel(ctx, len(ids), func(ctx context.Context, i int) {
		o, err := r.order(ctx, func(d *dialect) (call, error) {
			return call{method: http.MethodDelete, path: d.job(ids[i]), user: user}, nil
		})
		if err == nil {
			err = o.failure()
		}
		errs[i] = err
	})
	return errs
}

// cancelledAtOnce is how many jobs are cancelled with one call.
const cancelledAtOnce = 500

// cancelMany cancels some of a user's jobs with one call; those that are another user's by now are left alone.
func (r *rest) cancelMany(ctx context.Context, user string, ids []string, errs []error) {
	body, err := encode(map[string]any{"jobs": ids, "user_name": user})
	if err != nil {
		everyError(errs, err)
		return
	}
	o, err := r.order(ctx, func(d *dialect) (call, error) { return call{http.MethodDelete, d.jobs(), user, body}, nil })
	if err == nil {
		err = o.failure()
	}
	if err != nil {
		everyError(errs, err)
		return
	}
	for _, s := range o.Status {
		code := int(s.Error.Code.value)
		if code == 0 || isNumber(over, code) {
			continue
		}
		base, _, _ := strings.Cut(s.StepID, "_")
		for i, id := range ids {
			if id == s.StepID || id == base {
				errs[i] = errors.New(cmp.Or(s.Error.Message, s.Error.String))
			}
		}
	}
}

// failure of an order about jobs; that one is unknown or has ended is none.
func (o ordered) failure() error {
	complaints := o.Errors
	for _, result := range o.Results {
		if result.Code.value != 0 {
			complaints = append(complaints, complaint{Number: int(result.Code.value), Error: result.Error})
		}
	}
	for _, c := range complaints {
		switch code := c.number(); {
		// without a number v0.0.38 complains of an array of which some elements have ended; the next look tells of the others
		case isNumber(over, code), code == 0:
		case code == errnoZeroBytes, code == errnoUnexpected, code == errnoAuth:
			return errors.New(c.sentence() + ": slurmctld refuses the token, or died")
		case code == errnoNotPermitted:
			return errors.New(c.sentence() + ": slurmctld did not take the order, or does not answer slurmrestd")
		default:
			return errors.New(c.sentence())
		}
	}
	return nil
}
