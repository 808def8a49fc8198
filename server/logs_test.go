package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func TestLogs(t *testing.T) {
	t.Parallel()
	g := start(t)
	job := g.submit(t, task("a", "printf 'one\\ntwo\\nthr\\xff\\n'; echo oops >&2"), dagbridgev1.WaitFor_TERMINAL)
	base := "/v1/jobs/" + job.GetId() + "/logs"
	for query, want := range map[string]string{
		"":                         "one\ntwo\nthr\xff\n",
		"?stream=stdout&offset=4":  "two\nthr\xff\n",
		"?tail=5":                  "thr\xff\n",
		"?offset=1000":             "",
		"?stream=stderr":           "oops\n",
		"?follow=true":             "one\ntwo\nthr\xff\n",
		"?stream=stderr&tail=1000": "oops\n",
	} {
		t.Run(query, func(t *testing.T) {
			code, text := g.get(t, base+query)
			require.Equal(t, http.StatusOK, code, text)
			require.Equal(t, want, text)
		})
	}
	resp, err := http.Get(g.url + base)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "text/plain; charset=utf-8", resp.Header.Get("Content-Type"))
}

// A job that has not begun has written nothing, which is no error.
func TestLogsBeforeTheStart(t *testing.T) {
	t.Parallel()
	g := start(t)
	gate := filepath.Join(t.TempDir(), "gate")
	a := g.submit(t, task("a", "while [ ! -e "+gate+" ]; do sleep 0.05; done"), dagbridgev1.WaitFor_ACCEPTED)
	after := task("b", "echo begun")
	after.Upstream = []*dagbridgev1.Edge{{Key: a.GetKey()}}
	b := g.submit(t, after, dagbridgev1.WaitFor_ACCEPTED)
	code, text := g.get(t, "/v1/jobs/"+b.GetId()+"/logs")
	require.Equal(t, http.StatusOK, code, text)
	require.Empty(t, text)

	// Followed, it waits, and says soon that it does.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/v1/jobs/"+b.GetId()+"/logs?follow=true", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err, "the header comes before there is anything")
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "begun\n", string(rest))
}

// What is written while it is followed arrives; once the reader goes, the reading stops.
func TestFollowAndLeave(t *testing.T) {
	t.Parallel()
	g := start(t)
	gate := filepath.Join(t.TempDir(), "gate")
	job := g.submit(t, task("a", "echo first; while [ ! -e "+gate+" ]; do sleep 0.05; done; echo second; while [ ! -e "+gate+"2 ]; do sleep 0.05; done"), dagbridgev1.WaitFor_SUBMITTED)
	ctx, leave := context.WithTimeout(t.Context(), patience)
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/v1/jobs/"+job.GetId()+"/logs?follow=true", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	r := bufio.NewReader(resp.Body)
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "first\n", line)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	line, err = r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "second\n", line)
	open := func() bool {
		_, text := g.get(t, "/metrics")
		return strings.Contains(text, `dagbridge_streams_open{method="ReadLogs"} 1`)
	}
	require.True(t, open())
	leave()
	require.Eventually(t, func() bool { return !open() }, patience, 10*time.Millisecond, "the stream outlives its reader")
	require.NoError(t, os.WriteFile(gate+"2", nil, 0o600))
}

// A reader that goes while much is under way to it has left, and nothing is wrong with the gateway.
func TestLeaveALongLog(t *testing.T) {
	t.Parallel()
	g := start(t)
	job := g.submit(t, task("a", "head -c 50000000 /dev/zero"), dagbridgev1.WaitFor_TERMINAL)
	conn, err := net.Dial("tcp", g.HTTPAddr())
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "GET /v1/jobs/%s/logs HTTP/1.1\r\nHost: %s\r\n\r\n", job.GetId(), g.HTTPAddr())
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).SetLinger(0)) // what is unread is answered with a reset
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool {
		_, text := g.get(t, "/metrics")
		return strings.Contains(text, `dagbridge_request_seconds_count{code="Canceled",method="ReadLogs"} 1`)
	}, patience, 10*time.Millisecond)
	require.Empty(t, g.log.String())
}

// A long log, in one line, comes in pieces of bounded size.
func TestLongLog(t *testing.T) {
	t.Parallel()
	g := start(t)
	const size = 12 << 20
	job := g.submit(t, task("a", "head -c 12582911 /dev/zero | tr '\\0' x; printf y"), dagbridgev1.WaitFor_TERMINAL)
	stream, err := g.grpc.ReadLogs(t.Context(), &dagbridgev1.ReadLogsRequest{Id: job.GetId()})
	require.NoError(t, err)
	var at int64
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(resp.GetData()), 64<<10)
		require.Equal(t, at, resp.GetOffset())
		at += int64(len(resp.GetData()))
	}
	require.EqualValues(t, size, at)
	code, text := g.get(t, "/v1/jobs/"+job.GetId()+"/logs")
	require.Equal(t, http.StatusOK, code)
	require.Len(t, text, size)
	_, text = g.get(t, "/v1/jobs/"+job.GetId()+"/logs?tail=1048576")
	require.Len(t, text, 1<<20)
	require.True(t, strings.HasSuffix(text, "xy"))
}
