package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

func TestChangesThatTheLogNoLongerHas(t *testing.T) {
	t.Parallel()
	const kept = 64
	path := newPath(t)
	s := open(t, path, store.Options{NoSync: true, MaxChanges: kept})
	for i := range 500 {
		put(t, s, newRecord(fmt.Sprint(i), 1, ""))
	}
	for range 2 {
		last := s.Seq()
		require.EqualValues(t, 500, last)
		for _, after := range []uint64{last - kept, last - 1} {
			changes, to, err := s.Changes(after, 1000)
			require.NoError(t, err)
			require.Len(t, changes, int(last-after))
			require.Equal(t, last, to)
		}
		changes, to, err := s.Changes(last, 1000)
		require.NoError(t, err)
		require.Empty(t, changes)
		require.Equal(t, last, to)
		for _, after := range []uint64{0, last - 2*kept, last + 1, 1<<64 - 1} {
			_, _, err := s.Changes(after, 1000)
			require.ErrorIs(t, err, store.ErrOutOfRange, "after %d", after)
		}
		require.NoError(t, s.Close())
		s = open(t, path, store.Options{NoSync: true, MaxChanges: kept})
	}
}

// A list's resume token, then waiting for Changed and reading on, misses nothing.
func TestListThenWatch(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), store.Options{NoSync: true})
	put(t, s, newRecord("before", 1, ""))
	_, _, resume, err := s.List(&dagbridgev1.JobFilter{}, 10, "")
	require.NoError(t, err)
	after, err := s.ParseResumeToken(resume)
	require.NoError(t, err)
	const jobs = 300
	go func() {
		for i := range jobs {
			rec := newRecord(fmt.Sprint(i), 1, "")
			_ = update(s, t.Context(), func(tx *store.Tx) error { tx.Put(rec); return nil })
		}
	}()
	seen := map[string]bool{}
	for len(seen) < jobs {
		changed := s.Changed()
		changes, last, err := s.Changes(after, 7)
		require.NoError(t, err)
		if after = last; len(changes) == 0 {
			<-changed
		}
		for _, c := range changes {
			require.False(t, seen[c.Job.GetKey().GetTask()])
			seen[c.Job.GetKey().GetTask()] = true
		}
	}
	require.False(t, seen["before"])
}

func TestResumeTokens(t *testing.T) {
	t.Parallel()
	s, other := open(t, newPath(t), store.Options{}), open(t, newPath(t), store.Options{})
	for _, bad := range []string{"", "-", "x", "1", "a-b", s.ResumeToken(1) + "x", "a--1"} {
		_, err := s.ParseResumeToken(bad)
		require.ErrorIs(t, err, store.ErrBadToken, bad)
	}
	_, err := s.ParseResumeToken(other.ResumeToken(1))
	require.ErrorIs(t, err, store.ErrOutOfRange)
}
