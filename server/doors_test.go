package server_test

import (
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// A task submitted at one door is the same job at the other.
func TestBothDoors(t *testing.T) {
	t.Parallel()
	g := start(t)
	code, text := g.post(t, "/v1/jobs", `{"task":{"key":{"orchestrator":"airflow","workflow":"risk","run":"manual__2026-01-01T00:00:00+00:00","task":"train"},
		"script":{"text":"echo '{\"auc\": 0.910, \"n\": 9007199254740993}' > $DAGBRIDGE_OUTPUT; exit 0"}, "labels":{"team":"x"}},"waitFor":"TERMINAL"}`)
	require.Equal(t, http.StatusOK, code, text)
	job := read(t, text, &dagbridgev1.SubmitTaskResponse{}).GetJob()
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, job.GetState(), text)
	self, err := user.Current()
	require.NoError(t, err)
	require.Equal(t, self.Username, job.GetOwner())
	require.Contains(t, text, `"exitCode":0`)
	require.NotContains(t, text, `"signal"`)
	require.Contains(t, text, `"mapIndex":[]`)

	over, err := g.grpc.GetJob(t.Context(), &dagbridgev1.GetJobRequest{Id: job.GetId()})
	require.NoError(t, err)
	require.True(t, proto.Equal(job, over.GetJob()), "%v\n%v", job, over.GetJob())

	key := "orchestrator=airflow&workflow=risk&run=" + url.QueryEscape(job.GetKey().GetRun()) + "&task=train"
	for name, path := range map[string]string{
		"by id":           "/v1/jobs/" + job.GetId(),
		"by query":        "/v1/lookup?" + key,
		"by query, a try": "/v1/lookup?deployment=default&tryNumber=1&" + key,
		"by path":         "/v1/orchestrators/airflow/workflows/risk/runs/manual__2026-01-01T00:00:00+00:00/tasks/train/job",
	} {
		t.Run(name, func(t *testing.T) {
			code, text := g.get(t, path)
			require.Equal(t, http.StatusOK, code, text)
			require.True(t, proto.Equal(job, read(t, text, &dagbridgev1.GetJobResponse{}).GetJob()), text)
		})
	}
	t.Run("outputs are as they were written", func(t *testing.T) {
		base := "/v1/orchestrators/airflow/workflows/risk/runs/manual__2026-01-01T00:00:00+00:00/tasks/train/job/outputs/"
		code, text := g.get(t, base+"auc")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "0.910", text)
		code, text = g.get(t, base+"n")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "9007199254740993", text)
		code, text = g.get(t, base+"loss")
		require.Equal(t, http.StatusNotFound, code)
		require.Contains(t, text, `left no output \"loss\"; it left auc, n`)
	})
	t.Run("lists leave outputs out", func(t *testing.T) {
		code, text := g.get(t, "/v1/jobs?workflow=risk&state=SUCCEEDED&state=FAILED&label=team=x&pageSize=1")
		require.Equal(t, http.StatusOK, code)
		list := read(t, text, &dagbridgev1.ListJobsResponse{})
		require.Len(t, list.GetJobs(), 1)
		require.Empty(t, list.GetJobs()[0].GetOutputs())
		require.NotEmpty(t, list.GetResumeToken())
		_, text = g.get(t, "/v1/jobs?workflow=risk&view=FULL")
		require.Equal(t, "0.910", read(t, text, &dagbridgev1.ListJobsResponse{}).GetJobs()[0].GetOutputs()["auc"].GetText())
		_, text = g.post(t, "/v1/jobs:batchGet", `{"ids":["nonsense","`+job.GetId()+`"],"keys":[{"orchestrator":"airflow","workflow":"risk","run":"`+job.GetKey().GetRun()+`","task":"train"}]}`)
		require.Len(t, read(t, text, &dagbridgev1.BatchGetJobsResponse{}).GetJobs(), 2)
		require.NotContains(t, text, "0.910")
		_, text = g.post(t, "/v1/jobs:batchGet", `{"ids":["`+job.GetId()+`"],"view":"FULL"}`)
		require.Contains(t, text, "0.910")
		_, text = g.get(t, "/v1/jobs?workflow=other")
		require.True(t, strings.HasPrefix(text, `{"jobs":[],"nextPageToken":"","resumeToken":"`), text)
	})
	t.Run("runs", func(t *testing.T) {
		code, text := g.get(t, "/v1/runs/"+job.GetRunId())
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, dagbridgev1.Run_SUCCEEDED, read(t, text, &dagbridgev1.GetRunResponse{}).GetRun().GetState())
		_, text = g.get(t, "/v1/runs?workflow=risk")
		require.Len(t, read(t, text, &dagbridgev1.ListRunsResponse{}).GetRuns(), 1)
	})
	t.Run("clusters", func(t *testing.T) {
		code, text := g.get(t, "/v1/clusters")
		require.Equal(t, http.StatusOK, code)
		clusters := read(t, text, &dagbridgev1.ListClustersResponse{}).GetClusters()
		require.Len(t, clusters, 1)
		require.Equal(t, "here", clusters[0].GetName())
	})
	t.Run("the end of what has ended", func(t *testing.T) {
		code, text := g.post(t, "/v1/jobs/"+job.GetId()+":cancel", "")
		require.Equal(t, http.StatusOK, code, text)
		require.Equal(t, dagbridgev1.Job_SUCCEEDED, read(t, text, &dagbridgev1.CancelJobResponse{}).GetJob().GetState())
		code, text = g.post(t, "/v1/jobs/"+job.GetId()+":retry", "{}")
		require.Equal(t, http.StatusBadRequest, code)
		require.Equal(t, int(codes.FailedPrecondition), refused(t, text).Code)
		code, text = g.post(t, "/v1/jobs/"+job.GetId()+"/outputs", `{"outputs":{"auc":1}}`)
		require.Equal(t, http.StatusBadRequest, code, text)
		code, text = g.post(t, "/v1/jobs:batchCancel", `{"ids":["`+job.GetId()+`","nonsense"]}`)
		require.Equal(t, http.StatusOK, code)
		results := read(t, text, &dagbridgev1.BatchCancelJobsResponse{}).GetResults()
		require.Equal(t, []string{"OK", "NOT_FOUND"}, []string{results[0].GetStatus(), results[1].GetStatus()})
		require.Empty(t, results[0].GetJob().GetOutputs())
	})
}

func TestPlanAndRun(t *testing.T) {
	t.Parallel()
	g := start(t)
	body := `{"run":{"orchestrator":"airflow","workflow":"ml","run":"r1"},"waitFor":"TERMINAL","tasks":[
		{"key":{"task":"a"},"command":{"argv":["true"]}},
		{"key":{"task":"b"},"command":{"argv":["true"]},"upstream":[{"task":"a"}]}]}`
	code, text := g.post(t, "/v1/runs:plan", body)
	require.Equal(t, http.StatusOK, code, text)
	plan := read(t, text, &dagbridgev1.PlanWorkflowResponse{}).GetPlan()
	require.Len(t, plan.GetTasks(), 2)
	require.Len(t, plan.GetEdges(), 1)
	_, text = g.get(t, "/v1/jobs")
	require.Empty(t, read(t, text, &dagbridgev1.ListJobsResponse{}).GetJobs(), "a plan submits nothing")

	code, text = g.post(t, "/v1/runs", body)
	require.Equal(t, http.StatusOK, code, text)
	run := read(t, text, &dagbridgev1.SubmitWorkflowResponse{})
	require.Len(t, run.GetJobs(), 2)
	require.Equal(t, dagbridgev1.Run_SUCCEEDED, run.GetRun().GetState(), text)
	code, text = g.post(t, "/v1/runs/"+run.GetRun().GetId()+":cancel", "")
	require.Equal(t, http.StatusOK, code, text)
}

// The same request twice, at the same moment and later, makes one job; another body under its key is refused.
func TestSameRequestTwice(t *testing.T) {
	t.Parallel()
	g := start(t)
	body := `{"task":{"key":{"orchestrator":"cli","workflow":"w","run":"r","task":"t"},"uid":"u","command":{"argv":["true"]}}}`
	ids := make(chan string)
	for range 2 {
		go func() {
			_, text := g.post(t, "/v1/jobs", body)
			ids <- text
		}()
	}
	first := read(t, <-ids, &dagbridgev1.SubmitTaskResponse{}).GetJob().GetId()
	require.Equal(t, first, read(t, <-ids, &dagbridgev1.SubmitTaskResponse{}).GetJob().GetId())
	_, text := g.post(t, "/v1/jobs", body)
	require.Equal(t, first, read(t, text, &dagbridgev1.SubmitTaskResponse{}).GetJob().GetId())

	code, text := g.post(t, "/v1/jobs", strings.Replace(body, "true", "false", 1))
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, refused(t, text).Message, "command.argv")
	_, err := g.grpc.SubmitTask(t.Context(), &dagbridgev1.SubmitTaskRequest{Task: &dagbridgev1.Task{
		Key: &dagbridgev1.TaskKey{Orchestrator: "cli", Workflow: "w", Run: "r", Task: "t"}, Uid: "u", Command: &dagbridgev1.Command{Argv: []string{"false"}},
	}})
	require.Equal(t, codes.AlreadyExists, status.Code(err))
	require.Equal(t, refused(t, text).Message, status.Convert(err).Message())

	code, text = g.post(t, "/v1/jobs", strings.Replace(strings.Replace(body, "true", "false", 1), `{"task"`, `{"onConflict":"ATTACH","task"`, 1))
	require.Equal(t, http.StatusOK, code, text)
	require.Len(t, read(t, text, &dagbridgev1.SubmitTaskResponse{}).GetWarnings(), 1)
}

// Of several contents under one key at the same moment one wins, whichever door it came by, and the others are told what differs.
func TestManyContentsAtOnce(t *testing.T) {
	t.Parallel()
	g := start(t)
	const each = 8
	type answer struct {
		id, refused string
		code        codes.Code
	}
	answers := make(chan answer, 2*each)
	for i := range each {
		one := task("t", "true")
		one.Env = map[string]string{"N": strconv.Itoa(i)}
		body, err := jsoncodec.Marshal(&dagbridgev1.SubmitTaskRequest{Task: one})
		require.NoError(t, err)
		go func() {
			resp, err := g.grpc.SubmitTask(t.Context(), &dagbridgev1.SubmitTaskRequest{Task: one})
			answers <- answer{resp.GetJob().GetId(), status.Convert(err).Message(), status.Code(err)}
		}()
		go func() {
			code, text := g.post(t, "/v1/jobs", string(body))
			if code == http.StatusOK {
				answers <- answer{id: read(t, text, &dagbridgev1.SubmitTaskResponse{}).GetJob().GetId()}
				return
			}
			told := refused(t, text)
			answers <- answer{refused: told.Message, code: codes.Code(told.Code)}
		}()
	}
	winners := map[string]int{}
	for range 2 * each {
		a := <-answers
		if a.code == codes.OK {
			winners[a.id]++
			continue
		}
		require.Equal(t, codes.AlreadyExists, a.code, a.refused)
		require.Contains(t, a.refused, `env["N"]`)
	}
	require.Len(t, winners, 1)
	for _, n := range winners {
		require.Equal(t, 2, n, "the same content by both doors is one job")
	}
}

// Outputs have one limit at both doors; nothing is cut, and what is no JSON is refused.
func TestOutputs(t *testing.T) {
	t.Parallel()
	g := start(t)
	gate := filepath.Join(t.TempDir(), "gate")
	job := g.submit(t, task("a", "while [ ! -e "+gate+" ]; do sleep 0.05; done"), dagbridgev1.WaitFor_SUBMITTED)
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	put := func(value string) (int, refusal, error) {
		_, err := g.grpc.PutOutputs(t.Context(), &dagbridgev1.PutOutputsRequest{Id: job.GetId(), Outputs: map[string]*dagbridgev1.Json{"x": {Text: value}}})
		code, body := g.post(t, "/v1/jobs/"+job.GetId()+"/outputs", `{"outputs":{"x":`+value+`}}`)
		if code == http.StatusOK {
			return code, refusal{}, err
		}
		return code, refused(t, body), err
	}
	for _, value := range []string{text(49 << 10), text(2 << 20)} {
		code, told, err := put(value)
		require.Equal(t, http.StatusTooManyRequests, code)
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.Equal(t, status.Convert(err).Message(), told.Message)
		require.Regexp(t, strconv.Itoa(len(value)/1000)+`\d{3} bytes`, told.Message)
		require.Contains(t, told.Message, "49152")
	}
	for _, value := range []string{"{a:1", ""} {
		code, _, err := put(value)
		require.Equal(t, http.StatusBadRequest, code)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, "outputs.x: is not JSON")
	}
	code, _, err := put(text(47 << 10))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	g.ends(t, job.GetId())
	_, body := g.get(t, "/v1/orchestrators/airflow/workflows/w/runs/r/tasks/a/job/outputs/x")
	require.Equal(t, text(47<<10), body)
}

// Every id finds its own job through every path, and none reaches another route.
func TestAnyIDInEveryPath(t *testing.T) {
	t.Parallel()
	g := start(t)
	ids := []string{
		"etl/load", "a:b", "run:cancel", "50%", "a b", "ü", "..", ".", "x?y#z", "+", "a+b", "%2F", "%252F", "a//b", "job", "/", ":", ":cancel", "jobs:watch", "&=;", "\"'<>\\^`{|}", "a*", "😀", "-", strings.Repeat("x", 1000),
	}
	for _, id := range ids {
		for _, key := range []*dagbridgev1.TaskKey{
			{Orchestrator: "airflow", Workflow: "w", Run: "r", Task: id},
			{Orchestrator: id, Workflow: id, Run: id, Task: id},
		} {
			t.Run(id[:min(len(id), 20)]+" "+key.GetOrchestrator()[:1], func(t *testing.T) {
				job := ended("")
				job.Key, job.Outputs = proto.CloneOf(key), map[string]*dagbridgev1.Json{"a:b/c%": {Text: `"x"`}}
				job.Key.Deployment = "default"
				g.put(t, job)
				e := url.PathEscape
				path := "/v1/orchestrators/" + e(key.GetOrchestrator()) + "/workflows/" + e(key.GetWorkflow()) + "/runs/" + e(key.GetRun()) + "/tasks/" + e(key.GetTask()) + "/job"
				path = strings.ReplaceAll(path, "/../", "/%2E%2E/")
				path = strings.ReplaceAll(path, "/./", "/%2E/")
				query := url.Values{"orchestrator": {key.GetOrchestrator()}, "workflow": {key.GetWorkflow()}, "run": {key.GetRun()}, "task": {key.GetTask()}}
				for _, at := range []string{path, "/v1/lookup?" + query.Encode()} {
					code, text := g.get(t, at)
					require.Equal(t, http.StatusOK, code, "%s: %s", at, text)
					require.Equal(t, job.GetId(), read(t, text, &dagbridgev1.LookupJobResponse{}).GetJob().GetId())
				}
				code, text := g.get(t, path+"/outputs/"+e("a:b/c%"))
				require.Equal(t, http.StatusOK, code, text)
				require.Equal(t, `"x"`, text)
				_, text = g.get(t, "/v1/jobs?"+query.Encode())
				require.Len(t, read(t, text, &dagbridgev1.ListJobsResponse{}).GetJobs(), 1)
			})
		}
	}
	t.Run("a job that is not there", func(t *testing.T) {
		for _, id := range ids[:20] {
			if id == "/" {
				continue
			}
			code, text := g.get(t, "/v1/jobs/"+strings.ReplaceAll(url.PathEscape(id), ".", "%2E"))
			require.Equal(t, http.StatusNotFound, code, text)
			require.Contains(t, refused(t, text).Message, "there is no such job")
		}
	})
}
