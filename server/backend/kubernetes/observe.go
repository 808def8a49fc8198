package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dagbridge/dagbridge/server/backend"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

const (
	// soonest and latest news follow other news.
	soonest = 20 * time.Millisecond
	latest  = time.Second
	// refresh is how often news is told that was told before: whoever lost an order learns that it is still to be given.
	refresh = 10 * time.Second
)

// Observe watches while known returns something, and tells what is new.
func (b *Backend) Observe(ctx context.Context, known func() []backend.Known, emit func(backend.News)) {
	o := &observer{backend: b, dirty: map[string]bool{}, wake: make(chan struct{}, 1)}
	defer o.end()
	for ctx.Err() == nil {
		asOf := time.Now()
		if live := known(); len(live) == 0 {
			o.end()
		} else if news, err := o.look(ctx, live); err != nil {
			emit(backend.News{AsOf: asOf, Err: err})
			o.told = nil
		} else if len(news) > 0 {
			emit(backend.News{AsOf: asOf, Observations: news})
		}
		if _, goesOn := backend.Pause(ctx, o.wake, soonest, latest); !goesOn {
			return
		}
	}
}

// observer is an Observe in progress.
type observer struct {
	backend *Backend
	watch   *watch
	// told are the observations of each token.
	told      map[string][]backend.Observation
	refreshed time.Time
	wake      chan struct{}

	mu    sync.Mutex
	dirty map[string]bool
}

// end stops watching.
func (o *observer) end() {
	if o.watch != nil {
		o.watch.stop()
	}
	o.watch, o.told = nil, nil
}

// changed notes that something of a token's has changed.
func (o *observer) changed(token string) {
	o.mu.Lock()
	o.dirty[token] = true
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// look tells what of the jobs is not what was told.
func (o *observer) look(ctx context.Context, live []backend.Known) ([]backend.Observation, error) {
	c, err := o.backend.connect()
	if err != nil {
		return nil, err
	}
	if o.watch != nil && o.watch.clients != c {
		o.end() // by credentials that are none any more
	}
	if o.watch == nil {
		o.watch = newWatch(ctx, c, o.changed)
	}
	again := time.Since(o.refreshed) > refresh
	if again {
		o.refreshed = time.Now()
	}
	if err := o.watch.recovered(ctx, again); err != nil {
		return nil, err
	}
	o.mu.Lock()
	dirty := o.dirty
	o.dirty = map[string]bool{}
	o.mu.Unlock()
	told := make(map[string][]backend.Observation, len(live))
	tokens := make(map[string]bool, len(live))
	var news []backend.Observation
	for _, known := range live {
		token := known.Ref.Token
		tokens[token] = true
		before, seen := o.told[token]
		now := before
		// What is gone or cannot be seen is asked for again; an event about a workload says whose it is by its uid alone, hence "".
		if !seen || dirty[token] || again && (vanished(before) || dirty[""]) {
			var err error
			if now, err = o.observe(ctx, known); err != nil {
				return nil, err
			}
		}
		told[token] = now
		for i, one := range now {
			if again || i >= len(before) || !same(one, before[i]) {
				news = append(news, one)
			}
		}
	}
	o.told = told
	o.watch.forget(tokens)
	return news, nil
}

func vanished(observations []backend.Observation) bool {
	return slices.ContainsFunc(observations, func(o backend.Observation) bool { return o.Gone || o.Reason == backend.Unseen })
}

// same says whether two observations tell the same.
func same(a, b backend.Observation) bool {
	return a.Ref == b.Ref && a.Position == b.Position && a.State == b.State && a.Reason == b.Reason && a.Message == b.Message && a.Held == b.Held &&
		a.Gone == b.Gone && a.Node == b.Node && a.StartTime.Equal(b.StartTime) && a.EndTime.Equal(b.EndTime)
}

// observe is what there is to tell of one native job.
func (o *observer) observe(ctx context.Context, known backend.Known) ([]backend.Observation, error) {
	positions := known.Positions
	if positions == nil {
		positions = []int{-1}
	}
	all := make([]backend.Observation, 0, len(positions))
	each := func(tell func(position int) backend.Observation) []backend.Observation {
		for _, position := range positions {
			one := tell(position)
			one.Ref, one.Position = known.Ref, position
			all = append(all, one)
		}
		return all
	}
	where, err := parseID(known.Ref.ID)
	if err != nil {
		return each(func(int) backend.Observation { return backend.Observation{Gone: true, Message: err.Error()} }), nil
	}
	unseen := func(d *denial) []backend.Observation {
		return each(func(int) backend.Observation { return backend.Observation{Reason: backend.Unseen, Message: d.Error()} })
	}
	var denied *denial
	workload, err := o.workload(ctx, where, known.Ref.Token)
	switch {
	case errors.As(err, &denied):
		return unseen(denied), nil
	case err != nil:
		return nil, err
	}
	if workload == nil {
		started := map[int]bool{}
		for _, before := range o.told[known.Ref.Token] {
			started[before.Position] = before.Started || !before.StartTime.IsZero()
		}
		return each(func(position int) backend.Observation {
			return backend.Observation{Gone: true, Started: started[position], Message: where.String() + " is not there"}
		}), nil
	}
	status, of, err := o.status(ctx, where, workload)
	switch {
	case errors.As(err, &denied):
		return unseen(denied), nil
	case err != nil:
		return nil, err
	}
	return each(func(position int) backend.Observation {
		one := observation(translate.State(of(position, status)))
		one.SubmitTime = workload.GetCreationTimestamp().Time
		return one
	}), nil
}

// workload is the native job as it is, or, when it was deleted before our eyes, as it was; nil when there is none that carries
// the token. Only an answer to the question for it says that.
func (o *observer) workload(ctx context.Context, where object, token string) (*unstructured.Unstructured, error) {
	at := place{where.resource, where.namespace}
	if err := o.watch.ensure(ctx, at); err != nil {
		return nil, err
	}
	for _, u := range o.watch.about(at, token) {
		if u.GetName() == where.name {
			return u, nil
		}
	}
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	u, err := o.watch.clients.dynamic.Resource(where.resource).Namespace(where.namespace).Get(ctx, where.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		for _, last := range o.watch.lastSeen(token, func(u *unstructured.Unstructured) bool {
			return u.GetName() == where.name && resourceOf(u.Object) == where.resource
		}) {
			if last.GetDeletionTimestamp() == nil {
				last = last.DeepCopy()
				last.SetDeletionTimestamp(new(metav1.Now()))
			}
			return last, nil
		}
		return nil, nil
	case err != nil:
		return nil, err
	case u.GetLabels()[translate.TokenLabel] != token:
		return nil, nil
	}
	return u, nil
}

// status is all that is known of a workload, and what of it is about one position.
func (o *observer) status(ctx context.Context, where object, workload *unstructured.Unstructured) (translate.Status, func(int, translate.Status) translate.Status, error) {
	s := translate.Status{Index: -1, Object: workload.Object}
	if err := o.watch.ensure(ctx, place{pods, where.namespace}); err != nil {
		return s, nil, err
	}
	if err := o.ask(ctx, place{events, where.namespace}); err != nil {
		return s, nil, err
	}
	if where.resource == jobs {
		s.Job = &batchv1.Job{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(workload.Object, s.Job); err != nil {
			return s, nil, err
		}
	}
	var err error
	if s.Pods, err = o.pods(ctx, where, workload); err != nil {
		return s, nil, err
	}
	for _, u := range o.watch.about(place{events, where.namespace}, string(workload.GetUID())) {
		event := &corev1.Event{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, event); err == nil {
			s.Events = append(s.Events, event)
		}
	}
	if translate.Queues(workload.Object) {
		at := place{workloads, where.namespace}
		if err := o.ask(ctx, at); err != nil {
			return s, nil, err
		}
		for _, u := range o.watch.about(at, string(workload.GetUID())) {
			s.Admission = u.Object
		}
	}
	if gang := translate.GangOf(workload.Object); gang != nil {
		at := place{resourceOf(gang), where.namespace}
		if err := o.ask(ctx, at); err != nil {
			return s, nil, err
		}
		for _, u := range o.watch.about(at, workload.GetLabels()[translate.TokenLabel]) {
			s.Group = u.Object
		}
	}
	positions, err := translate.ParsePositions(workload.GetAnnotations()[translate.PositionsAnnotation])
	if err != nil {
		return s, nil, err
	}
	index := make(map[int]int, len(positions))
	for i, position := range positions {
		index[position] = i
	}
	of := map[int][]*corev1.Pod{}
	if positions != nil {
		for _, pod := range s.Pods {
			if i, err := strconv.Atoi(pod.Labels[batchv1.JobCompletionIndexAnnotation]); err == nil {
				of[i] = append(of[i], pod)
			}
		}
	}
	return s, func(position int, s translate.Status) translate.Status {
		if i, ok := index[position]; ok {
			s.Index, s.Pods = i, of[i]
		}
		return s
	}, nil
}

// ask is for what tells only why a job waits: where it is denied, the job is seen without.
func (o *observer) ask(ctx context.Context, at place) error {
	var denied *denial
	if err := o.watch.ensure(ctx, at); !errors.As(err, &denied) {
		return err
	}
	return nil
}

// pods of a workload, those that have been deleted before our eyes included. News of a workload's end may come before that of
// its pods' ends: then they are asked for.
func (o *observer) pods(ctx context.Context, where object, workload *unstructured.Unstructured) ([]*corev1.Pod, error) {
	token := workload.GetLabels()[translate.TokenLabel]
	var all []*corev1.Pod
	ended := true
	seen := append(o.watch.about(place{pods, where.namespace}, token),
		o.watch.lastSeen(token, func(u *unstructured.Unstructured) bool {
			return u.GetKind() == "Pod" && u.GetNamespace() == where.namespace
		})...)
	for _, u := range seen {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, pod); err != nil {
			return nil, err
		}
		if first := o.watch.asked(token, pod.UID); first != nil {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = first.GetDeletionTimestamp(), first.GetDeletionGracePeriodSeconds()
		}
		ended = ended && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil)
		all = append(all, pod)
	}
	if ended || !translate.Ended(workload.Object) {
		return all, nil
	}
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	list, err := o.watch.clients.core.Pods(where.namespace).List(ctx, metav1.ListOptions{LabelSelector: translate.TokenLabel + "=" + token})
	if err != nil {
		return nil, err
	}
	all = nil
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

func observation(n translate.Native) backend.Observation {
	return backend.Observation{
		State: n.State, Reason: n.Reason, Infrastructure: n.Infrastructure, Message: n.Message, Held: n.Held, ExitCode: n.ExitCode, Signal: n.Signal,
		StartTime: n.StartTime, EndTime: n.EndTime, Node: n.Node,
	}
}
