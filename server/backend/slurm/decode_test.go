package slurm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// describe writes a record in one line, as the goldens have it.
func describe(r record) string {
	if r.unread {
		return r.id + " cannot be read"
	}
	where := r.id
	switch {
	case r.rest:
		where += "_*"
	case r.positions != nil:
		where += fmt.Sprint("_", r.positions)
	}
	line := fmt.Sprintf("%s %s exit=%s signal=%s submit=%s start=%s end=%s node=%q user=%s token=%q", where, r.sentence(),
		optional(r.exit), optional(r.signal), seconds(r.submit), seconds(r.start), seconds(r.end), r.node, r.user, r.token())
	if r.held {
		line += " held"
	}
	if ids, _ := r.dependencies(); ids != nil {
		line += " waits for " + strings.Join(ids, " ")
	}
	return line
}

func optional(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func seconds(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprint(t.Unix())
}

func describeAll(records []record) string {
	var b strings.Builder
	for _, r := range records {
		b.WriteString(describe(r) + "\n")
	}
	return b.String()
}

// golden compares with a file, which UPDATE_GOLDEN=1 rewrites.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func decodeFile[J interface{ record() record }](t *testing.T, file string, job func() J) []record {
	t.Helper()
	body, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = body.Close() }()
	var records []record
	said, err := decodeJobs(body, func(raw json.RawMessage) {
		j := job()
		require.NoError(t, json.Unmarshal(raw, j))
		records = append(records, j.record())
	})
	require.NoError(t, err)
	require.Empty(t, said.Errors)
	return records
}

// The answers were recorded from the slurmrestd of 22.05, 24.11 and 26.05.
func TestAnswersOfSlurmrestdAreRead(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v0.0.38", "v0.0.40", "v0.0.45"} {
		golden(t, "testdata/controller."+version+".golden", describeAll(decodeFile(t, "testdata/controller."+version+".json", func() *controllerJob { return &controllerJob{} })))
		golden(t, "testdata/accounting."+version+".golden", describeAll(decodeFile(t, "testdata/accounting."+version+".json", func() *accountedJob { return &accountedJob{} })))
	}
}

func TestANumberComesInManyShapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]number{
		`5`:    {5, true},
		`"5"`:  {5, true},
		`""`:   {},
		`null`: {},
		`0`:    {0, true},
		`-1`:   {-1, true},
		`4.9`:  {4, true},
		`{"set":true,"infinite":false,"number":5}`:  {5, true},
		`{"set":false,"infinite":false,"number":5}`: {},
		`{"set":true,"infinite":true,"number":0}`:   {},
		`{"number":7}`: {7, true},
		`{}`:           {},
	} {
		var n number
		require.NoError(t, json.Unmarshal([]byte(text), &n), text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{`"five"`, `[]`, `true`, `{"number":"five"}`} {
		require.Error(t, json.Unmarshal([]byte(text), new(number)), text)
	}
}

func TestAnEndComesInManyShapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`768`: "3 -",
		`0`:   "0 -",
		`11`:  "139 11",
		`139`: "139 11", // with a core
		`{"status":"SIGNALED","return_code":null,"signal":{"signal_id":9,"name":"Killed"}}`:                                                     "137 9",
		`{"status":["ERROR"],"return_code":{"set":true,"infinite":false,"number":3},"signal":{"id":{"set":false,"number":0},"name":""}}`:        "3 -",
		`{"status":["SIGNALED"],"return_code":{"set":true,"infinite":false,"number":0},"signal":{"id":{"set":true,"number":15},"name":"Term"}}`: "143 15",
		`{"return_code":{"set":false,"number":0}}`:   "- -",
		`{"set":true,"infinite":false,"number":768}`: "3 -",
		`{"set":false,"number":0}`:                   "- -",
		`null`:                                       "- -",
	} {
		var s status
		require.NoError(t, json.Unmarshal([]byte(text), &s), text)
		require.Equal(t, want, optional(s.exit)+" "+optional(s.signal), text)
	}
}

func TestAStateIsAWordOrAList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"job_id":5,"job_state":["RUNNING","COMPLETING"],"exit_code":{"return_code":{"set":false,"number":0}}}`: "5 RUNNING+COMPLETING exit=- signal=-",
		`{"job_id":6,"job_state":"COMPLETED","exit_code":0}`:                                                     "6 COMPLETED exit=0 signal=-",
	} {
		var job controllerJob
		require.NoError(t, json.Unmarshal([]byte(text), &job))
		require.Contains(t, describe(job.record()), want)
	}
}

func TestAnAnswerThatIsCutIsNoAnswer(t *testing.T) {
	t.Parallel()
	whole := `{"meta":{},"errors":[],"jobs":[{"job_id":1},{"job_id":2}]}`
	for cut := range len(whole) {
		_, err := decodeJobs(strings.NewReader(whole[:cut]), func(json.RawMessage) {})
		require.Error(t, err, whole[:cut])
	}
	jobs := 0
	_, err := decodeJobs(strings.NewReader(whole), func(json.RawMessage) { jobs++ })
	require.NoError(t, err)
	require.Equal(t, 2, jobs)
}

func TestAJobThatCannotBeReadStillHasAnID(t *testing.T) {
	t.Parallel()
	require.Equal(t, record{id: "7", unread: true}, unreadable([]byte(`{"job_id":7,"name":5}`)))
	require.Equal(t, record{id: "6", unread: true}, unreadable([]byte(`{"job_id":7,"array_job_id":{"set":true,"number":6},"name":5}`)))
	require.Equal(t, record{id: "0", unread: true}, unreadable([]byte(`[]`)))
}

func FuzzDecodeJobs(f *testing.F) {
	files, err := filepath.Glob("testdata/*.v0.0.*.json")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(`{"errors":[{"error_number":-1}],"jobs":[{"job_state":[]}]}`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = decodeJobs(strings.NewReader(text), func(raw json.RawMessage) {
			var c controllerJob
			if json.Unmarshal(raw, &c) == nil {
				r := c.record()
				_, _ = r.native()
				_ = describe(r)
			}
			var a accountedJob
			if json.Unmarshal(raw, &a) == nil {
				_ = describe(a.record())
			}
			_ = unreadable(raw)
		})
	})
}
