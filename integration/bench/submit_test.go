package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/server/store"
)

// down are a gateway's arguments in front of a Slurm that does not answer. With a job in it that the gateway has to verify
// first, nothing is dispatched: what is measured is admission.
func down(b *testing.B, dir string) []string {
	b.Helper()
	token := filepath.Join(b.TempDir(), "token")
	require.NoError(b, os.WriteFile(token, []byte("none"), 0o600))
	return gatewayRole(b, dir, clusterOptions{Slurm: &slurm.Options{
		Name: "hpc", REST: &slurm.REST{URL: "http://127.0.0.1:1", User: "slurmtest", TokenFile: token}, WorkDir: b.TempDir(),
	}})
}

// newGatewayWithAJob starts a gateway of its own folder in front of a Slurm that is down.
func newGatewayWithAJob(b *testing.B) (*process, string) {
	b.Helper()
	dir := b.TempDir()
	s, err := store.Open(storeFile(dir), store.Options{})
	require.NoError(b, err)
	require.NoError(b, s.Update(b.Context(), func(tx *store.Tx) error {
		job := theJob()
		job.State, job.EndTime = dagbridgev1.Job_SUBMITTED, nil
		job.SubmitTime = timestamppb.Now()
		tx.Put(&storev1.JobRecord{Job: job, Ready: true})
		tx.PutTask(job.GetId(), task(job.GetKey()))
		return nil
	}))
	require.NoError(b, s.Close())
	return startProcess(b, down(b, dir)...), dir
}

// task is what an orchestrator submits.
func task(key *dagbridgev1.TaskKey) *dagbridgev1.Task {
	return &dagbridgev1.Task{
		Key: key, TryNumber: 1, Uid: "019a0000-0000-7000-8000-000000000001", Cluster: "hpc", Command: &dagbridgev1.Command{Argv: []string{"python", "train.py", "--epochs", "3"}},
		Env: map[string]string{"EPOCHS": "3"}, Resources: &dagbridgev1.Resources{Cpu: "4", Memory: "16Gi", TimeLimit: durationpb.New(time.Hour)}, Labels: map[string]string{"team": "x"},
	}
}

// BenchmarkSubmit compares durable submissions with a loop that commits what waits to bare bbolt, with as many puts and bytes.
func BenchmarkSubmit(b *testing.B) {
	puts := measurePuts(b)
	for _, c := range []struct{ clients, n int }{{1, 300}, {8, 1200}, {64, 4800}} {
		gateway, _ := newGatewayWithAJob(b)
		bare := openBare(b, puts)
		connections := make([]dagbridgev1.BridgeServiceClient, c.clients)
		for i := range connections {
			connections[i] = dial(b, gateway.grpcAddr)
		}
		// A new run for each round: what a run costs is part of it.
		round := func() float64 {
			run := uuid.NewString()
			began := time.Now()
			spread(c.n, c.clients, func(client, i int) {
				_, err := connections[client].SubmitTask(b.Context(), submission(run, i))
				if err != nil {
					b.Error(err)
				}
			})
			return float64(c.n) / time.Since(began).Seconds()
		}
		round()
		var ours, theirs, cpuOurs, cpuTheirs, syncs []float64
		for range *rounds {
			began, before := time.Now(), cpu(b, os.Getpid())
			spread(c.n, c.clients, func(int, int) { require.NoError(b, bare.update()) })
			theirs = append(theirs, float64(c.n)/time.Since(began).Seconds())
			cpuTheirs = append(cpuTheirs, float64((cpu(b, os.Getpid())-before).Microseconds())/float64(c.n))
			commits, before := gateway.commits(b), gateway.cpu(b)
			ours = append(ours, round())
			syncs = append(syncs, 2*(gateway.commits(b)-commits)/float64(c.n)) // bbolt syncs the data, then the page that makes them count
			cpuOurs = append(cpuOurs, float64((gateway.cpu(b)-before).Microseconds())/float64(c.n))
		}
		bare.close(b)
		gateway.stop()
		what := fmt.Sprintf("durable submissions over gRPC, clients: %d", c.clients)
		compare(what, "bbolt group commit", "/s", ours, theirs, aim{atLeast: 0.5})
		compare("  processor time, the gateway's alone", "bbolt group commit", "µs", cpuOurs, cpuTheirs, aim{})
		if c.clients == 64 {
			figure("  fdatasync calls a submission", "", syncs, aim{atMost: 0.2})
		}
	}
}

func submission(run string, i int) *dagbridgev1.SubmitTaskRequest {
	return &dagbridgev1.SubmitTaskRequest{Task: task(&dagbridgev1.TaskKey{Orchestrator: "airflow", Workflow: "risk", Run: run, Task: fmt.Sprintf("task_%06d", i)})}
}

// commits of the gateway's store so far, by its own metrics.
func (p *process) commits(b *testing.B) float64 {
	b.Helper()
	commits := p.metric(b, "dagbridge_store_commit_jobs_count")
	require.Positive(b, commits)
	return commits
}

// puts are a bucket's share of what one submission puts, with the mean sizes of its keys and values.
type puts struct {
	bucket     string
	n          int
	key, value int
}

// measurePuts submits some tasks and reads what there is in the file for each.
func measurePuts(b *testing.B) []puts {
	gateway, dir := newGatewayWithAJob(b)
	const n = 300
	run := uuid.NewString()
	for i := range n {
		_, err := gateway.client.SubmitTask(b.Context(), submission(run, i))
		require.NoError(b, err)
	}
	gateway.stop()
	db, err := bolt.Open(storeFile(dir), 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	require.NoError(b, err)
	defer func() { require.NoError(b, db.Close()) }()
	var all []puts
	require.NoError(b, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
			p := puts{bucket: string(name)}
			entries := 0
			err := bucket.ForEach(func(k, v []byte) error {
				entries++
				p.key += len(k)
				p.value += len(v)
				return nil
			})
			p.n = int(math.Round(float64(entries) / n))
			if p.n > 0 {
				p.key, p.value = p.key/entries, p.value/entries
				all = append(all, p)
			}
			return err
		})
	}))
	for _, p := range all {
		b.Logf("a submission: %d in %s, keys of %d bytes, values of %d", p.n, p.bucket, p.key, p.value)
	}
	return all
}
