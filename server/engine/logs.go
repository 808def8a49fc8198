package engine

import (
	"context"
	"errors"
	"io"
	"time"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// logChunk bounds what ReadLogs hands over at once.
const logChunk = 64 << 10

// logPause is how long ReadLogs waits at the end of a log that may still grow.
const logPause = 300 * time.Millisecond

// ReadLogs sends what a job wrote, from an offset or the last so many bytes, in chunks of at most 64 KiB; with follow until
// the job has ended. A job that has not started has written nothing, which is no error.
func (e *Engine) ReadLogs(ctx context.Context, req *dagbridgev1.ReadLogsRequest, send func(data []byte, offset int64) error) error {
	stream, offset := req.GetStream(), req.GetOffset()
	if stream == "" {
		stream = "stdout"
	}
	first := true
	for {
		rec, err := e.record(req.GetId())
		if err != nil {
			return err
		}
		job := rec.GetJob()
		ended := graph.IsTerminal(job.GetState())
		read, size, err := e.readLog(ctx, rec, stream, offset, req.GetTail(), first, send)
		missing := errors.Is(err, backend.ErrNoFile)
		switch {
		case missing && ended && job.GetStartTime() != nil && e.now().Sub(job.GetEndTime().AsTime()) > e.grace:
			return errorf(NotFound, "job %s has ended and left no %s; it would be %s", job.GetId(), stream, logPath(job, stream))
		case err != nil && !missing:
			return err
		}
		if !missing {
			first = false
		}
		offset = max(offset, size)
		if !req.GetFollow() || ended && read == 0 {
			return nil
		}
		if read > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logPause):
		}
	}
}

func logPath(job *dagbridgev1.Job, stream string) string {
	if stream == "stderr" {
		return job.GetLogs().GetStderr()
	}
	return job.GetLogs().GetStdout()
}

// readLog sends what there is of a log now, and answers with how much that was and where it ended.
func (e *Engine) readLog(ctx context.Context, rec *storev1.JobRecord, stream string, offset, tail int64, first bool, send func([]byte, int64) error) (int64, int64, error) {
	job := rec.GetJob()
	c := e.byName[job.GetCluster()]
	if c == nil {
		return 0, offset, errorf(FailedPrecondition, "job %s ran on cluster %q, which is no longer configured", job.GetId(), job.GetCluster())
	}
	owner, position, at := filesOf(rec)
	if at.GetNativeId() == "" {
		return 0, offset, backend.ErrNoFile
	}
	ref := backend.NativeRef{ID: at.GetNativeId(), Token: at.GetToken(), SubmitTime: at.GetSubmitTime().AsTime()}
	r, size, err := c.Backend.Log(ctx, ref, owner, position, stream, offset)
	if err == nil && first && tail > 0 && size-offset > tail {
		_ = r.Close()
		offset = size - tail
		r, _, err = c.Backend.Log(ctx, ref, owner, position, stream, offset)
	}
	if err != nil {
		return 0, offset, err
	}
	defer func() { _ = r.Close() }() // only read from
	buf := make([]byte, logChunk)
	start := offset
	for ctx.Err() == nil {
		n, err := r.Read(buf)
		if n > 0 {
			if err := send(buf[:n], offset); err != nil {
				return 0, offset, err
			}
			offset += int64(n)
		}
		if err == io.EOF {
			return offset - start, offset, nil
		}
		if err != nil {
			return offset - start, offset, err
		}
	}
	return offset - start, offset, ctx.Err()
}

// filesOf says where the files of a job's present attempt are: in which record's folder, its own, its array's or its carrier's,
// and at which element; and the attempt.
func filesOf(rec *storev1.JobRecord) (*dagbridgev1.Job, int, *dagbridgev1.Attempt) {
	job, at := rec.GetJob(), current(rec)
	id, element := inArray(rec)
	if element < 0 {
		return job, element, at
	}
	base, _ := cutInstance(at.GetNativeId())
	return &dagbridgev1.Job{Id: id, Owner: job.GetOwner(), User: job.GetUser(), Cluster: job.GetCluster()}, element,
		&dagbridgev1.Attempt{NativeId: base, Token: at.GetToken(), SubmitTime: at.GetSubmitTime()}
}
