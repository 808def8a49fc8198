package kubernetes

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// Submit makes the objects of each submission. One whose name is taken under its own token is there already.
func (b *Backend) Submit(ctx context.Context, subs []translators.Submission) []backend.SubmitResult {
	results := make([]backend.SubmitResult, len(subs))
	c, err := b.connect()
	if err != nil {
		for i := range results {
			results[i] = backend.SubmitResult{Outcome: backend.NotSent, Message: err.Error()}
		}
		return results
	}
	var calls errgroup.Group
	calls.SetLimit(together)
	for i, s := range subs {
		calls.Go(func() error {
			results[i] = b.submit(ctx, c, s)
			return nil
		})
	}
	_ = calls.Wait() // each has its own result
	return results
}

func (b *Backend) submit(ctx context.Context, c *clients, s translators.Submission) backend.SubmitResult {
	w, faults := translate.Translate(b.options.Site, s)
	if len(faults) == 0 {
		faults = w.Lacking
	}
	if len(faults) > 0 {
		return backend.SubmitResult{Outcome: backend.Refused, Message: faults.Error()}
	}
	var at time.Time
	for i, manifest := range w.Objects {
		made, err := c.make(ctx, w.Namespace, manifest, s.Token)
		if err != nil {
			for _, before := range w.Objects[:i] { // a gang without its workload is nothing
				c.discard(ctx, w.Namespace, before, s.Token)
			}
			return answer(err)
		}
		at = made.GetCreationTimestamp().Time
	}
	where := object{w.Namespace, w.Name, resourceOf(w.Main())}
	return backend.SubmitResult{
		Outcome: backend.Submitted, Ref: backend.NativeRef{ID: where.String(), Token: s.Token, SubmitTime: at}, Digest: digest(w.Text()), Notes: w.Notices,
	}
}

// make makes an object, or finds that it is there.
func (c *clients) make(ctx context.Context, namespace string, manifest map[string]any, token string) (*unstructured.Unstructured, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	at := c.dynamic.Resource(resourceOf(manifest)).Namespace(namespace)
	made, err := at.Create(ctx, &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{FieldManager: "dagbridge"})
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	name := (&unstructured.Unstructured{Object: manifest}).GetName()
	there, err := at.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, err
	case there.GetLabels()[translate.TokenLabel] != token:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name %s is taken in %s by an object that is not this job's", name, namespace))
	}
	return there, nil
}

// discard takes an object away again that was made for nothing. What is left of it when that fails runs nothing.
func (c *clients) discard(ctx context.Context, namespace string, manifest map[string]any, token string) {
	ctx, cancel := withTimeout(context.WithoutCancel(ctx))
	defer cancel()
	at := c.dynamic.Resource(resourceOf(manifest)).Namespace(namespace)
	name := (&unstructured.Unstructured{Object: manifest}).GetName()
	if there, err := at.Get(ctx, name, metav1.GetOptions{}); err == nil && there.GetLabels()[translate.TokenLabel] == token {
		uid := there.GetUID()
		_ = at.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	}
}
