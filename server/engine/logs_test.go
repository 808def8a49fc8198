package engine

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// logged is a simulated scheduler with one log, which may not be there yet.
type logged struct {
	*sim
	mu   sync.Mutex
	text string
}

func (l *logged) Log(_ context.Context, _ backend.NativeRef, _ *dagbridgev1.Job, _ int, _ string, offset int64) (io.ReadCloser, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		return nil, 0, backend.ErrNoFile
	}
	return io.NopCloser(strings.NewReader(l.text[min(offset, int64(len(l.text))):])), int64(len(l.text)), nil
}

func (l *logged) Logs(*dagbridgev1.Job, string, int) *dagbridgev1.Logs {
	return &dagbridgev1.Logs{Stdout: "/shared/job/stdout", Stderr: "/shared/job/stderr"}
}

func (l *logged) write(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += text
}

// A log that is not there is none yet, until the job has been at its end for a while.
func TestLogsThatAreNotThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := &logged{sim: b.hpc}
	b.byName["hpc"].Backend = l
	job := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	read := func(ctx context.Context, follow bool) (string, error) {
		var got bytes.Buffer
		err := b.ReadLogs(ctx, &dagbridgev1.ReadLogsRequest{Id: job.GetId(), Stream: "stderr", Follow: follow}, func(data []byte, offset int64) error {
			require.EqualValues(t, got.Len(), offset)
			got.Write(data)
			return nil
		})
		return got.String(), err
	}
	nothingYet := func(when string) {
		t.Helper()
		text, err := read(context.Background(), false)
		require.NoError(t, err, when)
		require.Empty(t, text, when)
	}
	nothingYet("before it is submitted")
	b.look()
	nothingYet("while it waits")
	b.hpc.begin(b.hpc.jobs[0])
	b.look()
	nothingYet("while it runs")
	b.end(job.GetId(), 3)
	nothingYet("just after its end")

	b.hpc.w.now = b.hpc.w.now.Add(2 * simGrace)
	_, err := read(context.Background(), false)
	var missing *Error
	require.ErrorAs(t, err, &missing)
	require.Equal(t, NotFound, missing.Kind)
	require.Contains(t, missing.Message, "/shared/job/stderr")
	require.Equal(t, dagbridgev1.Job_FAILED, b.job(job.GetId()).GetState(), "its state is its own")
	l.write("late")
	text, err := read(context.Background(), true)
	require.NoError(t, err)
	require.Equal(t, "late", text)
}

// A log that appears late is followed from its beginning to the job's end.
func TestALogThatAppearsWhileItIsFollowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := &logged{sim: b.hpc}
	b.byName["hpc"].Backend = l
	job := b.submit(&dagbridgev1.SubmitTaskRequest{Task: train(1, "u1", "true")})
	b.look()
	b.hpc.begin(b.hpc.jobs[0])
	b.look()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pieces := make(chan string)
	ended := make(chan error)
	go func() {
		ended <- b.ReadLogs(ctx, &dagbridgev1.ReadLogsRequest{Id: job.GetId(), Follow: true, Tail: 4}, func(data []byte, _ int64) error {
			pieces <- string(data)
			return nil
		})
	}()
	select {
	case got := <-pieces:
		t.Fatalf("%q was read from a log that is not there", got)
	case <-time.After(2 * logPause):
	}
	l.write("one\ntwo\n")
	require.Equal(t, "two\n", <-pieces, "the tail is of what is found first")
	l.write("three\n")
	require.Equal(t, "three\n", <-pieces)
	b.end(job.GetId(), 0)
	require.NoError(t, <-ended)
}
