// Package engine is the runtime: it admits jobs, dispatches them to their clusters, observes what becomes of them, settles
// ends, and recovers after a crash of anything.
//
// # Model
//
// The store is the truth. Every change of a job is a function run inside one of the store's write transactions: it reads the
// present record, changes a clone, and puts it. Memory (type memory) holds the jobs that have not ended and follows the store
// through its commit hook, so it is never ahead of what is durable. Network and files are never touched in a transaction.
//
// A record is a unit when it has a native job of its own: a single task, the parent of an array that is one native array, an
// instance of an array that goes one by one, or a carrier. A carrier is nobody's job but a native array alone: a chunk of an
// array that is too large for one, or tasks that differ only in their programs and go in together (Workflow.fold). What is an
// element of a unit's array has its own record, state, attempts and outputs; what it waits for, holds, tokens, looks and
// cancels are the unit's. A task that went in with others goes on by itself when it is retried; an array's instance goes in
// again with those of its native array that have to, once the others have ended.
//
// What follows the failure of an attempt depends on its cause (causes.go): which budget it is taken from, what the next attempt
// asks for, which nodes it is kept off. An attempt is kept as it was; the next one follows from it and the task alone.
//
// Each cluster has three goroutines. One runs Backend.Observe, whose news goes through Engine.observe. The second runs order,
// whenever something may have changed: find what may or may not be there, cancel, release and rewrite what differs from what
// it should be. The third runs dispatch, which submits what may go. All are level-triggered: they look at what is, never at
// what has happened, so that a scheduler which forgets what it was told is told again. A node that one of them has claimed
// (node.inFlight) the others leave alone.
//
// # What it may not do
//
// Submit a token a second time before Find has proven it absent; call a job successful on anything but the scheduler's own
// word or the exit marker; end a job because there is no news of it; hold memory ahead of the store.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/store"
	"github.com/dagbridge/dagbridge/server/telemetry"
)

// Cluster is a place to run jobs, under the name users know.
type Cluster struct {
	Name    string
	Backend backend.Backend
}

// Options are what an Engine is made of.
type Options struct {
	Store *store.Store
	// Clusters in the order of the configuration; the first is the default.
	Clusters []Cluster
	Log      *slog.Logger
	// Metrics may be nil.
	Metrics *telemetry.Metrics
	// Now is the clock; left out: time.Now.
	Now func() time.Time
	// NewID makes job and run ids; left out: UUIDv7.
	NewID func() string
	// Grace is how long a native job must be gone, by complete answers, before that is believed. Left out: 60s.
	Grace time.Duration
	// UserOf is the Unix user as whom an owner's job runs where a cluster acts as its users; asked is whom the task names, "" for
	// nobody. An error is a sentence. Left out: the owner's name is the user's, and the task may name no other.
	UserOf func(owner, asked string) (string, error)
	// OutputLimit is how many bytes of outputs a job may leave. Left out: 48 KiB.
	OutputLimit int
}

// Engine runs jobs. Its methods may be called concurrently.
type Engine struct {
	store       *store.Store
	log         *slog.Logger
	metrics     *telemetry.Metrics
	now         func() time.Time
	newID       func() string
	grace       time.Duration
	outputLimit int
	userOf      func(owner, asked string) (string, error)

	clusters []*cluster
	byName   map[string]*cluster
	mem      *memory

	stop context.CancelFunc
	done sync.WaitGroup
}

// cluster is what the engine knows of one cluster beside its jobs. Its fields below mu are guarded by it.
type cluster struct {
	Cluster
	// Orders and submissions are woken apart.
	wakeOrders, wakeSubmissions chan struct{}

	mu sync.Mutex
	// verified: since the start, or since the cluster last failed to answer, a look has told of every live job.
	verified bool
	// reachable and message are for people.
	reachable bool
	message   string
	lastLook  time.Time
	// outageEnd is when verification was last demanded: only looks begun later count.
	outageEnd time.Time
	// busyUntil and busyTries space the submissions out while the scheduler takes no more.
	busyUntil time.Time
	busyTries int
}

// New makes an engine and loads the live jobs; nothing runs before Start.
func New(o Options) (*Engine, error) {
	e := &Engine{
		store: o.Store, log: o.Log, metrics: o.Metrics, now: o.Now, newID: o.NewID, grace: o.Grace, outputLimit: o.OutputLimit, userOf: o.UserOf,
		byName: map[string]*cluster{}, mem: newMemory(),
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.newID == nil {
		e.newID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if e.grace == 0 {
		e.grace = time.Minute
	}
	if e.userOf == nil {
		e.userOf = ownerAlone
	}
	if e.outputLimit == 0 {
		e.outputLimit = 48 << 10
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	for _, c := range o.Clusters {
		if e.byName[c.Name] != nil {
			return nil, fmt.Errorf("two clusters are named %q; give each its own name", c.Name)
		}
		state := &cluster{Cluster: c, wakeOrders: make(chan struct{}, 1), wakeSubmissions: make(chan struct{}, 1), reachable: true, outageEnd: e.now()}
		e.clusters = append(e.clusters, state)
		e.byName[c.Name] = state
	}
	if err := e.store.View(e.load); err != nil {
		return nil, fmt.Errorf("loading live jobs: %w", err)
	}
	e.store.OnCommit(e.follow)
	return e, nil
}

// Start runs the clusters' loops until Stop. It does not wait for any cluster to answer.
func (e *Engine) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	for _, c := range e.clusters {
		e.done.Go(func() { e.loop(ctx, c, c.wakeOrders, e.order) })
		e.done.Go(func() { e.loop(ctx, c, c.wakeSubmissions, e.dispatch) })
		e.done.Go(func() {
			c.Backend.Observe(ctx, func() []backend.Known { return e.known(c) }, func(n backend.News) { e.observe(ctx, c, n) })
		})
		if b, ok := c.Backend.(backend.Tidier); ok {
			e.done.Go(func() { e.tidy(ctx, c, b) })
		}
	}
}

// Stop ends the loops and waits for them. It cancels no job.
func (e *Engine) Stop() {
	if e.stop != nil {
		e.stop()
	}
	e.done.Wait()
}

// tick is how often a loop looks at the clock's own causes: backoffs, windows, graces.
const tick = time.Second

// loop does something for a cluster whenever anything may have changed.
func (e *Engine) loop(ctx context.Context, c *cluster, wake <-chan struct{}, do func(context.Context, *cluster)) {
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for {
		do(ctx, c)
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-timer.C:
		}
	}
}

// order does everything that is to be done for a cluster now, but the submissions: a scheduler that takes minutes to refuse a job
// must not keep a cancel waiting. Each step leaves the store right if the process ends there.
func (e *Engine) order(ctx context.Context, c *cluster) {
	e.review(ctx, c)
	e.find(ctx, c)
	e.converge(ctx, c)
	e.tellOutage(ctx, c)
}

func (c *cluster) kick() {
	for _, wake := range []chan struct{}{c.wakeOrders, c.wakeSubmissions} {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// update runs fn in a write transaction and wakes the clusters, since any change may let something go.
func (e *Engine) update(ctx context.Context, fn func(*txn) error) error {
	var expanded []string
	defer func() { e.mem.unstage(expanded) }()
	return e.store.Update(ctx, func(tx *store.Tx) error {
		t := &txn{expanded: &expanded, Tx: tx, e: e, now: e.now(), touched: map[string]bool{}, parents: map[string]*storev1.JobRecord{}, renewed: map[string]bool{}, thinned: map[string]bool{}, batches: map[string]bool{}}
		if err := fn(t); err != nil {
			return err
		}
		t.finish()
		return nil
	})
}

// Clusters tells how each cluster is.
func (e *Engine) Clusters() []*dagbridgev1.Cluster {
	var all []*dagbridgev1.Cluster
	for _, c := range e.clusters {
		c.mu.Lock()
		one := &dagbridgev1.Cluster{Name: c.Name, Kind: c.Backend.Kind(), Reachable: c.reachable, Message: c.message}
		if !c.lastLook.IsZero() {
			one.LastLookTime = stamp(c.lastLook)
		}
		c.mu.Unlock()
		one.LiveJobs = int32(e.mem.liveOn(c.Name))
		all = append(all, one)
	}
	return all
}

// parallel runs fn for 0..n-1, a few at a time; for calls that touch files or the network.
func parallel(n int, fn func(int)) {
	var g errgroup.Group
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error { fn(i); return nil })
	}
	_ = g.Wait() // fn returns nothing
}
