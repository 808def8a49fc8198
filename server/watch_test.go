package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/store/v1"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// put puts jobs as if the engine had.
func (g *gateway) put(t testing.TB, jobs ...*dagbridgev1.Job) {
	t.Helper()
	require.NoError(t, g.store.Update(t.Context(), func(tx *store.Tx) error {
		for _, job := range jobs {
			tx.Put(&storev1.JobRecord{Job: job})
		}
		return nil
	}))
}

// ended is a job that has ended, so that the engine leaves it alone.
func ended(task string) *dagbridgev1.Job {
	return &dagbridgev1.Job{
		Id:  uuid.Must(uuid.NewV7()).String(),
		Key: &dagbridgev1.TaskKey{Deployment: "default", Orchestrator: "airflow", Workflow: "w", Run: "r", Task: task}, TryNumber: 1,
		Cluster: "here", State: dagbridgev1.Job_FAILED, CreateTime: timestamppb.Now(), EndTime: timestamppb.Now(),
		Outputs: map[string]*dagbridgev1.Json{"x": {Text: "[1,\n2]"}},
	}
}

func in(job *dagbridgev1.Job, state dagbridgev1.Job_State) *dagbridgev1.Job {
	job = proto.CloneOf(job)
	job.State = state
	return job
}

// watcher is the receiving end of a watch.
type watcher interface {
	Recv() (*dagbridgev1.WatchJobsResponse, error)
}

// next is the next job that is told; the bookmarks before it are passed over.
func next(t testing.TB, w watcher) *dagbridgev1.WatchJobsResponse {
	t.Helper()
	for {
		resp, err := w.Recv()
		require.NoError(t, err)
		if resp.GetJob() != nil {
			return resp
		}
	}
}

// snapshot is what is told up to the next bookmark, as "task STATE", and that bookmark.
func snapshot(t testing.TB, w watcher) (told []string, token string) {
	t.Helper()
	for {
		resp, err := w.Recv()
		require.NoError(t, err)
		if resp.GetJob() == nil {
			require.NotEmpty(t, resp.GetResumeToken())
			return told, resp.GetResumeToken()
		}
		require.Empty(t, resp.GetResumeToken(), "a present state carries no token")
		told = append(told, words(resp))
	}
}

func words(resp *dagbridgev1.WatchJobsResponse) string {
	return resp.GetJob().GetKey().GetTask() + " " + resp.GetJob().GetState().String()
}

func (g *gateway) watch(t testing.TB, req *dagbridgev1.WatchJobsRequest) interface {
	watcher
	Send(*dagbridgev1.WatchJobsRequest) error
	CloseSend() error
} {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := g.grpc.WatchJobs(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(req))
	return stream
}

// lines reads a watch over REST.
type lines struct {
	t testing.TB
	*bufio.Reader
}

func (l lines) Recv() (*dagbridgev1.WatchJobsResponse, error) {
	line, err := l.ReadString('\n')
	if err != nil {
		return nil, err
	}
	return read(l.t, line, &dagbridgev1.WatchJobsResponse{}), nil
}

func (g *gateway) watchREST(t testing.TB, body string) lines {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/jobs:watch", strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "application/x-ndjson", resp.Header.Get("Content-Type"))
	return lines{t, bufio.NewReader(resp.Body)}
}

// A job is told as it is, then with every change, up to its end.
func TestWatchAJobToItsEnd(t *testing.T) {
	t.Parallel()
	g := start(t)
	gate := filepath.Join(t.TempDir(), "gate")
	job := g.submit(t, task("a", "while [ ! -e "+gate+" ]; do sleep 0.05; done; exit 3"), dagbridgev1.WaitFor_SUBMITTED)
	watchers := map[string]watcher{
		"gRPC":   g.watch(t, &dagbridgev1.WatchJobsRequest{Ids: []string{job.GetId()}}),
		"by key": g.watch(t, &dagbridgev1.WatchJobsRequest{Keys: []*dagbridgev1.TaskKey{{Orchestrator: "airflow", Workflow: "w", Run: "r", Task: "a"}}}),
		"REST":   g.watchREST(t, `{"ids":["`+job.GetId()+`"]}`),
	}
	for name, w := range watchers {
		told, _ := snapshot(t, w)
		require.Len(t, told, 1, name)
		require.NotContains(t, told[0], "FAILED", name)
	}
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	for name, w := range watchers {
		resp := next(t, w)
		for resp.GetJob().GetState() != dagbridgev1.Job_FAILED {
			resp = next(t, w)
		}
		require.Equal(t, int32(3), resp.GetJob().GetExitCode(), name)
		require.NotEmpty(t, resp.GetResumeToken(), name)
	}
}

// What is watched can be added to, and taken from, while the stream is open; ids that are unknown are left out.
func TestWatchChangesWhileOpen(t *testing.T) {
	t.Parallel()
	g := start(t)
	a, b, c := ended("a"), ended("b"), ended("c")
	g.put(t, a, b, c)
	w := g.watch(t, &dagbridgev1.WatchJobsRequest{Ids: []string{a.GetId(), "nonsense"}})
	told, _ := snapshot(t, w)
	require.Equal(t, []string{"a FAILED"}, told)

	require.NoError(t, w.Send(&dagbridgev1.WatchJobsRequest{Keys: []*dagbridgev1.TaskKey{b.GetKey(), {Task: "later", Orchestrator: "airflow", Workflow: "w", Run: "r"}}}))
	told, _ = snapshot(t, w)
	require.Equal(t, []string{"b FAILED"}, told)

	require.NoError(t, w.Send(&dagbridgev1.WatchJobsRequest{RemoveIds: []string{a.GetId()}}))
	told, _ = snapshot(t, w)
	require.Empty(t, told)
	g.put(t, in(a, dagbridgev1.Job_LOST), in(c, dagbridgev1.Job_LOST), in(b, dagbridgev1.Job_LOST), ended("later"))
	require.Equal(t, "b LOST", words(next(t, w)), "neither a, which is no longer watched, nor c, which never was")
	require.Equal(t, "later FAILED", words(next(t, w)), "a key is watched before there is a job of it")

	newer := ended("b")
	newer.TryNumber = 2
	g.put(t, newer)
	require.Equal(t, newer.GetId(), next(t, w).GetJob().GetId(), "of a key, its newest job")
	g.put(t, in(b, dagbridgev1.Job_SUCCEEDED))
	g.put(t, in(newer, dagbridgev1.Job_SUCCEEDED))
	require.Equal(t, newer.GetId(), next(t, w).GetJob().GetId(), "and the newest only")

	require.NoError(t, w.CloseSend())
	g.put(t, in(newer, dagbridgev1.Job_LOST))
	require.Equal(t, "b LOST", words(next(t, w)), "who says no more still listens")
}

// A list and the watch after it leave no gap between them.
func TestListThenWatch(t *testing.T) {
	t.Parallel()
	g := start(t)
	a, b := ended("a"), ended("b")
	g.put(t, a)
	list, err := g.grpc.ListJobs(t.Context(), &dagbridgev1.ListJobsRequest{Workflow: "w"})
	require.NoError(t, err)
	require.Len(t, list.GetJobs(), 1)
	g.put(t, b)
	g.put(t, in(a, dagbridgev1.Job_LOST))
	for name, w := range map[string]watcher{
		"gRPC": g.watch(t, &dagbridgev1.WatchJobsRequest{Filter: &dagbridgev1.JobFilter{Workflow: "w"}, ResumeToken: list.GetResumeToken()}),
		"REST": g.watchREST(t, `{"filter":{"workflow":"w"},"resumeToken":"`+list.GetResumeToken()+`"}`),
	} {
		first, second := next(t, w), next(t, w)
		require.Equal(t, []string{"b FAILED", "a LOST"}, []string{words(first), words(second)}, name)
		again := g.watch(t, &dagbridgev1.WatchJobsRequest{Filter: &dagbridgev1.JobFilter{}, ResumeToken: first.GetResumeToken()})
		require.Equal(t, "a LOST", words(next(t, again)), "every change says where to go on after it")
	}
}

// A filter by state tells of a job once more when it leaves the state.
func TestWatchByState(t *testing.T) {
	t.Parallel()
	g := start(t)
	a, b, c := ended("a"), ended("b"), ended("c")
	g.put(t, a, in(b, dagbridgev1.Job_LOST), in(c, dagbridgev1.Job_LOST))
	failed := &dagbridgev1.JobFilter{State: []dagbridgev1.Job_State{dagbridgev1.Job_FAILED}}
	w := g.watch(t, &dagbridgev1.WatchJobsRequest{Filter: failed})
	told, token := snapshot(t, w)
	require.Equal(t, []string{"a FAILED"}, told)
	g.put(t, in(a, dagbridgev1.Job_SUCCEEDED))
	require.Equal(t, "a SUCCEEDED", words(next(t, w)), "it has left")
	g.put(t, in(a, dagbridgev1.Job_LOST), in(c, dagbridgev1.Job_SUCCEEDED))
	g.put(t, b)
	require.Equal(t, "b FAILED", words(next(t, w)), "it has come")

	resumed := g.watch(t, &dagbridgev1.WatchJobsRequest{Filter: failed, ResumeToken: token})
	var left bool
	for {
		resp := next(t, resumed)
		left = left || words(resp) == "a LOST"
		if words(resp) == "b FAILED" {
			break
		}
	}
	require.True(t, left, "that it has left is told also after a break")
}

// A watch is silent about what it does not watch, but not dead.
func TestWatchBookmarks(t *testing.T) {
	t.Parallel()
	g := start(t)
	w := g.watchREST(t, `{"keys":[{"orchestrator":"airflow","workflow":"w","run":"r","task":"never"}]}`)
	_, first := snapshot(t, w)
	g.put(t, ended("other"))
	told, second := snapshot(t, w)
	require.Empty(t, told)
	require.NotEqual(t, first, second, "a bookmark moves on with what has been passed over")
}

func TestWatchTooOld(t *testing.T) {
	t.Parallel()
	g := start(t)
	_, err := g.watch(t, &dagbridgev1.WatchJobsRequest{Filter: &dagbridgev1.JobFilter{}, ResumeToken: "00000000-7"}).Recv()
	require.Equal(t, codes.OutOfRange, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "list again")
	code, text := g.post(t, "/v1/jobs:watch", `{"filter":{},"resumeToken":"00000000-7"}`)
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, int(codes.OutOfRange), refused(t, text).Code)

	w := g.watch(t, &dagbridgev1.WatchJobsRequest{Filter: &dagbridgev1.JobFilter{}})
	_, token := snapshot(t, w)
	require.NoError(t, w.Send(&dagbridgev1.WatchJobsRequest{ResumeToken: token}))
	_, err = w.Recv()
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "resumeToken: belongs into the first request")
}

// Thousands of jobs on one stream; and somebody who does not read holds up nobody.
func TestWatchThousands(t *testing.T) {
	t.Parallel()
	g := start(t)
	const many = 5000
	jobs := make([]*dagbridgev1.Job, many)
	ids := make([]string, many)
	for i := range jobs {
		jobs[i] = ended(fmt.Sprintf("t%d", i))
		jobs[i].Labels = map[string]string{"padding": strings.Repeat("x", 256)}
		ids[i] = jobs[i].GetId()
	}
	g.put(t, jobs...)
	req := &dagbridgev1.WatchJobsRequest{Ids: ids}
	g.watch(t, req) // Never read from.
	g.watchREST(t, `{"filter":{"workflow":"w"}}`)
	w := g.watch(t, req)
	told, _ := snapshot(t, w)
	require.Len(t, told, many)
	for i := range jobs {
		jobs[i] = in(jobs[i], dagbridgev1.Job_SUCCEEDED)
	}
	g.put(t, jobs...)
	for range many {
		require.Equal(t, dagbridgev1.Job_SUCCEEDED, next(t, w).GetJob().GetState())
	}
}

// When the gateway stops, streams end with a word that says: come again.
func TestWatchEndsWithTheGateway(t *testing.T) {
	t.Parallel()
	g := start(t)
	over := g.watch(t, &dagbridgev1.WatchJobsRequest{Filter: &dagbridgev1.JobFilter{}})
	rest := g.watchREST(t, `{"filter":{}}`)
	_, _ = snapshot(t, over)
	_, _ = snapshot(t, rest)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	require.NoError(t, g.Stop(ctx))
	require.Less(t, time.Since(began), patience, "it did not wait for the streams")
	_, err := over.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "stopping")
	last, err := io.ReadAll(rest)
	require.NoError(t, err)
	require.Contains(t, string(last), `{"error":{"code":14,"message":"the gateway is stopping`)
}
