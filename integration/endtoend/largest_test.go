package endtoend_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gatewaytest "github.com/dagbridge/dagbridge/integration/gateway"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// An array of ten times and more the site's MaxArraySize: every index has its state, outputs and log, and one task takes in
// what all have left. In full that is ten thousand indices, at Slurm's own limit of a thousand.
func TestAnArrayOfTenChunksAndWhatTakesItIn(t *testing.T) {
	size, limit := 100, 10
	if os.Getenv("DAGBRIDGE_LONG") != "" {
		size, limit = 10000, 1001
	}
	g := gatewaytest.New(t, slurmtest.Shared(t), "cli", fmt.Sprintf("limits: {maxArraySize: %d}", limit))
	var items strings.Builder
	for i := range size {
		fmt.Fprintf(&items, "{argv: [%q]}, ", strconv.Itoa(i))
	}
	began := time.Now()
	g.Dagbridge(t, 0, "run", "--run", "largest", "-f", write(t, "largest.yaml", fmt.Sprintf(`
name: largest
cluster: hpc
tasks:
  - key: {task: simulate}
    command: {argv: [sh, -c, 'echo "index $1"; echo "i=$1" > "$DAGBRIDGE_OUTPUT"', sh]}
    array: {items: [%s]}
  - key: {task: report}
    upstream: [{task: simulate}]
    script: {text: 'cat "$DAGBRIDGE_INPUTS"'}
`, &items)))
	accepted := time.Since(began)
	parent := lookupIn(t, g, "largest", "largest", "simulate")
	submitted := func() bool {
		counts := lookupIn(t, g, "largest", "largest", "simulate").GetCounts()
		return counts["ACCEPTED"] == 0
	}
	require.Eventually(t, submitted, 10*time.Minute, time.Second)
	inSlurm := time.Since(began)
	var report *dagbridgev1.Job
	require.Eventually(t, func() bool {
		report = lookupIn(t, g, "largest", "largest", "report")
		return report.GetState() >= dagbridgev1.Job_SUCCEEDED
	}, time.Hour, 2*time.Second)
	t.Logf("%d indices: accepted in %.1fs, in Slurm by %.1fs, all taken in by %.0fs; the gateway has %s MiB",
		size, accepted.Seconds(), inSlurm.Seconds(), time.Since(began).Seconds(), memory(t, g))
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, report.GetState(), report.GetMessage())

	want := make([]string, size)
	for i := range want {
		want[i] = fmt.Sprintf(`{"i":"%d"}`, i)
	}
	require.Equal(t, `{"simulate":[`+strings.Join(want, ",")+`]}`, g.Dagbridge(t, 0, "logs", report.GetId()))
	require.Equal(t, map[string]int32{"SUCCEEDED": int32(size)}, lookupIn(t, g, "largest", "largest", "simulate").GetCounts())
	chunks := map[string]int{}
	for token := ""; ; {
		status, text := g.Get(t, "/v1/jobs?view=FULL&pageSize=1000&parent="+parent.GetId()+"&pageToken="+token)
		require.Equal(t, http.StatusOK, status, text)
		page := &dagbridgev1.ListJobsResponse{}
		require.NoError(t, jsoncodec.Unmarshal([]byte(text), page))
		for _, job := range page.GetJobs() {
			i := int(job.GetKey().GetMapIndex()[0])
			base, element, _ := strings.Cut(job.GetNativeId(), "_")
			require.Equal(t, strconv.Itoa(i%limit), element, job.GetNativeId())
			chunks[base]++
			require.Equal(t, strconv.Quote(strconv.Itoa(i)), job.GetOutputs()["i"].GetText())
			log, err := os.ReadFile(job.GetLogs().GetStdout())
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("index %d\n", i), string(log))
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	require.Len(t, chunks, (size+limit-1)/limit)
}

// memory of the gateway's process in MiB, by its metrics.
func memory(t *testing.T, g *gatewaytest.Gateway) string {
	t.Helper()
	_, text := g.Get(t, "/metrics")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "process_resident_memory_bytes "); ok {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err)
			return strconv.FormatFloat(bytes/(1<<20), 'f', 0, 64)
		}
	}
	return "?"
}
