package kubernetes

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// tidyPage is how many objects one list has.
const tidyPage = 500

// Tidy removes workloads, with their pods and gangs, and marks, that ended more than Keep ago. Each is deleted as the very
// object that was seen.
func (b *Backend) Tidy(ctx context.Context, recorded func(token string) bool) error {
	c, err := b.connect()
	if err != nil {
		return err
	}
	var errs []error
	for _, namespace := range b.options.Namespaces {
		for _, kind := range b.kinds() {
			errs = append(errs, c.tidy(ctx, kind, namespace, time.Now().Add(-b.options.Keep), recorded))
		}
	}
	return errors.Join(errs...)
}

func (c *clients) tidy(ctx context.Context, kind schema.GroupVersionResource, namespace string, before time.Time, recorded func(string) bool) error {
	at := c.dynamic.Resource(kind).Namespace(namespace)
	options := metav1.ListOptions{LabelSelector: translate.TokenLabel, Limit: tidyPage}
	background := metav1.DeletePropagationBackground
	for {
		list, err := at.List(ctx, options)
		switch {
		case isLacking(kind, err):
			return nil
		case err != nil:
			return errors.New(sentence(err))
		}
		for i := range list.Items {
			o := &list.Items[i]
			token := o.GetLabels()[translate.TokenLabel]
			ended := translate.EndTime(o.Object)
			if ended.IsZero() || ended.After(before) || o.GetDeletionTimestamp() != nil || !recorded(token) {
				continue
			}
			uid := o.GetUID()
			err := at.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return errors.New(sentence(err))
			}
			if group := translate.GangOf(o.Object); group != nil {
				c.discard(ctx, namespace, group, token)
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
