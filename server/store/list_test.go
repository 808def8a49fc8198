package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

func TestPageTokens(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	put(t, s, newRecord("a", 1, ""), newRecord("b", 1, ""), newRecord("c", 1, ""))
	f := &dagbridgev1.JobFilter{Workflow: "risk"}
	_, next, _, err := s.List(f, 1, "")
	require.NoError(t, err)
	for _, bad := range []string{"x", "AAAA", next + "AA", next[:len(next)-2], "%", "\xff"} {
		_, _, _, err := s.List(f, 1, bad)
		require.ErrorIs(t, err, store.ErrBadToken, bad)
	}
	_, _, _, err = s.List(&dagbridgev1.JobFilter{Cluster: "hpc"}, 1, next)
	require.ErrorIs(t, err, store.ErrBadToken, "another filter's")
	jobs, _, _, err := s.List(f, 2, next) // the size may change
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	_, _, err = s.ListRuns(&dagbridgev1.ListRunsRequest{PageToken: next})
	require.ErrorIs(t, err, store.ErrBadToken)
}

// Jobs that come while a list is paged through neither appear twice nor push others out.
func TestPagesWhileJobsCome(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	want := map[string]bool{}
	for i := range 20 {
		put(t, s, newRecord(fmt.Sprint(i), 1, ""))
		want[fmt.Sprint(i)] = true
	}
	for token := ""; ; {
		jobs, next, _, err := s.List(&dagbridgev1.JobFilter{}, 3, token)
		require.NoError(t, err)
		for _, job := range jobs {
			require.True(t, want[job.GetKey().GetTask()])
			delete(want, job.GetKey().GetTask())
		}
		put(t, s, newRecord("later", 1, newID()))
		if token = next; token == "" {
			break
		}
	}
	require.Empty(t, want)
}

// What no list holds is looked for in pages of bounded work, which may be empty, and is found.
func TestPageOfBoundedWork(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	needle := newRecord("needle", 1, "")
	needle.Job.Cluster = "k8s"
	recs := []*storev1.JobRecord{needle}
	for i := range 30_000 {
		recs = append(recs, newRecord(fmt.Sprint(i), 1, ""))
	}
	put(t, s, recs...)
	empty := 0
	for token := ""; ; {
		jobs, next, _, err := s.List(&dagbridgev1.JobFilter{Cluster: "k8s"}, 10, token)
		require.NoError(t, err)
		if len(jobs) > 0 {
			require.Equal(t, needle.GetJob().GetId(), jobs[0].GetId())
			break
		}
		require.NotEmpty(t, next)
		empty++
		token = next
	}
	require.Positive(t, empty)
}

// A page of jobs with large outputs is a short one, so that it fits into a message.
func TestPageOfBoundedWeight(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	output := `"` + strings.Repeat("x", 48<<10) + `"`
	for range 10 {
		var recs []*storev1.JobRecord
		for range 100 {
			rec := newRecord("train", 1, newID())
			rec.Job.Outputs = map[string]*dagbridgev1.Json{"x": {Text: output}}
			recs = append(recs, rec)
		}
		put(t, s, recs...)
	}
	listed := 0
	for token := ""; ; {
		jobs, next, _, err := s.List(&dagbridgev1.JobFilter{}, store.MaxPageSize, token)
		require.NoError(t, err)
		require.Less(t, proto.Size(&dagbridgev1.ListJobsResponse{Jobs: jobs}), 33<<20)
		if listed += len(jobs); next == "" {
			break
		}
		token = next
	}
	require.Equal(t, 1000, listed)
}

// Thousands of instances are one job in a list, and are listed by their parent.
func TestListOfAnArray(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	array := newRecord("simulate", 1, "")
	recs := []*storev1.JobRecord{array}
	for i := range 3000 {
		rec := newRecord("simulate", 1, "")
		rec.Job.Key.MapIndex, rec.Job.Parent, rec.Position = []int32{int32(i)}, array.GetJob().GetId(), int32(i)
		rec.Job.NativeId = fmt.Sprintf("1234_%d", i)
		recs = append(recs, rec)
	}
	put(t, s, recs...)
	require.Len(t, everything(t, s), 1)
	position := 2999
	for token := ""; ; {
		jobs, next, _, err := s.List(&dagbridgev1.JobFilter{Parent: array.GetJob().GetId()}, 1000, token)
		require.NoError(t, err)
		for _, job := range jobs {
			require.EqualValues(t, []int32{int32(position)}, job.GetKey().GetMapIndex())
			position--
		}
		if token = next; token == "" {
			break
		}
	}
	require.Equal(t, -1, position)
	jobs, _, _, err := s.List(&dagbridgev1.JobFilter{NativeId: "1234_7", Cluster: "hpc"}, 10, "")
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.Equal(t, []int32{7}, jobs[0].GetKey().GetMapIndex())
	whole := map[string]bool{}
	for token := ""; ; {
		jobs, next, _, err := s.List(&dagbridgev1.JobFilter{NativeId: "1234"}, 1000, token)
		require.NoError(t, err)
		for _, job := range jobs {
			whole[job.GetId()] = true
		}
		if token = next; token == "" {
			break
		}
	}
	require.Len(t, whole, 3000, "the native id of an array is that of all that is in it")
	job, err := s.Lookup(recs[8].GetJob().GetKey(), 1)
	require.NoError(t, err)
	require.Equal(t, recs[8].GetJob().GetId(), job.GetId())
}

// Values reach a look-up as they were, large ones whole.
func TestOutputsByteForByte(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{})
	rec := newRecord("train", 1, "")
	long := make([]byte, 48<<10)
	for i := range long {
		long[i] = 'a' + byte(i%26)
	}
	rec.Job.Outputs = map[string]*dagbridgev1.Json{"n": {Text: "9007199254740993"}, "f": {Text: "3.0"}, "s": {Text: `"` + string(long) + `"`}}
	put(t, s, rec)
	job, err := s.Lookup(rec.GetJob().GetKey(), 0)
	require.NoError(t, err)
	require.Equal(t, rec.GetJob().GetOutputs()["s"].GetText(), job.GetOutputs()["s"].GetText())
	require.Equal(t, "9007199254740993", job.GetOutputs()["n"].GetText())
	require.Equal(t, "3.0", job.GetOutputs()["f"].GetText())
}
