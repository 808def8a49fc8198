package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// open opens a store in a temporary folder; it is closed with the test.
func open(t *testing.T, path string, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "data", "dagbridge.db") }

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// newRecord is a job as the engine admits it.
func newRecord(task string, try int32, uid string) *storev1.JobRecord {
	return &storev1.JobRecord{Job: &dagbridgev1.Job{
		Id:         newID(),
		Key:        &dagbridgev1.TaskKey{Deployment: "default", Orchestrator: "airflow", Workflow: "risk", Run: "manual__1", Task: task},
		TryNumber:  try,
		Uid:        uid,
		Owner:      "airflow",
		Cluster:    "hpc",
		State:      dagbridgev1.Job_ACCEPTED,
		CreateTime: timestamppb.Now(),
	}}
}

func put(t *testing.T, s *store.Store, recs ...*storev1.JobRecord) {
	t.Helper()
	require.NoError(t, s.Update(context.Background(), func(tx *store.Tx) error {
		for _, rec := range recs {
			tx.Put(rec)
		}
		return nil
	}))
}

func TestPutAndLookUp(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	rec := newRecord("train", 1, "a")
	s, err := store.Open(path, store.Options{})
	require.NoError(t, err)
	put(t, s, rec)
	require.NoError(t, s.Close())

	s = open(t, path, store.Options{})
	job, err := s.Job(rec.GetJob().GetId())
	require.NoError(t, err)
	require.Equal(t, rec.GetJob().String(), job.String())
	job, err = s.Lookup(rec.GetJob().GetKey(), 0)
	require.NoError(t, err)
	require.Equal(t, rec.GetJob().GetId(), job.GetId())
	jobs, next, _, err := s.List(&dagbridgev1.JobFilter{Workflow: "risk", State: []dagbridgev1.Job_State{dagbridgev1.Job_RUNNING, dagbridgev1.Job_ACCEPTED}}, 10, "")
	require.NoError(t, err)
	require.Empty(t, next)
	require.Len(t, jobs, 1)
}

// newFolder is a folder for a rapid history, which has no t.TempDir.
func newFolder(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "store")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
