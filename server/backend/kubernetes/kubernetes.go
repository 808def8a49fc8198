// Package kubernetes runs jobs on a Kubernetes cluster, by way of its API server.
//
// What is made of a submission, and what a status means, is said by translators/kubernetes; this package only asks and
// orders. Three things carry all that matters, and all are in the API server:
//
//   - The name of a workload, which follows from its token alone. A name that is taken is taken by this very attempt, so that
//     submitting twice makes one, whoever died in between, and a request that is late finds it taken too.
//   - The label with the token, by which a workload is recognised before anything is done to it, and by which it is found.
//   - A suspended Job without pods under a name that nothing has: the mark of a cancel. Whatever would take the name finds it.
//
// The cluster is watched, a watch for each kind of object and namespace that live jobs have, and not at all while there are
// none. What the watches say is news; that an object is gone is so only when the API server, asked for it, says so.
//
// The package must not decide an end by itself, must not touch an object whose token is not the one it was asked about, and
// must not own anything: nothing that it makes goes when the gateway goes.
package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/serviceaccount"
	"github.com/dagbridge/dagbridge/translators"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// Options of a Kubernetes cluster.
type Options struct {
	// Name of the cluster in the configuration.
	Name string
	// Kubeconfig is a path; "": the service account of the pod that this is.
	Kubeconfig string
	// Context in it; "": the current one.
	Context string
	// Namespaces that tasks may name, the first for those that name none; none: default. Rights in these are enough.
	Namespaces []string
	// Kinds are those that templates may be of, beside Job and JobSet: "pytorchjobs.v1.kubeflow.org".
	Kinds []string
	// Site is what the translator is told.
	Site translate.Site
	// Rate is how many calls a second are made at most, 0: 200. client-go's own limit is 5, which is 6 jobs a second.
	Rate float32
	// Keep is for how long an ended workload, and its log, is left for reading; 0: an hour.
	Keep time.Duration
	Log  *slog.Logger
}

const (
	defaultRate = 200
	defaultKeep = time.Hour
	// together is how many calls are made at once: more do not make an API server faster.
	together = 32
	// callTime is what one call may take.
	callTime = 30 * time.Second
)

// Backend is a Kubernetes cluster.
type Backend struct {
	options Options

	mu      sync.Mutex
	clients *clients
}

// clients speak to the API server.
type clients struct {
	core    coreclient.CoreV1Interface
	reviews authclient.TokenReviewInterface
	dynamic dynamic.Interface
}

// New makes a Kubernetes cluster. It contacts nothing, and reads the kubeconfig only when the first call is made.
func New(o Options) (*Backend, error) {
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{"default"}
	}
	o.Site.Namespace = o.Namespaces[0]
	if o.Rate == 0 {
		o.Rate = defaultRate
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, kind := range o.Kinds {
		if _, err := parseResource(kind); err != nil {
			return nil, err
		}
	}
	return &Backend{options: o}, nil
}

// connect gives the clients. A kubeconfig that cannot be read now may be there later; one whose credentials the API server does
// not know is read again, since somebody renews it.
func (b *Backend) connect() (*clients, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clients != nil {
		return b.clients, nil
	}
	config, err := serviceaccount.Connection(b.options.Kubeconfig, b.options.Context)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes cluster %s cannot be reached: %w", b.options.Name, err)
	}
	config.QPS, config.Burst = b.options.Rate, int(2*b.options.Rate)
	config.UserAgent = "dagbridge"
	made := &clients{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &door{next: next, refused: func() { b.disconnect(made) }}
	})
	if made.core, err = coreclient.NewForConfig(config); err != nil {
		return nil, err
	}
	authentication, err := authclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	made.reviews = authentication.TokenReviews()
	if made.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	b.clients = made
	return made, nil
}

// disconnect makes the next call read the kubeconfig.
func (b *Backend) disconnect(c *clients) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clients == c {
		b.clients = nil
	}
}

// door is a way to the API server that tells when it is shut.
type door struct {
	next    http.RoundTripper
	refused func()
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		d.refused()
	}
	return answer, err
}

// Kind is "kubernetes".
func (b *Backend) Kind() string { return "kubernetes" }

// Capabilities: the engine keeps dependencies. Arrays are native; tasks with programs of their own go in one by one.
func (b *Backend) Capabilities() backend.Capabilities {
	return backend.Capabilities{MaxArraySize: translate.MaxArraySize, Containers: true, Launcher: true}
}

// Check is what is wrong with a submission.
func (b *Backend) Check(s translators.Submission) translators.Faults {
	w, faults := translate.Translate(b.options.Site, s)
	if len(faults) > 0 {
		return faults
	}
	return append(w.Lacking, b.unconfigured(w)...)
}

// Render is the manifests as YAML.
func (b *Backend) Render(s translators.Submission) (translators.Rendering, translators.Faults) {
	w, faults := translate.Translate(b.options.Site, s)
	if len(faults) > 0 {
		return translators.Rendering{}, faults
	}
	return translators.Rendering{Text: w.Text(), Notices: w.Notices}, nil
}

// unconfigured is what a workload needs that the cluster's configuration does not have.
func (b *Backend) unconfigured(w *translate.Workload) translators.Faults {
	var faults translators.Faults
	if !b.serves(w.Namespace) {
		faults.Add("kubernetes.namespace", "the cluster's configuration does not have %q among its namespaces: %s", w.Namespace, strings.Join(b.options.Namespaces, ", "))
	}
	if kind := resourceOf(w.Main()); !b.knows(kind) {
		faults.Add("kubernetes.template.kind", "the cluster's configuration does not have %s among its kinds", formatResource(kind))
	}
	return faults
}

// Close leaves everything as it is: connections are shared by nobody and end by themselves.
func (b *Backend) Close() error { return nil }

// withTimeout bounds one call.
func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTime)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
