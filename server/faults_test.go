package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/server"
)

// Bad input is told with a sentence for each fault, all at once, alike at both doors; and nothing is submitted.
func TestBadInput(t *testing.T) {
	t.Parallel()
	g := start(t)
	task := func(rest string) string {
		return `{"task":{"key":{"orchestrator":"airflow","workflow":"w","run":"r","task":"t"},"script":{"text":"true"},` + rest + `}}`
	}
	run := func(tasks string) string {
		return `{"run":{"orchestrator":"airflow","workflow":"w","run":"r"},"tasks":[` + tasks + `]}`
	}
	a := func(id, rest string) string {
		return `{"key":{"task":"` + id + `"},"command":{"argv":["true"]}` + rest + `}`
	}
	for name, c := range map[string]struct {
		path, body string
		// faults are fields and, each, a part of what is said of it.
		faults map[string]string
		// rest: it cannot be said over gRPC.
		rest bool
	}{
		"a cycle": {"/v1/runs", run(a("a", `,"upstream":[{"task":"c"}]`) + "," + a("b", `,"upstream":[{"task":"a"}]`) + "," + a("c", `,"upstream":[{"task":"b"}]`) + "," + a("d", "")),
			map[string]string{"tasks": "->"}, false},
		"unknown and doubled tasks and a self edge, at once": {"/v1/runs", run(a("x", `,"upstream":[{"task":"y_typo"}]`) + "," + a("t", "") + "," + a("t", "") + "," + a("s", `,"upstream":[{"task":"s"}]`)),
			map[string]string{"tasks[0].upstream[0]": "y_typo", "tasks[2].key.task": "there already", "tasks[3].upstream[0]": "itself"}, false},
		"an empty workflow": {"/v1/runs", run(""), map[string]string{"tasks": "at least one task"}, false},
		"faults of the fields and of the graph, at once": {"/v1/runs:plan", run(a("a", `,"tryNumber":-1,"upstream":[{"task":"b"}]`)),
			map[string]string{"tasks[0].tryNumber": "greater than or equal to 0", "tasks[0].upstream[0]": "b"}, false},
		"faults of the fields and of the task, at once": {"/v1/jobs", task(`"tryNumber":-1,"cluster":"moon","resources":{"memory":"16 GB"}`),
			map[string]string{"task.tryNumber": "greater than or equal to 0", "task.cluster": "moon", "task.resources.memory": "16 GB"}, false},
		"an unknown cluster":  {"/v1/jobs", task(`"cluster":"moon"`), map[string]string{"task.cluster": "moon"}, false},
		"a script too large":  {"/v1/jobs", strings.Replace(task(`"uid":"x"`), "true", strings.Repeat("x", 4<<20+1), 1), map[string]string{"task.script": "4"}, false},
		"memory with a blank": {"/v1/jobs", task(`"resources":{"memory":"16 GB"}`), map[string]string{"task.resources.memory": `16 GB`}, false},
		"cpus below zero":     {"/v1/jobs", task(`"resources":{"cpu":"-1"}`), map[string]string{"task.resources.cpu": "-1"}, false},
		"many cpus":           {"/v1/jobs", task(`"resources":{"cpu":"many"}`), map[string]string{"task.resources.cpu": "many"}, false},
		"GPUs of no type there can be, and none of them": {"/v1/jobs", task(`"resources":{"gpus":[{"type":"a b","count":1},{"count":0},{"type":"gpu:a100"}]}`),
			map[string]string{
				"task.resources.gpus[0].type": "letters, digits", "task.resources.gpus[1].count": "greater than or equal to 1",
				"task.resources.gpus[2].type": "letters, digits", "task.resources.gpus": "does not hand out GPUs",
			}, false},
		"half a GPU":       {"/v1/jobs", task(`"resources":{"gpus":[{"count":0.5}]}`), map[string]string{"task.resources.gpus[0].count": "integer"}, true},
		"no time at all":   {"/v1/jobs", task(`"resources":{"timeLimit":"0s"}`), map[string]string{"task.resources.timeLimit": "greater than 0s"}, false},
		"more than a year": {"/v1/jobs", task(`"resources":{"timeLimit":"31622401s"}`), map[string]string{"task.resources.timeLimit": "31622400s"}, false},
		"names in env": {"/v1/jobs", task(`"env":{"A=B":"x","N\u0000":"x","C\u0007":"x","OK":"a\u0000b"}`),
			map[string]string{`task.env["A=B"] (the key)`: "without '='", `task.env["N\u0000"] (the key)`: "control characters", `task.env["C\u0007"] (the key)`: "control characters", "task.env.OK": "NUL"}, false},
		"control characters in the key": {"/v1/jobs", strings.Replace(task(`"uid":"x"`), `"t"`, `"a\nb"`, 1), map[string]string{"task.key.task": "control characters"}, false},
		"a name too long":               {"/v1/jobs", strings.Replace(task(`"uid":"x"`), `"t"`, `"`+strings.Repeat("n", 1025)+`"`, 1), map[string]string{"task.key.task": "1024 bytes"}, false},
		"an argument no node can exec":  {"/v1/jobs", strings.Replace(task(`"uid":"x"`), `"script":{"text":"true"}`, `"command":{"argv":["echo","`+strings.Repeat("a", 200<<10)+`"]}`, 1), map[string]string{"task.command.argv[1]": "131071 bytes"}, false},
		"a comment too long":            {"/v1/jobs", task(`"slurm":{"options":{"comment":"` + strings.Repeat("c", 4097) + `"}}`), map[string]string{"task.slurm.options.comment": "4096 bytes"}, false},
		"nothing to do":                 {"/v1/jobs", `{}`, map[string]string{"task": "is missing"}, false},
		"an empty body":                 {"/v1/jobs", ``, map[string]string{"task": "is missing"}, false},
		"an unknown field":              {"/v1/jobs", task(`"scrpit":{}, "retry":{"max":1}`), map[string]string{"task.scrpit": "unknown field", "task.retry.max": "unknown field"}, true},
		"a wrong type":                  {"/v1/jobs", task(`"tryNumber":"one","resources":{"cpu":4}`), map[string]string{"task.tryNumber": "integer", "task.resources.cpu": `write "4"`}, true},
		"no JSON":                       {"/v1/jobs", `{"task":`, map[string]string{"": "line 1, column 8"}, true},
		"a form":                        {"/v1/jobs", `task=x`, map[string]string{"": "not JSON"}, true},
		"invalid UTF-8":                 {"/v1/jobs", strings.Replace(task(`"uid":"x"`), `"t"`, "\"\xff\"", 1), map[string]string{"": "no UTF-8"}, true},
		"outputs that are none":         {"/v1/jobs/x/outputs", `{"outputs":{}}`, map[string]string{"outputs": "is empty"}, false},
		"watching nothing":              {"/v1/jobs:watch", ``, map[string]string{"filter": "say what to watch"}, true},
		"watching too long an id":       {"/v1/jobs:watch", `{"ids":["` + strings.Repeat("x", 65) + `"]}`, map[string]string{"ids[0]": "64 bytes"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := g.post(t, c.path, c.body)
			require.Equal(t, http.StatusBadRequest, code, text)
			told := refused(t, text)
			require.Equal(t, int(codes.InvalidArgument), told.Code)
			require.Len(t, told.Details, 1, text)
			require.Equal(t, "type.googleapis.com/google.rpc.BadRequest", told.Details[0].Type)
			for field, part := range c.faults {
				found := false
				for _, v := range told.Details[0].FieldViolations {
					found = found || strings.HasPrefix(v.Field, field) && strings.Contains(v.Description, part)
				}
				require.True(t, found, "%q is not told of %q in %s", part, field, text)
				require.Contains(t, told.Message, part)
			}
			require.Len(t, told.Details[0].FieldViolations, len(c.faults), text)
			if c.rest {
				return
			}
			var err error
			switch c.path {
			case "/v1/jobs":
				_, err = g.grpc.SubmitTask(t.Context(), decode(t, c.body, &dagbridgev1.SubmitTaskRequest{}))
			case "/v1/runs":
				_, err = g.grpc.SubmitWorkflow(t.Context(), decode(t, c.body, &dagbridgev1.Workflow{}))
			case "/v1/runs:plan":
				_, err = g.grpc.PlanWorkflow(t.Context(), decode(t, c.body, &dagbridgev1.Workflow{}))
			default:
				_, err = g.grpc.PutOutputs(t.Context(), &dagbridgev1.PutOutputsRequest{Id: "x"})
			}
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
			require.Equal(t, told.Message, status.Convert(err).Message())
			require.Len(t, status.Convert(err).Details()[0].(*errdetails.BadRequest).GetFieldViolations(), len(c.faults))
		})
	}
	_, text := g.get(t, "/v1/jobs")
	require.Empty(t, read(t, text, &dagbridgev1.ListJobsResponse{}).GetJobs(), "nothing was submitted")
	require.Empty(t, g.log.String(), "a caller's faults are not the gateway's")
}

// decode reads a request, which may be empty.
func decode[M proto.Message](t *testing.T, text string, m M) M {
	t.Helper()
	if text != "" {
		require.NoError(t, jsoncodec.Unmarshal([]byte(text), m))
	}
	return m
}

func TestFaultsInTheAddress(t *testing.T) {
	t.Parallel()
	g := start(t)
	for name, c := range map[string]struct {
		method, path string
		http         int
		code         codes.Code
		want         string
	}{
		"an unknown parameter":    {"GET", "/v1/jobs?worflow=x&pagesize=3", 400, codes.InvalidArgument, "pagesize: unknown parameter; there are deployment, orchestrator, workflow"},
		"no number":               {"GET", "/v1/jobs?pageSize=x", 400, codes.InvalidArgument, `pageSize: "x" is not a number of 32 bits`},
		"a page too large":        {"GET", "/v1/jobs?pageSize=1001", 400, codes.InvalidArgument, "pageSize: must be greater than or equal to 0 and less than or equal to 1000"},
		"an unknown state":        {"GET", "/v1/jobs?state=DONE", 400, codes.InvalidArgument, `state: "DONE" is not one of ACCEPTED, SUBMITTED, RUNNING`},
		"a label without a value": {"GET", "/v1/jobs?label=x", 400, codes.InvalidArgument, `label[0]: must be of the form "name=value"`},
		"a word twice":            {"GET", "/v1/jobs?workflow=a&workflow=b", 400, codes.InvalidArgument, "workflow: is there twice"},
		"a foreign page":          {"GET", "/v1/jobs?pageToken=x", 400, codes.InvalidArgument, "the token is not one that this list has given"},
		"half a key":              {"GET", "/v1/lookup?orchestrator=airflow&workflow=w", 400, codes.InvalidArgument, "run: is missing\ntask: is missing"},
		"an escape cut short":     {"GET", "/v1/jobs?workflow=%zz", 400, codes.InvalidArgument, "invalid URL escape"},
		"bytes in the path":       {"GET", "/v1/jobs/%ff", 400, codes.InvalidArgument, "not UTF-8"},
		"bytes in the query":      {"GET", "/v1/jobs?workflow=%ff", 400, codes.InvalidArgument, "not UTF-8"},
		"no such stream":          {"GET", "/v1/jobs/x/logs?stream=stdin", 400, codes.InvalidArgument, `stream: "stdin" is none of stdout, stderr`},
		"tail and offset":         {"GET", "/v1/jobs/x/logs?tail=1&offset=1", 400, codes.InvalidArgument, "tail: excludes offset"},
		"a log's unknown word":    {"GET", "/v1/jobs/x/logs?Tail=1", 400, codes.InvalidArgument, "Tail: unknown parameter; there are stream, offset, tail, follow"},
		"logs of nothing":         {"GET", "/v1/jobs/x/logs", 404, codes.NotFound, `there is no such job: "x"`},
		"no such page":            {"GET", "/v2/jobs", 404, codes.NotFound, "there is nothing at /v2/jobs"},
		"a slash at the end":      {"GET", "/v1/jobs/", 400, codes.InvalidArgument, "id: is missing"},
		"up":                      {"GET", "/v1/jobs/../clusters", 404, codes.NotFound, "there is nothing at /v1/jobs/../clusters"},
		"another method":          {"DELETE", "/v1/jobs", 405, codes.Unimplemented, "/v1/jobs does not take DELETE"},
		"a run that is not there": {"GET", "/v1/runs/x", 404, codes.NotFound, "there is no run x"},
		"a cancel of nothing":     {"POST", "/v1/jobs/x:cancel", 404, codes.NotFound, `there is no such job: "x"`},
		"an unknown verb":         {"POST", "/v1/jobs/x:explode", 405, codes.Unimplemented, "does not take POST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, text := g.raw(t, c.method, c.path)
			require.Equal(t, c.http, code, text)
			told := refused(t, text)
			require.Equal(t, int(c.code), told.Code, text)
			require.Contains(t, told.Message, c.want)
		})
	}
}

// raw sends a path as it is; clients clean theirs.
func (g *gateway) raw(t *testing.T, method, path string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", g.HTTPAddr())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method, path, g.HTTPAddr())
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// What one request may weigh is the same at both doors, and so is what is said when it is more.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	g := start(t)
	task := func(n int) *dagbridgev1.SubmitTaskRequest {
		return &dagbridgev1.SubmitTaskRequest{Task: &dagbridgev1.Task{Key: &dagbridgev1.TaskKey{Task: "t"}, Prologue: strings.Repeat("x", n)}}
	}
	_, err := g.grpc.SubmitTask(t.Context(), task(64<<20))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Regexp(t, `received message larger than max \(6710\d{4} vs. 67108864\)`, err.Error())
	_, err = g.grpc.SubmitTask(t.Context(), task(20<<20))
	require.Equal(t, codes.InvalidArgument, status.Code(err), "it was read: %.200v", err)

	code, text := g.post(t, "/v1/jobs", `{"task":"`+strings.Repeat("x", 64<<20)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
	require.Equal(t, int(codes.ResourceExhausted), refused(t, text).Code)
	require.Regexp(t, `received message larger than max \(6710\d{4} vs. 67108864\)`, refused(t, text).Message)
	code, text = g.post(t, "/v1/jobs", `{"task":"`+strings.Repeat("x", 20<<20)+`"}`)
	require.Equal(t, http.StatusBadRequest, code, "it was read: %.200s", text)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/jobs", io.MultiReader(strings.NewReader(strings.Repeat("x", 65<<20))))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode, "also when the length is not declared")
}

// A request that would take gigabytes to look through is refused for its size, alike at both doors; of one that is merely large
// the first fault is told.
func TestTooManyElements(t *testing.T) {
	t.Parallel()
	g := start(t)
	for n, want := range map[int]string{
		jsoncodec.MaxElements + 1: "has more than 2000000 list items and map entries altogether: send it in parts",
		100_001:                   "tasksSelected: must contain no more than 100000 item(s)",
	} {
		_, err := g.grpc.PlanWorkflow(t.Context(), &dagbridgev1.Workflow{TasksSelected: make([]string, n)})
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.Equal(t, want, status.Convert(err).Message())
		code, text := g.post(t, "/v1/runs:plan", `{"tasksSelected":[`+strings.Repeat(`"",`, n-1)+`""]}`)
		require.Equal(t, http.StatusBadRequest, code)
		require.Equal(t, want, refused(t, text).Message)
	}
}

// A DAG of 6 MiB and more comes through both doors.
func TestLargeWorkflow(t *testing.T) {
	t.Parallel()
	g := start(t)
	w := &dagbridgev1.Workflow{Run: &dagbridgev1.Run{Orchestrator: "airflow", Workflow: "w", Run: "r"}}
	for i := range 120 {
		one := task(fmt.Sprintf("t%03d", i), "true")
		one.Prologue = strings.Repeat("#", 60<<10)
		w.Tasks = append(w.Tasks, one)
	}
	plan, err := g.grpc.PlanWorkflow(t.Context(), w)
	require.NoError(t, err)
	require.Len(t, plan.GetPlan().GetTasks(), 120)
	text, err := jsoncodec.Marshal(w)
	require.NoError(t, err)
	require.Greater(t, len(text), 6<<20)
	code, body := g.post(t, "/v1/runs:plan", string(text))
	require.Equal(t, http.StatusOK, code, "%.500s", body)
}

// An answer may be larger than any request, at both doors.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	g := start(t)
	job := ended("")
	job.Labels = map[string]string{}
	for i := range 64 {
		job.Labels[fmt.Sprintf("%0256d", i)] = strings.Repeat("x", 256)
	}
	g.put(t, job)
	ids := make([]string, 2200)
	for i := range ids {
		ids[i] = job.GetId()
	}
	req := &dagbridgev1.BatchGetJobsRequest{Ids: ids}
	over, err := g.grpc.BatchGetJobs(t.Context(), req)
	require.NoError(t, err)
	require.Greater(t, proto.Size(over), server.MaxMessage)
	require.Len(t, over.GetJobs(), len(ids))
	text, err := jsoncodec.Marshal(req)
	require.NoError(t, err)
	code, body := g.post(t, "/v1/jobs:batchGet", string(text))
	require.Equal(t, http.StatusOK, code)
	require.Greater(t, len(body), server.MaxMessage)
}
