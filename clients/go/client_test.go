package dagbridge_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	dagbridge "github.com/dagbridge/dagbridge/clients/go"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

const patience = 30 * time.Second

// script is a gateway that plays one watch after another.
type script struct {
	dagbridgev1.UnimplementedBridgeServiceServer

	mu      sync.Mutex
	watches []watch
	// asked are the resume tokens that the streams began with.
	asked []string
	// tokens are the Authorizations that came.
	tokens []string
}

// watch is what one stream tells, and how it ends.
type watch struct {
	tells []*dagbridgev1.WatchJobsResponse
	ends  error
}

func (s *script) WatchJobs(stream grpc.BidiStreamingServer[dagbridgev1.WatchJobsRequest, dagbridgev1.WatchJobsResponse]) error {
	req, err := stream.Recv()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.asked = append(s.asked, req.GetResumeToken())
	w := s.watches[0]
	s.watches = s.watches[1:]
	s.mu.Unlock()
	for _, resp := range w.tells {
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
	if w.ends == nil {
		<-stream.Context().Done()
	}
	return w.ends
}

func (s *script) GetJob(ctx context.Context, _ *dagbridgev1.GetJobRequest) (*dagbridgev1.GetJobResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, metadata.ValueFromIncomingContext(ctx, "authorization")...)
	if len(s.tokens) == 1 {
		return nil, status.Error(codes.Unavailable, "not yet")
	}
	return &dagbridgev1.GetJobResponse{}, nil
}

func play(t *testing.T, s *script, o dagbridge.Options) *dagbridge.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := grpc.NewServer()
	dagbridgev1.RegisterBridgeServiceServer(g, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	t.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	client, err := dagbridge.Dial(l.Addr().String(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func job(id string, state dagbridgev1.Job_State, token string) *dagbridgev1.WatchJobsResponse {
	return &dagbridgev1.WatchJobsResponse{Job: &dagbridgev1.Job{Id: id, State: state}, ResumeToken: token}
}

func bookmark(token string) *dagbridgev1.WatchJobsResponse {
	return &dagbridgev1.WatchJobsResponse{ResumeToken: token}
}

// A watch goes on over breaks: anew before the first bookmark, then from the last token; and anew when that is too old.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	away := status.Error(codes.Unavailable, "the gateway is stopping")
	s := &script{watches: []watch{
		{[]*dagbridgev1.WatchJobsResponse{job("a", dagbridgev1.Job_RUNNING, "")}, away},
		{[]*dagbridgev1.WatchJobsResponse{job("a", dagbridgev1.Job_RUNNING, ""), job("b", dagbridgev1.Job_ACCEPTED, ""), bookmark("s-1")}, away},
		{[]*dagbridgev1.WatchJobsResponse{bookmark("s-1"), job("b", dagbridgev1.Job_RUNNING, "s-2")}, away},
		{nil, status.Error(codes.OutOfRange, "list again")},
		{[]*dagbridgev1.WatchJobsResponse{job("a", dagbridgev1.Job_SUCCEEDED, ""), bookmark("s-9"), job("b", dagbridgev1.Job_FAILED, "s-10")}, nil},
	}}
	client := play(t, s, dagbridge.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	jobs, err := client.Wait(ctx, "b", "a")
	require.NoError(t, err)
	require.Equal(t, []dagbridgev1.Job_State{dagbridgev1.Job_FAILED, dagbridgev1.Job_SUCCEEDED}, []dagbridgev1.Job_State{jobs[0].GetState(), jobs[1].GetState()})
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, []string{"", "", "s-1", "s-2", ""}, s.asked)
}

// A caller may lose patience; news in between makes it a new outage.
func TestAway(t *testing.T) {
	t.Parallel()
	away := status.Error(codes.Unavailable, "the gateway is stopping")
	s := &script{watches: []watch{{nil, away}, {nil, away}, {[]*dagbridgev1.WatchJobsResponse{job("a", dagbridgev1.Job_RUNNING, "")}, away}, {nil, away}}}
	var outages []bool // whether it has just begun
	enough := errors.New("enough")
	client := play(t, s, dagbridge.Options{Away: func(err error, since time.Duration) error {
		outages = append(outages, since == 0)
		if len(outages) == 4 {
			return enough
		}
		return nil
	}})
	_, err := client.Wait(t.Context(), "a")
	require.ErrorIs(t, err, enough)
	require.Equal(t, []bool{true, false, true, false}, outages)
}

func TestWaitForTheUnknown(t *testing.T) {
	t.Parallel()
	client := play(t, &script{watches: []watch{{[]*dagbridgev1.WatchJobsResponse{job("a", dagbridgev1.Job_RUNNING, ""), bookmark("s-1")}, nil}}}, dagbridge.Options{})
	_, err := client.Wait(t.Context(), "a", "nonsense")
	require.Equal(t, codes.NotFound, status.Code(err))
	require.ErrorContains(t, err, "nonsense")
	none, err := client.Wait(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestWatchEndsWithAnErrorOrTheLoop(t *testing.T) {
	t.Parallel()
	s := &script{watches: []watch{
		{[]*dagbridgev1.WatchJobsResponse{job("a", dagbridgev1.Job_RUNNING, "")}, status.Error(codes.InvalidArgument, "no")},
		{[]*dagbridgev1.WatchJobsResponse{job("a", dagbridgev1.Job_RUNNING, ""), job("b", dagbridgev1.Job_RUNNING, "")}, nil},
	}}
	client := play(t, s, dagbridge.Options{})
	var last error
	n := 0
	for got, err := range client.Watch(t.Context(), &dagbridgev1.WatchJobsRequest{}) {
		if last = err; err == nil {
			require.Equal(t, "a", got.GetId())
			n++
		}
	}
	require.Equal(t, 1, n)
	require.Equal(t, codes.InvalidArgument, status.Code(last))
	for got, err := range client.Watch(t.Context(), &dagbridgev1.WatchJobsRequest{}) {
		require.NoError(t, err)
		require.Equal(t, "a", got.GetId())
		break
	}
}

// A gateway that has not taken a request is asked again, with the token as it is by then.
func TestTokenAndRetry(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	s := &script{}
	client := play(t, s, dagbridge.Options{TokenFile: file})
	_, err := client.GetJob(t.Context(), &dagbridgev1.GetJobRequest{Id: "x"})
	require.NoError(t, err)
	require.Equal(t, []string{"Bearer s3cret", "Bearer s3cret"}, s.tokens)
	require.NoError(t, os.Remove(file))
	_, err = client.GetJob(t.Context(), &dagbridgev1.GetJobRequest{Id: "x"})
	require.ErrorContains(t, err, "reading the token")
}

func TestDialRefuses(t *testing.T) {
	t.Parallel()
	_, err := dagbridge.Dial("gateway", dagbridge.Options{})
	require.ErrorContains(t, err, "write host:port")
}

// failing is a writer that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestLogs(t *testing.T) {
	t.Parallel()
	address, stop, err := startGateway(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	client, err := dagbridge.Dial(address, dagbridge.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	job, err := client.Submit(ctx, &dagbridgev1.Task{Key: &dagbridgev1.TaskKey{Orchestrator: "o", Workflow: "w", Run: "r", Task: "t"}, Command: &dagbridgev1.Command{Argv: []string{"echo", "hi"}}})
	require.NoError(t, err)
	_, err = client.Wait(ctx, job.GetId())
	require.NoError(t, err)
	require.EqualError(t, client.Logs(ctx, &dagbridgev1.ReadLogsRequest{Id: job.GetId()}, failing{}), "full")
	require.Equal(t, codes.NotFound, status.Code(client.Logs(ctx, &dagbridgev1.ReadLogsRequest{Id: "x"}, failing{})))
	_, err = client.Lookup(ctx, &dagbridgev1.TaskKey{Orchestrator: "o", Workflow: "w", Run: "r", Task: "other"})
	require.Equal(t, codes.NotFound, status.Code(err))
}
