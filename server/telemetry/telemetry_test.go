package telemetry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/server/telemetry"
)

// call calls every method once.
func call(m *telemetry.Metrics) {
	m.Submitted("hpc", "submitted")
	m.Ended("hpc", "FAILED")
	m.Live("hpc", 7)
	m.Dispatched("hpc", time.Second)
	m.Looked("hpc", time.Second, false)
	m.Looked("hpc", time.Second, true)
	m.UnknownWord("hpc", "DREAMING")
	m.Requested("GetJob", "OK", time.Millisecond)
	m.StreamOpened("WatchJobs")
	m.StreamOpened("WatchJobs")()
	m.Committed(3)
}

func TestNilCountsNothing(t *testing.T) {
	t.Parallel()
	require.NotPanics(t, func() { call(nil) })
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := telemetry.New(registry, "hpc", "idle")
	call(m)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP dagbridge_jobs_ended_total Jobs that reached their end, by cluster and state.
# TYPE dagbridge_jobs_ended_total counter
dagbridge_jobs_ended_total{cluster="hpc",state="FAILED"} 1
# HELP dagbridge_jobs_live Jobs that are not at their end, by cluster.
# TYPE dagbridge_jobs_live gauge
dagbridge_jobs_live{cluster="hpc"} 7
dagbridge_jobs_live{cluster="idle"} 0
# HELP dagbridge_looks_failed_total Looks at a cluster that got no answer.
# TYPE dagbridge_looks_failed_total counter
dagbridge_looks_failed_total{cluster="hpc"} 1
dagbridge_looks_failed_total{cluster="idle"} 0
# HELP dagbridge_streams_open Streams that are open, by method.
# TYPE dagbridge_streams_open gauge
dagbridge_streams_open{method="WatchJobs"} 1
# HELP dagbridge_submissions_total Native jobs handed to a cluster, by what came of it.
# TYPE dagbridge_submissions_total counter
dagbridge_submissions_total{cluster="hpc",outcome="submitted"} 1
# HELP dagbridge_unknown_words_total Native states that no table knows: news for the developers.
# TYPE dagbridge_unknown_words_total counter
dagbridge_unknown_words_total{cluster="hpc",word="DREAMING"} 1
`), "dagbridge_jobs_ended_total", "dagbridge_jobs_live", "dagbridge_looks_failed_total", "dagbridge_streams_open", "dagbridge_submissions_total", "dagbridge_unknown_words_total"))
	families, err := registry.Gather()
	require.NoError(t, err)
	counts := make(map[string]uint64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if h := metric.GetHistogram(); h != nil {
				counts[family.GetName()] += h.GetSampleCount()
			}
		}
	}
	require.Equal(t, map[string]uint64{"dagbridge_dispatch_seconds": 1, "dagbridge_look_seconds": 1, "dagbridge_request_seconds": 1, "dagbridge_store_commit_jobs": 1}, counts)
}
