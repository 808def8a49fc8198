// Package telemetry counts what the gateway does, for Prometheus.
//
// Metrics is handed to whoever has something to count; each method is one thing that happened. A nil *Metrics counts
// nothing, so that no caller asks whether there is one. Labels have few values: clusters, outcomes, states, methods and
// codes, never ids or keys. The package knows nothing of jobs, stores or servers.
package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics is the gateway's counters and histograms. Its methods may be called concurrently.
type Metrics struct {
	submissions  *prometheus.CounterVec
	ended        *prometheus.CounterVec
	live         *prometheus.GaugeVec
	dispatch     *prometheus.HistogramVec
	looks        *prometheus.HistogramVec
	failedLooks  *prometheus.CounterVec
	unknownWords *prometheus.CounterVec
	requests     *prometheus.HistogramVec
	streams      *prometheus.GaugeVec
	commitJobs   prometheus.Histogram
}

// New registers the metrics with a registry, which must not have them yet. What is counted for each of the clusters begins at 0:
// to Prometheus a series that appears has not increased, and nobody would be told of the first failure.
func New(registry prometheus.Registerer, clusters ...string) *Metrics {
	m := &Metrics{
		submissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dagbridge_submissions_total", Help: "Native jobs handed to a cluster, by what came of it.",
		}, []string{"cluster", "outcome"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dagbridge_jobs_ended_total", Help: "Jobs that reached their end, by cluster and state.",
		}, []string{"cluster", "state"}),
		live: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "dagbridge_jobs_live", Help: "Jobs that are not at their end, by cluster.",
		}, []string{"cluster"}),
		dispatch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dagbridge_dispatch_seconds", Help: "From a job's acceptance until its first native id was known.",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 9),
		}, []string{"cluster"}),
		looks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dagbridge_look_seconds", Help: "How long looks at a cluster took that got an answer.",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 8),
		}, []string{"cluster"}),
		failedLooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dagbridge_looks_failed_total", Help: "Looks at a cluster that got no answer.",
		}, []string{"cluster"}),
		unknownWords: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dagbridge_unknown_words_total", Help: "Native states that no table knows: news for the developers.",
		}, []string{"cluster", "word"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dagbridge_request_seconds", Help: "Requests over gRPC and REST, by method and gRPC code; of a stream, its whole life.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10),
		}, []string{"method", "code"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "dagbridge_streams_open", Help: "Streams that are open, by method.",
		}, []string{"method"}),
		commitJobs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "dagbridge_store_commit_jobs", Help: "How many jobs one commit of the store has written.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
	}
	registry.MustRegister(m.submissions, m.ended, m.live, m.dispatch, m.looks, m.failedLooks, m.unknownWords, m.requests, m.streams, m.commitJobs)
	for _, cluster := range clusters {
		m.failedLooks.WithLabelValues(cluster)
		m.live.WithLabelValues(cluster)
	}
	return m
}

// Submitted counts a native job that was handed to a cluster: outcome is "submitted", "refused", "busy", "not_sent" or "unknown".
func (m *Metrics) Submitted(cluster, outcome string) {
	if m != nil {
		m.submissions.WithLabelValues(cluster, outcome).Inc()
	}
}

// Ended counts a job that reached its end; state is the word of dagbridgev1.Job_State.
func (m *Metrics) Ended(cluster, state string) {
	if m != nil {
		m.ended.WithLabelValues(cluster, state).Inc()
	}
}

// Live says how many jobs of a cluster are not at their end.
func (m *Metrics) Live(cluster string, n int) {
	if m != nil {
		m.live.WithLabelValues(cluster).Set(float64(n))
	}
}

// Dispatched tells how long it took from a job's acceptance until its first native id was known.
func (m *Metrics) Dispatched(cluster string, d time.Duration) {
	if m != nil {
		m.dispatch.WithLabelValues(cluster).Observe(d.Seconds())
	}
}

// Looked tells of one look at a cluster, and whether it failed.
func (m *Metrics) Looked(cluster string, d time.Duration, failed bool) {
	switch {
	case m == nil:
	case failed:
		m.failedLooks.WithLabelValues(cluster).Inc()
	default:
		m.looks.WithLabelValues(cluster).Observe(d.Seconds())
	}
}

// UnknownWord counts a native state that no table knows.
func (m *Metrics) UnknownWord(cluster, word string) {
	if m != nil {
		m.unknownWords.WithLabelValues(cluster, word).Inc()
	}
}

// Requested tells of one request: its method ("SubmitTask"), its gRPC code ("OK") and how long it took.
func (m *Metrics) Requested(method, code string, d time.Duration) {
	if m != nil {
		m.requests.WithLabelValues(method, code).Observe(d.Seconds())
	}
}

// StreamOpened counts an open stream until the function it returns is called.
func (m *Metrics) StreamOpened(method string) (closed func()) {
	if m == nil {
		return func() {}
	}
	gauge := m.streams.WithLabelValues(method)
	gauge.Inc()
	return gauge.Dec
}

// Committed tells how many jobs one commit of the store has written.
func (m *Metrics) Committed(jobs int) {
	if m != nil {
		m.commitJobs.Observe(float64(jobs))
	}
}
