package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

var jobs = flag.Int("jobs", 1_000_000, "how many jobs the large store holds")

// live is how many of them have not ended.
const live = 1000

// filled is the folder with the large store, once it has been made.
var filled string

// million is the folder of a gateway with a million jobs, made once: theJob, the others, and at last a thousand that live.
func million(b *testing.B) string {
	b.Helper()
	if filled == "" {
		var err error
		filled, err = os.MkdirTemp("", "dagbridge-bench-")
		require.NoError(b, err)
		fill(b, filled, *jobs)
	}
	return filled
}

// nth is one of them.
func nth(i int) *dagbridgev1.Job {
	job := theJob()
	if i == 0 {
		return job
	}
	job.Id = uuid.Must(uuid.NewV7()).String()
	job.Key = nthKey(i)
	job.NativeId = fmt.Sprint(i)
	job.Attempts[0].NativeId, job.Attempts[0].Token = job.NativeId, job.Id+".1"
	return job
}

func nthKey(i int) *dagbridgev1.TaskKey {
	return &dagbridgev1.TaskKey{
		Deployment: "default", Orchestrator: "airflow", Workflow: fmt.Sprintf("workflow_%03d", i/100_000),
		Run: fmt.Sprintf("scheduled__2026-01-%05dT00:00:00+00:00", i/1000), Task: fmt.Sprintf("task_%03d", i%1000),
	}
}

func fill(b *testing.B, dir string, n int) {
	b.Helper()
	s, err := store.Open(storeFile(dir), store.Options{NoSync: true})
	require.NoError(b, err)
	for from := 0; from < n; from += 1000 {
		require.NoError(b, s.Update(context.Background(), func(tx *store.Tx) error {
			run := &dagbridgev1.Run{Deployment: "default", Orchestrator: "airflow", Workflow: nthKey(from).GetWorkflow(), Run: nthKey(from).GetRun(), Id: uuid.Must(uuid.NewV7()).String(), CreateTime: timestamppb.Now()}
			tx.PutRun(run)
			for i := from; i < min(n, from+1000); i++ {
				job := nth(i)
				job.RunId = run.GetId()
				if i >= n-live {
					job.State, job.EndTime = dagbridgev1.Job_SUBMITTED, nil
				}
				tx.Put(&storev1.JobRecord{Job: job, Ready: true})
				tx.PutTask(job.GetId(), task(job.GetKey()))
			}
			return nil
		}))
	}
	require.NoError(b, s.Close())
}

// BenchmarkMillion measures a store of a million jobs: from the start of the gateway's process until it serves, and look-ups
// of jobs all over it.
func BenchmarkMillion(b *testing.B) {
	dir := million(b)
	start := func() (*process, float64) {
		began := time.Now()
		gateway := startProcess(b, down(b, dir)...)
		_, err := gateway.client.GetJob(b.Context(), &dagbridgev1.GetJobRequest{Id: theJob().GetId()})
		require.NoError(b, err)
		return gateway, time.Since(began).Seconds()
	}
	var stopped, killed []float64
	for range *rounds {
		gateway, took := start()
		stopped = append(stopped, took)
		// Once it has written, the list of free pages is in memory alone: after a kill it has to be found again.
		_, err := gateway.client.SubmitTask(b.Context(), submission(uuid.NewString(), 0))
		require.NoError(b, err)
		gateway.kill()
		gateway, took = start()
		killed = append(killed, took)
		gateway.stop()
	}
	figure("a million jobs: from start to first answer, after a stop", "s", stopped, aim{atMost: 2})
	figure("a million jobs: from start to first answer, after a kill", "s", killed, aim{atMost: 2})

	s, err := store.Open(storeFile(dir), store.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	var p99 []float64
	for range *rounds {
		var took []time.Duration
		for i := range 10_000 {
			key := nthKey(1 + i*7919%(*jobs-1))
			began := time.Now()
			_, err := s.Lookup(key, 0)
			took = append(took, time.Since(began))
			require.NoError(b, err)
		}
		slices.Sort(took)
		p99 = append(p99, took[len(took)*99/100].Seconds()*1000)
	}
	figure("a million jobs: look-up in the store, 99 %", "ms", p99, aim{atMost: 1})
}
