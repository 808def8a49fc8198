package kubernetes

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/dagbridge/dagbridge/server/backend"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// Alter releases. There are no dependencies here to rewrite.
func (b *Backend) Alter(ctx context.Context, changes []backend.Change) []error {
	return b.each(ctx, len(changes), func(ctx context.Context, c *clients, i int) error {
		if !changes[i].Release {
			return nil
		}
		where, there, err := c.mine(ctx, changes[i].Ref)
		if err != nil || there == nil {
			return err
		}
		patch := translate.Release(there.Object)
		if patch == nil {
			return nil
		}
		_, err = c.dynamic.Resource(where.resource).Namespace(where.namespace).Patch(ctx, where.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "dagbridge"})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// Cancel deletes workloads in the foreground: they are there until their pods are gone. Under a name that nothing has, a mark
// is left.
func (b *Backend) Cancel(ctx context.Context, known []backend.Known) []error {
	return b.each(ctx, len(known), func(ctx context.Context, c *clients, i int) error {
		k := known[i]
		if k.Ref.ID == "" {
			return c.mark(ctx, b.options, k)
		}
		where, there, err := c.mine(ctx, k.Ref)
		switch {
		case err != nil:
			return err
		case there == nil:
			if k.Double {
				return nil
			}
			return c.mark(ctx, b.options, k)
		case translate.Ended(there.Object):
			return nil
		}
		if where.resource == jobs && len(k.Positions) > 0 {
			if some, err := c.cancelIndexes(ctx, where, there, k.Positions); some || err != nil {
				return err
			}
		}
		uid, foreground := there.GetUID(), metav1.DeletePropagationForeground
		err = c.dynamic.Resource(where.resource).Namespace(where.namespace).Delete(ctx, where.name, metav1.DeleteOptions{
			PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &uid},
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}

// cancelIndexes ends some of an array's instances and leaves the others; it is false when these are all that have not ended. A
// pod of an index that comes only later is ended when the order is given again.
func (c *clients) cancelIndexes(ctx context.Context, where object, there *unstructured.Unstructured, positions []int) (bool, error) {
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(there.Object, job); err != nil {
		return false, err
	}
	left, err := translate.Unfinished(job)
	if err != nil {
		return false, err
	}
	var indexes []int
	for position, index := range left {
		if slices.Contains(positions, position) {
			indexes = append(indexes, index)
		}
	}
	if len(indexes) == len(left) {
		return false, nil
	}
	if patch := translate.CancelIndexes(job, indexes); patch != nil {
		if _, err := c.dynamic.Resource(jobs).Namespace(where.namespace).Patch(ctx, where.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "dagbridge"}); err != nil {
			return true, err
		}
	}
	for _, index := range indexes {
		selector := translate.TokenLabel + "=" + job.Labels[translate.TokenLabel] + "," + batchv1.JobCompletionIndexAnnotation + "=" + strconv.Itoa(index)
		if err := c.core.Pods(where.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: selector}); err != nil {
			return true, err
		}
	}
	return true, nil
}

// mark takes the name that a late request would take.
func (c *clients) mark(ctx context.Context, o Options, k backend.Known) error {
	namespace := o.Namespaces[0]
	if where, err := parseID(k.Ref.ID); err == nil {
		namespace = where.namespace
	}
	_, err := c.make(ctx, namespace, translate.Mark(namespace, k.Job.GetKey(), k.Ref.Token), k.Ref.Token)
	return err
}

// mine is the object of a native id, when it carries the token; else nil.
func (c *clients) mine(ctx context.Context, ref backend.NativeRef) (object, *unstructured.Unstructured, error) {
	where, err := parseID(ref.ID)
	if err != nil {
		return where, nil, nil
	}
	there, err := c.dynamic.Resource(where.resource).Namespace(where.namespace).Get(ctx, where.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return where, nil, nil
	case err != nil:
		return where, nil, err
	case there.GetLabels()[translate.TokenLabel] != ref.Token:
		return where, nil, nil
	}
	return where, there, nil
}

// each makes calls at the same time, and answers for each. One whose object has changed since it was read is made again.
func (b *Backend) each(ctx context.Context, n int, call func(context.Context, *clients, int) error) []error {
	errs := make([]error, n)
	c, err := b.connect()
	var calls errgroup.Group
	calls.SetLimit(together)
	for i := range errs {
		if err != nil {
			errs[i] = err
			continue
		}
		calls.Go(func() error {
			ctx, cancel := withTimeout(ctx)
			defer cancel()
			errs[i] = retry.RetryOnConflict(retry.DefaultBackoff, func() error { return call(ctx, c, i) })
			return nil
		})
	}
	_ = calls.Wait() // each has its own error
	return errs
}
