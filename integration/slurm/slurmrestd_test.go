package slurmtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/program"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// TestSlurmrestd has what can be wrong with slurmrestd itself.
func TestSlurmrestd(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{Release: slurmtest.Newest, NoAccounting: true})
	t.Run("a job of which it ignores a part does not run", func(t *testing.T) { ignoredFields(t, c) })
	t.Run("one that hangs only makes the cluster unreachable", func(t *testing.T) { restHangs(t, c) })
	t.Run("one that speaks another version takes its place", func(t *testing.T) { restReplaced(t, c) })
}

// ignoredFields puts into the description what slurmrestd warns of, or calls an error, and runs the job all the same.
func ignoredFields(t *testing.T, c *slurmtest.Cluster) {
	for name, field := range map[string]string{
		"a field that it does not have": `{"gres": "gpu:1"}`,
		"a flag that it does not know":  `{"mail_type": ["SOMETIMES"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c, ways["REST"], func(o *slurm.Options) { o.REST.URL = meddler(t, c, field) })
			ran := filepath.Join(c.WorkDir(t), "ran")
			require.NoError(t, os.Chmod(filepath.Dir(ran), 0o777))
			sub := backendtest.Submission(t, task("touch", ran))
			result := b.try(t, sub)
			require.Equal(t, backend.Refused, result.Outcome, result.Message)
			require.Contains(t, result.Message, "slurmrestd ignored a part of the job, which was therefore cancelled")
			require.Contains(t, result.Message, "#/job/")
			require.Zero(t, result.Ref)
			require.Eventually(t, func() bool {
				return !strings.Contains(c.Run(t, "squeue", "--noheader", "--format=%j"), sub.Token)
			}, patience, 200*time.Millisecond, "it is not there any more")
			require.NoFileExists(t, ran)
		})
	}
}

// meddler is the address of a proxy that adds fields to the jobs that are submitted to the real slurmrestd.
func meddler(t *testing.T, c *slurmtest.Cluster, fields string) string {
	target, err := url.Parse(c.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/job/submit") {
			var body struct {
				Job map[string]any `json:"job"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			if err := json.Unmarshal([]byte(fields), &body.Job); err != nil {
				t.Error(err)
			}
			text, _ := json.Marshal(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func restHangs(t *testing.T, c *slurmtest.Cluster) {
	b := newBench(t, c, ways["REST"], func(o *slurm.Options) { o.Timeout = time.Second })
	known := b.submit(t, backendtest.Submission(t, task("sleep", "5")))
	b.await(t, known, "RUNNING", is(dagbridgev1.Job_RUNNING))
	b.Daemon(t, "hang", "slurmrestd")
	require.Equal(t, backend.Unknown, b.try(t, held(backendtest.Submission(t, task("true")))).Outcome)
	require.Equal(t, backend.Uncertain, b.find(t, backendtest.Submission(t, task("true"))).Presence)
	require.Error(t, b.backend.Cancel(t.Context(), []backend.Known{{Ref: backend.NativeRef{ID: "1", Token: "x.1"}, Job: known.Job}})[0])
	b.Daemon(t, "wake", "slurmrestd")
	b.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
}

// restReplaced starts slurmrestd anew with one data parser alone, the oldest that it has.
func restReplaced(t *testing.T, c *slurmtest.Cluster) {
	b := newBench(t, c, ways["REST"], nil)
	before := b.submit(t, held(backendtest.Submission(t, task("true"))))
	b.await(t, before, "held", func(o backend.Observation) bool { return o.Held })

	versions := served(t, c)
	oldest := versions[len(versions)-1]
	file := filepath.Join(c.Prefix, "run", "slurmrestd.cmd")
	command, err := os.ReadFile(file)
	require.NoError(t, err)
	alone := strings.Replace(string(command), " slurmrestd ", " slurmrestd -d "+oldest+" ", 1)
	require.NotEqual(t, string(command), alone)
	require.NoError(t, program.Write(file, []byte(alone)))
	c.Daemon(t, "restart", "slurmrestd")
	t.Cleanup(func() { require.NoError(t, program.Write(file, command)) })

	require.Equal(t, []error{nil}, b.eventually(t, func() []error {
		return b.backend.Alter(t.Context(), []backend.Change{{Ref: before.Ref, Job: before.Job, Release: true}})
	}))
	require.Equal(t, []string{oldest}, served(t, c))
	b.await(t, before, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	b.await(t, b.submit(t, backendtest.Submission(t, task("true"))), "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
}

// eventually repeats orders until slurmrestd, which was started a moment ago, takes them.
func (b *bench) eventually(t *testing.T, order func() []error) (errs []error) {
	t.Helper()
	require.Eventually(t, func() bool {
		errs = order()
		return errs[0] == nil
	}, patience, 200*time.Millisecond)
	return errs
}
