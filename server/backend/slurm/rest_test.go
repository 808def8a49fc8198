package slurm

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "eyJhbGciOiJIUzI1NiJ9.secret.token"

// fake is a slurmrestd that answers what the real one cannot be made to.
type fake struct {
	*httptest.Server
	backend *Backend
	token   string // file
	log     *bytes.Buffer
}

func newFake(t *testing.T, handler http.HandlerFunc) *fake { return newFakeOf(t, "v0.0.38", handler) }

// newFakeOf a version: what it serves it says by itself.
func newFakeOf(t *testing.T, version string, handler http.HandlerFunc) *fake {
	serves := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathOpenAPI {
			_, _ = io.WriteString(w, openAPI(version))
			return
		}
		handler(w, r)
	}
	f := &fake{Server: httptest.NewServer(http.HandlerFunc(serves)), token: filepath.Join(t.TempDir(), "jwt"), log: &bytes.Buffer{}}
	t.Cleanup(f.Close)
	require.NoError(t, os.WriteFile(f.token, []byte(secret), 0o600))
	b, err := New(Options{
		Name: "fake", REST: &REST{URL: f.URL, User: myName(t), TokenFile: f.token}, WorkDir: t.TempDir(),
		Timeout: 3 * time.Second, PollInterval: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(f.log, nil)),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	f.backend = b
	return f
}

// openAPI is the part of an OpenAPI document that tells what is served.
func openAPI(versions ...string) string {
	var paths []string
	for _, v := range versions {
		d := dialect{version: v}
		paths = append(paths, `"`+d.submit()+`":{"post":{}}`, `"`+d.accounted()+`":{"get":{}}`)
		if !d.plain() {
			paths = append(paths, `"`+d.jobStates()+`":{"get":{}}`, `"`+d.jobs()+`":{"get":{},"delete":{}}`)
		}
	}
	return `{"components":{},"paths":{` + strings.Join(paths, ",") + `},"info":{"version":"Slurm-26.05.5"}}`
}

func (f *fake) submit(t *testing.T) backend.SubmitResult {
	t.Helper()
	s := backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})
	results := f.backend.Submit(t.Context(), []translators.Submission{s})
	require.Len(t, results, 1)
	require.NotContains(t, results[0].Message+f.log.String(), secret)
	require.NotContains(t, results[0].Message+f.log.String(), "secret.token")
	return results[0]
}

// answers with a status and a body.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestASubmissionWhoseAnswerIsNotHeardIsUnknown(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"the connection is cut after the request": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			connection, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = connection.Close()
			}
		},
		"the answer is cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"errors":[],"job_`)
		},
		"the answer is not JSON":            answers(500, "Internal error"),
		"the controller died meanwhile":     answers(500, `{"errors":[{"error_code":104,"error":"Connection reset by peer"}]}`),
		"the controller cannot be reached":  answers(500, `{"errors":[{"error_code":1800,"error":"Unable to contact slurm controller (connect failure)"}]}`),
		"the controller died, then is back": diedThenBack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := newFake(t, handler).submit(t)
			require.Equal(t, backend.Unknown, result.Outcome, result.Message)
			require.NotEmpty(t, result.Message)
		})
	}
}

// diedThenBack: what slurmrestd says of a refused token it also says when slurmctld dies; but then the token is good.
func diedThenBack(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		answers(500, `{"errors":[{"error_code":5005,"error":"Zero Bytes were transmitted or received"}]}`)(w, r)
		return
	}
	answers(500, `{"errors":[{"error_number":2017,"error":"Invalid job id specified"}]}`)(w, r)
}

func TestAnAnswerAfterTheDeadlineIsUnknown(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		answers(200, `{"job_id":5}`)(w, r)
	})
	result := f.submit(t)
	close(release)
	require.Equal(t, backend.Unknown, result.Outcome, result.Message)
}

func TestNobodyToConnectToIsNotSent(t *testing.T) {
	t.Parallel()
	f := newFake(t, answers(200, "{}"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.backend.orders.(*rest).URL = "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	result := f.submit(t)
	require.Equal(t, backend.NotSent, result.Outcome, result.Message)
}

// refusals of a token, by who refuses it, and by the version in which it is told.
var refusals = map[string]struct {
	version string
	answer  http.HandlerFunc
}{
	"by slurmrestd":          {"v0.0.38", answers(401, "Authentication failure")},
	"by slurmctld":           {"v0.0.38", answers(500, `{"errors":[{"error_code":5005,"error":"Zero Bytes were transmitted or received"}]}`)},
	"by slurmctld of 24.11":  {"v0.0.40", answers(511, `{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`)},
	"by slurmrestd of 26.05": {"v0.0.45", answers(401, "Authentication failure")},
	"by slurmctld of 26.05":  {"v0.0.45", answers(511, `{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`)},
}

func TestATokenRenewedMeanwhileIsUsed(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusals {
		t.Run("refused "+name, func(t *testing.T) {
			t.Parallel()
			var f *fake
			var submitted atomic.Int32
			f = newFakeOf(t, refusal.version, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-SLURM-USER-TOKEN") == "renewed" {
					submitted.Add(1)
					answers(200, `{"job_id":5}`)(w, r)
					return
				}
				// to v0.0.38 it is found out by a second call that it is the token, before the file is read again
				if name != "by slurmctld" || r.Method == http.MethodDelete {
					_ = os.WriteFile(f.token, []byte("SLURM_JWT=renewed\n"), 0o600)
				}
				refusal.answer(w, r)
			})
			result := f.submit(t)
			require.Equal(t, backend.Submitted, result.Outcome, result.Message)
			require.Equal(t, "5", result.Ref.ID)
			require.EqualValues(t, 1, submitted.Load())
		})
	}
}

func TestATokenThatIsRefusedForGoodIsNotSent(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusals {
		t.Run("refused "+name, func(t *testing.T) {
			t.Parallel()
			f := newFakeOf(t, refusal.version, refusal.answer)
			result := f.submit(t)
			require.Equal(t, backend.NotSent, result.Outcome, result.Message)
			require.Contains(t, result.Message, "renew it")
		})
	}
}

func TestNothingIsSentWithoutAToken(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	require.NoError(t, os.WriteFile(f.token, []byte("\n"), 0o600))
	require.Equal(t, backend.NotSent, f.submit(t).Outcome)
	require.NoError(t, os.Remove(f.token))
	require.Equal(t, backend.NotSent, f.submit(t).Outcome)
}

func TestAQueueThatIsFullIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answers(500, `{"errors":[{"error_code":11,"error":"Resource temporarily unavailable"}]}`)(w, r)
	})
	submissions := make([]translators.Submission, 200)
	for i := range submissions {
		submissions[i] = backendtest.Submission(t, &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}})
	}
	for _, result := range f.backend.Submit(t.Context(), submissions) {
		require.Equal(t, backend.Busy, result.Outcome, result.Message)
	}
	require.LessOrEqual(t, asked.Load(), int32(concurrency))
}

func TestAnUnchangedTableIsNotReadAgain(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/controller.v0.0.38.json")
	require.NoError(t, err)
	var asked []string
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		if r.URL.Query().Has("update_time") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(table)
	})
	first, err := f.backend.looks.jobs(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, first, 14)
	second, err := f.backend.looks.jobs(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, first, second)
	// the latest moment that slurmctld's own clock tells in the table, and not the expected end of a running job
	require.Len(t, asked, 2)
	require.Equal(t, "/slurm/v0.0.38/jobs", asked[0])
	require.Regexp(t, `\?update_time=17960470[89][0-9]$`, asked[1])
}

func TestAListingThatIsNotCompleteIsAnError(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"cut":                answers(200, `{"errors":[],"jobs":[{"job_id":1}`),
		"an error beside it": answers(500, `{"errors":[{"error_number":-1,"error":"Unspecified error"}],"jobs":[]}`),
		"not let in":         answers(401, "Authentication failure"),
		"not JSON":           answers(502, "<html>Bad gateway</html>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, handler)
			_, err := f.backend.looks.jobs(t.Context(), nil)
			require.Error(t, err)
			require.NotContains(t, err.Error(), secret)
			finding := f.backend.Find(t.Context(), []backend.Want{{Token: "x.1"}})
			require.Equal(t, backend.Uncertain, finding[0].Presence)
			require.NotEmpty(t, finding[0].Proof)
		})
	}
}

func TestOptionsThatCannotWorkAreRefusedWithASentence(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"workDir":        {CLI: &CLI{}, WorkDir: "relative"},
		"neither":        {WorkDir: "/shared"},
		"rest.url":       {WorkDir: "/shared", REST: &REST{URL: "localhost:6820", User: "u", TokenFile: "f"}},
		"rest.user":      {WorkDir: "/shared", REST: &REST{URL: "http://localhost:6820", TokenFile: "f"}},
		"rest.tokenFile": {WorkDir: "/shared", REST: &REST{URL: "http://localhost:6820", User: "u"}},
		"minJobAge":      {WorkDir: "/shared", CLI: &CLI{}, PollInterval: time.Minute, Limits: Limits{MinJobAge: 30 * time.Second}},
	} {
		o.Name, o.Log = "hpc", slog.New(slog.DiscardHandler)
		_, err := New(o)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "cluster hpc: "), err)
	}
}
