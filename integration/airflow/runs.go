package airflowtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Run is one run of a DAG.
type Run struct {
	// DAG and ID are dag_id and run_id.
	DAG, ID string

	a *Airflow
}

// TaskInstance is one as it was when it was looked at.
type TaskInstance struct {
	TaskID    string `json:"task_id"`
	MapIndex  int    `json:"map_index"`
	TryNumber int    `json:"try_number"`
	State     string `json:"state"`
	// PID is of the process that runs it, if any.
	PID int `json:"pid"`

	run *Run
}

// Trigger makes a run, once the DAG's file has been read.
func (a *Airflow) Trigger(t testing.TB, dag, run string, conf map[string]any) *Run {
	t.Helper()
	Eventually(t, func() bool {
		status, _ := a.call(t, http.MethodGet, "/dags/"+url.PathEscape(dag), "application/json", nil)
		return status == http.StatusOK
	}, "there is no DAG %q: %s", dag, lazily(func() string { return a.importErrors(t) }))
	body := map[string]any{"dag_run_id": run, "conf": conf}
	if conf == nil {
		body["conf"] = map[string]any{}
	}
	if !a.old() {
		body["logical_date"] = nil
	}
	a.do(t, http.MethodPost, "/dags/"+url.PathEscape(dag)+"/dagRuns", body)
	return &Run{DAG: dag, ID: run, a: a}
}

// importErrors are those of all DAG files.
func (a *Airflow) importErrors(t testing.TB) string {
	t.Helper()
	_, text := a.call(t, http.MethodGet, "/importErrors", "application/json", nil)
	return string(text)
}

func (r *Run) path() string {
	return "/dags/" + url.PathEscape(r.DAG) + "/dagRuns/" + url.PathEscape(r.ID)
}

// State of the run: queued, running, success or failed.
func (r *Run) State(t testing.TB) string {
	t.Helper()
	var run struct{ State string }
	r.a.get(t, r.path(), &run)
	return run.State
}

// Await waits until the run has ended, and it must have ended so. Otherwise the logs of what failed are shown.
func (r *Run) Await(t testing.TB, state string) {
	t.Helper()
	var is string
	Eventually(t, func() bool {
		is = r.State(t)
		return is == "success" || is == "failed"
	}, "run %s of %s does not end: %v", r.ID, r.DAG, lazily(func() string { return r.told(t) }))
	if is != state {
		t.Fatalf("run %s of %s is %s:\n%s", r.ID, r.DAG, is, r.told(t))
	}
}

// told says how the tasks stand, with the logs of those that have failed or have not ended.
func (r *Run) told(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, ti := range r.Tasks(t) {
		fmt.Fprintf(&b, "%s[%d] try %d: %s\n", ti.TaskID, ti.MapIndex, ti.TryNumber, ti.State)
		if ti.State != "success" && ti.State != "" && b.Len() < 64<<10 {
			b.WriteString(ti.Log(t))
		}
	}
	return b.String()
}

// Tasks are all task instances of the run.
func (r *Run) Tasks(t testing.TB) []TaskInstance {
	t.Helper()
	var all []TaskInstance
	for {
		var page struct {
			Tasks []TaskInstance `json:"task_instances"`
			Total int            `json:"total_entries"`
		}
		r.a.get(t, fmt.Sprintf("%s/taskInstances?limit=100&offset=%d", r.path(), len(all)), &page)
		all = append(all, page.Tasks...)
		if len(page.Tasks) == 0 || len(all) >= page.Total {
			break
		}
	}
	for i := range all {
		all[i].run = r
	}
	return all
}

// Task is a task's instance, which is not mapped.
func (r *Run) Task(t testing.TB, task string) TaskInstance {
	t.Helper()
	ti := TaskInstance{run: r}
	r.a.get(t, r.path()+"/taskInstances/"+url.PathEscape(task), &ti)
	return ti
}

// AwaitTask waits until a task, which is not mapped, is in one of some states. One that has ended otherwise will not be.
func (r *Run) AwaitTask(t testing.TB, task string, states ...string) TaskInstance {
	t.Helper()
	var ti TaskInstance
	Eventually(t, func() bool {
		ti = r.Task(t, task)
		if slices.Contains([]string{"success", "failed", "upstream_failed", "skipped"}, ti.State) && !slices.Contains(states, ti.State) {
			t.Fatalf("%s of %s is %s, not one of %v:\n%s", task, r.ID, ti.State, states, ti.Log(t))
		}
		return slices.Contains(states, ti.State)
	}, "%s of %s does not come to be one of %v: %s", task, r.ID, states, lazily(func() string { return r.told(t) }))
	return ti
}

// AwaitTriggered waits until the task instance's trigger runs in the triggerer: who marks or clears a deferred task before that is heard
// by nobody.
func (ti TaskInstance) AwaitTriggered(t testing.TB) {
	t.Helper()
	if ti.run.a.old() { // which says it in the component's log
		ti.run.a.AwaitLogged(t, "triggerer", fmt.Sprintf("trigger %s/%s/%s/%d/%d (ID", ti.run.DAG, ti.run.ID, ti.TaskID, ti.MapIndex, ti.TryNumber))
		return
	}
	Eventually(t, func() bool { return strings.Contains(ti.Log(t), ") starting") }, "the trigger of %s[%d] does not start", ti.TaskID, ti.MapIndex)
}

// Mark makes the run "success" or "failed", and its tasks with it.
func (r *Run) Mark(t testing.TB, state string) {
	t.Helper()
	r.a.do(t, http.MethodPatch, r.path(), map[string]any{"state": state})
}

// Pause has no further task of a DAG start, or lets them go on.
func (a *Airflow) Pause(t testing.TB, dag string, paused bool) {
	t.Helper()
	a.do(t, http.MethodPatch, "/dags/"+url.PathEscape(dag), map[string]any{"is_paused": paused})
}

// Clear has some tasks of the run, and what is after them, run again.
func (r *Run) Clear(t testing.TB, tasks ...string) {
	t.Helper()
	r.a.do(t, http.MethodPost, "/dags/"+url.PathEscape(r.DAG)+"/clearTaskInstances", map[string]any{
		"dry_run": false, "dag_run_id": r.ID, "task_ids": tasks, "only_failed": false, "reset_dag_runs": true, "include_downstream": true,
	})
}

// Delete deletes the run from Airflow's database.
func (r *Run) Delete(t testing.TB) {
	t.Helper()
	r.a.do(t, http.MethodDelete, r.path(), nil)
}

func (ti TaskInstance) path() string {
	return ti.run.path() + "/taskInstances/" + url.PathEscape(ti.TaskID)
}

// Mark makes the task instance "success" or "failed".
func (ti TaskInstance) Mark(t testing.TB, state string) {
	t.Helper()
	body := map[string]any{"new_state": state}
	if ti.run.a.old() {
		body["dry_run"] = false
	}
	path := ti.path()
	if ti.MapIndex >= 0 {
		path += fmt.Sprintf("/%d", ti.MapIndex)
	}
	ti.run.a.do(t, http.MethodPatch, path, body)
}

// XCom is a value that the task has pushed, as JSON; empty when there is none.
func (ti TaskInstance) XCom(t testing.TB, key string) string {
	t.Helper()
	path := fmt.Sprintf("%s/xcomEntries/%s?stringify=false&map_index=%d", ti.path(), url.PathEscape(key), ti.MapIndex)
	status, text := ti.run.a.call(t, http.MethodGet, path, "application/json", nil)
	if status == http.StatusNotFound {
		return ""
	}
	var entry struct{ Value json.RawMessage }
	require.NoError(t, json.Unmarshal(text, &entry), "%d: %s", status, text)
	return string(entry.Value)
}

// Links are the extra links, by name.
func (ti TaskInstance) Links(t testing.TB) map[string]string {
	t.Helper()
	path := fmt.Sprintf("%s/links?map_index=%d", ti.path(), ti.MapIndex)
	links := map[string]*string{}
	if ti.run.a.old() {
		ti.run.a.get(t, path, &links)
	} else {
		ti.run.a.get(t, path, &struct {
			Links map[string]*string `json:"extra_links"`
		}{links})
	}
	all := map[string]string{}
	for name, link := range links {
		if link != nil {
			all[name] = *link
		}
	}
	return all
}

// Log is the log of the task instance's present try, as JSON lines, or text in Airflow 2.
func (ti TaskInstance) Log(t testing.TB) string {
	t.Helper()
	accept := "application/x-ndjson"
	if ti.run.a.old() {
		accept = "text/plain"
	}
	_, text := ti.run.a.call(t, http.MethodGet, fmt.Sprintf("%s/logs/%d?full_content=true&map_index=%d", ti.path(), max(ti.TryNumber, 1), ti.MapIndex), accept, nil)
	return string(text)
}

// lazily is text that is made when it is printed.
type lazily func() string

func (l lazily) String() string { return l() }
