package kubernetes

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

var (
	pods   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// place is what one watch is about.
type place struct {
	resource  schema.GroupVersionResource
	namespace string
}

// watch is a copy of what the API server has of some kinds of objects in some namespaces, kept by its own changes. After a
// break it lists anew and goes on.
type watch struct {
	clients *clients
	stop    context.CancelFunc
	context context.Context
	// changed gets a token, or "" when it is not known whose an object is.
	changed func(token string)

	mu        sync.Mutex
	informers map[place]*informer
	trouble   map[place]error
	// leaving are workloads and pods whose deletion has been asked for, by token and uid.
	leaving map[string]map[types.UID]*departure
}

// informer is the watch of one place.
type informer struct {
	cache.SharedIndexInformer
	stop context.CancelFunc
}

// departure is an object that is being deleted, or gone.
type departure struct {
	// first is how it was when that was asked for: later on the time of its deletion is another.
	first *unstructured.Unstructured
	// last is how it was before it was gone; nil: it is there.
	last *unstructured.Unstructured
}

func newWatch(ctx context.Context, c *clients, changed func(string)) *watch {
	w := &watch{clients: c, changed: changed, informers: map[place]*informer{}, trouble: map[place]error{}, leaving: map[string]map[types.UID]*departure{}}
	w.context, w.stop = context.WithCancel(ctx)
	return w
}

// ensure sees to it that a place is watched, and waits until it has been listed. A *denial says that it never will be.
func (w *watch) ensure(ctx context.Context, p place) error {
	w.mu.Lock()
	watched := w.informers[p]
	if watched == nil {
		watched = w.start(p)
		w.informers[p] = watched
	}
	w.mu.Unlock()
	settled := func() bool { return watched.HasSynced() || w.denial(p) != nil }
	if !settled() { // most often it is
		ctx, cancel := withTimeout(ctx)
		defer cancel()
		cache.WaitForCacheSync(ctx.Done(), settled)
	}
	if err := w.denial(p); err != nil || watched.HasSynced() {
		return err
	}
	if err := w.troubled(); err != nil {
		return err
	}
	return ctx.Err()
}

// start starts a watch of the gateway's own objects, or of all where these have no labels of ours.
func (w *watch) start(p place) *informer {
	tweak := func(o *metav1.ListOptions) { o.LabelSelector = translate.TokenLabel }
	switch p.resource {
	case events:
		tweak = func(o *metav1.ListOptions) { o.FieldSelector = "type=Warning" }
	case workloads:
		tweak = func(*metav1.ListOptions) {}
	}
	at := w.clients.dynamic.Resource(p.resource).Namespace(p.namespace)
	watched := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			return at.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			tweak(&o)
			return at.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{byOwner: owners})
	_ = watched.SetTransform(slim) // it has not started
	_ = watched.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // it lists anew by itself
			w.report(p, err)
		}
	})
	tell := func(o any) {
		w.report(p, nil)
		if u, ok := o.(*unstructured.Unstructured); ok {
			w.leave(u, false)
			w.changed(u.GetLabels()[translate.TokenLabel])
		}
	}
	_, _ = watched.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if u, ok := o.(*unstructured.Unstructured); ok {
				w.leave(u, true)
			}
			tell(o)
		},
	})
	ctx, stop := context.WithCancel(w.context)
	go watched.RunWithContext(ctx)
	return &informer{watched, stop}
}

// byOwner finds objects by whom they are about: a token, or a workload's uid.
const byOwner = "owner"

func owners(o any) ([]string, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	if token := u.GetLabels()[translate.TokenLabel]; token != "" {
		return []string{token}, nil
	}
	if uid := u.GetLabels()["kueue.x-k8s.io/job-uid"]; uid != "" {
		return []string{uid}, nil
	}
	if uid, found, _ := unstructured.NestedString(u.Object, "involvedObject", "uid"); found {
		return []string{uid}, nil
	}
	return nil, nil
}

// slim leaves out what nobody reads here: most of an object.
func slim(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	u.SetManagedFields(nil)
	annotations := u.GetAnnotations()
	for name := range annotations {
		if !translate.Reads(name) {
			delete(annotations, name)
		}
	}
	u.SetAnnotations(annotations)
	if u.GetKind() == "Pod" {
		kept := map[string]any{}
		for _, name := range []string{"nodeName", "restartPolicy"} {
			if value, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", name); found {
				kept[name] = value
			}
		}
		u.Object["spec"] = kept
	}
	unstructured.RemoveNestedField(u.Object, "spec", "template")
	unstructured.RemoveNestedField(u.Object, "spec", "replicatedJobs")
	return u, nil
}

func (w *watch) report(p place, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.trouble, p)
		return
	}
	w.trouble[p] = err
}

// troubled is why the copy may be old; nil when it is not. That a kind of objects is denied says nothing of the others.
func (w *watch) troubled() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.trouble {
		if !isDenied(err) {
			return err
		}
	}
	return nil
}

// denial is what the API server says of a place that it does not let be watched; nil when it does.
func (w *watch) denial(p place) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.trouble[p]; isDenied(err) {
		return &denial{p, err}
	}
	return nil
}

// recovered asks whether the API server answers again, after trouble; of what it has denied, now and then.
func (w *watch) recovered(ctx context.Context, again bool) error {
	w.mu.Lock()
	var asked []place
	for p, err := range w.trouble {
		if again || !isDenied(err) {
			asked = append(asked, p)
		}
	}
	w.mu.Unlock()
	for _, p := range asked {
		ctx, cancel := withTimeout(ctx)
		_, err := w.clients.dynamic.Resource(p.resource).Namespace(p.namespace).List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: translate.TokenLabel})
		cancel()
		denied := w.denial(p) != nil
		switch w.report(p, err); {
		case err == nil && denied:
			w.restart(p) // it pauses ever longer, the more often it was denied
		case err != nil && !isDenied(err):
			return err
		}
	}
	return nil
}

// restart makes the next that asks for a place watch it anew.
func (w *watch) restart(p place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched := w.informers[p]; watched != nil {
		watched.stop()
		delete(w.informers, p)
	}
}

// about are the objects of a place with an owner.
func (w *watch) about(p place, owner string) []*unstructured.Unstructured {
	w.mu.Lock()
	watched := w.informers[p]
	w.mu.Unlock()
	if watched == nil {
		return nil
	}
	items, err := watched.GetIndexer().ByIndex(byOwner, owner)
	if err != nil {
		return nil
	}
	var found []*unstructured.Unstructured
	for _, item := range items {
		if u, ok := item.(*unstructured.Unstructured); ok {
			found = append(found, u)
		}
	}
	return found
}

// leave notes that an object of a token's is being deleted, or gone: it may be the only one that tells what happened.
func (w *watch) leave(u *unstructured.Unstructured, gone bool) {
	token := u.GetLabels()[translate.TokenLabel]
	if token == "" || !gone && u.GetDeletionTimestamp() == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaving[token] == nil {
		w.leaving[token] = map[types.UID]*departure{}
	}
	d := w.leaving[token][u.GetUID()]
	if d == nil {
		d = &departure{first: u}
		w.leaving[token][u.GetUID()] = d
	}
	if gone {
		d.last = u
	}
}

// lastSeen are a token's objects that are gone, of those that are of a kind.
func (w *watch) lastSeen(token string, isOne func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*unstructured.Unstructured
	for _, d := range w.leaving[token] {
		if d.last != nil && isOne(d.last) {
			found = append(found, d.last)
		}
	}
	return found
}

// asked is an object as it was when its deletion was asked for; nil: that was not seen.
func (w *watch) asked(token string, uid types.UID) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.leaving[token][uid]; d != nil && d.first.GetDeletionTimestamp() != nil {
		return d.first
	}
	return nil
}

// forget drops what has left of those that nobody asks about any more.
func (w *watch) forget(live map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for token := range w.leaving {
		if !live[token] {
			delete(w.leaving, token)
		}
	}
}
