package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// runSize is how many jobs one update of the child puts.
const runSize = 3

// updateForEver puts runs of jobs from several goroutines and prints the id of each run that was acknowledged.
func updateForEver(path string) error {
	s, err := store.Open(path, store.Options{})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				run := &dagbridgev1.Run{Id: newID(), Workflow: "risk", Run: newID()}
				err := s.Update(context.Background(), func(tx *store.Tx) error {
					tx.PutRun(run)
					for i := range runSize {
						rec := newRecord(fmt.Sprint(i), 1, "")
						rec.Job.RunId = run.GetId()
						tx.Put(rec)
						tx.PutTask(rec.GetJob().GetId(), &dagbridgev1.Task{Script: &dagbridgev1.Script{Text: strings.Repeat(run.GetId(), 50)}})
					}
					return nil
				})
				if err != nil {
					panic(err)
				}
				fmt.Println(run.GetId())
			}
		})
	}
	wg.Wait()
	return nil
}

// TestKill kills a process in the middle of updates, again and again: what it acknowledged is there, and nothing is half there.
func TestKill(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	acknowledged := map[string]bool{}
	for range 8 {
		cmd := exec.Command(os.Args[0], path)
		cmd.Env = append(os.Environ(), childEnv+"=update")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 1 + rand.IntN(300); n > 0 && lines.Scan(); n-- {
			acknowledged[lines.Text()] = true
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() { // what it had written when it died
			acknowledged[lines.Text()] = true
		}
		require.EqualError(t, cmd.Wait(), "signal: killed")

		s, err := store.Open(path, store.Options{})
		require.NoError(t, err)
		requireWhole(t, s, acknowledged)
		require.NoError(t, s.Close())
	}
	require.NotEmpty(t, acknowledged)
}

// requireWhole: every run is there with all of its jobs and their tasks, or not at all; those acknowledged are there.
func requireWhole(t *testing.T, s *store.Store, acknowledged map[string]bool) {
	t.Helper()
	missing := len(acknowledged)
	total := 0
	require.NoError(t, s.View(func(tx *store.Tx) error {
		runJobs := map[string]int{}
		tx.Live(func(rec *storev1.JobRecord) bool {
			job := rec.GetJob()
			total++
			runJobs[job.GetRunId()]++
			require.Equal(t, strings.Repeat(job.GetRunId(), 50), tx.Task(job.GetId()).GetScript().GetText())
			require.NotEmpty(t, tx.Newest(job.GetKey()))
			require.NotNil(t, tx.Run(job.GetRunId()))
			return true
		})
		for run, n := range runJobs {
			require.Equal(t, runSize, n)
			listed := 0
			tx.RunJobs(run, func(string) bool { listed++; return true })
			require.Equal(t, runSize, listed)
			if acknowledged[run] {
				missing--
			}
		}
		return nil
	}))
	require.Zero(t, missing)
	require.EqualValues(t, total, s.Seq())
}
