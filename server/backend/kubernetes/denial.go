package kubernetes

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// denial is that the API server does not let a kind of objects be seen in a namespace, or does not have it (any more). It is no
// outage: the jobs that need it are not seen, and all others are.
type denial struct {
	place place
	err   error
}

func (d *denial) Error() string {
	return fmt.Sprintf("%s in %s cannot be watched: %s", formatResource(d.place.resource), d.place.namespace, sentence(d.err))
}

func (d *denial) Unwrap() error { return d.err }

func isDenied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
