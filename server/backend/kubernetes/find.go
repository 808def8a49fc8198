package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dagbridge/dagbridge/server/backend"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// tokensAtOnce keeps the selector of a list within what a URL may have.
const tokensAtOnce = 50

// Find lists what carries the tokens, in every namespace and of every kind that is served. A list without a version is as
// new as the moment it was asked for.
func (b *Backend) Find(ctx context.Context, wants []backend.Want) []backend.Finding {
	findings := make([]backend.Finding, len(wants))
	for from := 0; from < len(wants); from += tokensAtOnce {
		some := wants[from:min(from+tokensAtOnce, len(wants))]
		found, err := b.list(ctx, some)
		for i, want := range some {
			f := &findings[from+i]
			switch refs := found[want.Token]; {
			case len(refs) == 0 && err != nil:
				f.Presence, f.Proof = backend.Uncertain, err.Error()
			case len(refs) == 0:
				f.Presence, f.Proof = backend.Absent, fmt.Sprintf("no object in %s has its token", strings.Join(b.options.Namespaces, ", "))
			default:
				f.Presence, f.Proof = backend.Found, refs[0].ref.ID+" has its token"
				for _, r := range refs {
					f.Refs = append(f.Refs, r.ref)
					if r.held {
						f.Held = append(f.Held, r.ref.ID)
					}
				}
			}
		}
	}
	return findings
}

// sighting is a workload that a list has shown.
type sighting struct {
	ref  backend.NativeRef
	held bool
}

// list is what carries the tokens; the error says why there may be more.
func (b *Backend) list(ctx context.Context, wants []backend.Want) (map[string][]sighting, error) {
	c, err := b.connect()
	if err != nil {
		return nil, err
	}
	tokens := make([]string, len(wants))
	for i, want := range wants {
		tokens[i] = want.Token
	}
	selector := translate.TokenLabel + " in (" + strings.Join(tokens, ",") + ")"
	found := map[string][]sighting{}
	var errs []error
	for _, namespace := range b.options.Namespaces {
		for _, resource := range b.kinds() {
			items, err := c.listed(ctx, resource, namespace, selector)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s in %s cannot be listed: %s", formatResource(resource), namespace, sentence(err)))
				if !isDenied(err) {
					return found, errors.Join(errs...) // nor would the others be
				}
			}
			for i := range items {
				o := &items[i]
				if translate.IsMark(o.Object) {
					continue // it has run nothing, and never will
				}
				where := object{namespace, o.GetName(), resource}
				token := o.GetLabels()[translate.TokenLabel]
				_, queued := o.GetAnnotations()[translate.QueueAnnotation]
				found[token] = append(found[token], sighting{
					backend.NativeRef{ID: where.String(), Token: token, SubmitTime: o.GetCreationTimestamp().Time}, queued,
				})
			}
		}
	}
	return found, errors.Join(errs...)
}

// listed lists objects; a kind that the cluster does not have has none.
func (c *clients) listed(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string) ([]unstructured.Unstructured, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	list, err := c.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	switch {
	case isLacking(resource, err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return list.Items, nil
}
