package kubernetes

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dagbridge/dagbridge/server/backend"
)

// answer is what an error of a call that would make an object means for it.
func answer(err error) backend.SubmitResult {
	r := backend.SubmitResult{Message: sentence(err)}
	var dial *net.OpError
	seconds, again := apierrors.SuggestsClientDelay(err)
	text := err.Error()
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		r.Outcome = backend.Busy
	case apierrors.IsUnauthorized(err):
		r.Outcome = backend.NotSent
	case again:
		r.Outcome, r.RetryAfter = backend.Limited, time.Duration(max(seconds, 1))*time.Second
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsUnsupportedMediaType(err), apierrors.IsNotAcceptable(err):
		r.Outcome = backend.Refused
	case errors.As(err, &dial) && dial.Op == "dial", strings.Contains(text, "client rate limiter"):
		r.Outcome = backend.NotSent
	default:
		r.Outcome = backend.Unknown // it may have been done all the same
	}
	return r
}

// sentence is an error for a person: of a refusal by validation its causes, each with its field.
func sentence(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if errors.Is(err, context.DeadlineExceeded) {
			return "the API server did not answer in time"
		}
		return err.Error()
	}
	details := status.Status().Details
	if apierrors.IsNotFound(err) && (details == nil || details.Name == "") {
		return "the API server does not know this kind of object: what runs it is not installed"
	}
	if details == nil || len(details.Causes) == 0 || status.Status().Reason != "Invalid" {
		return status.Status().Message
	}
	var causes []string
	for _, c := range details.Causes {
		causes = append(causes, c.Field+": "+c.Message)
	}
	return strings.Join(causes, "; ")
}
