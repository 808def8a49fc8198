package slurm

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// table is what a slurmctld tells of its jobs, and what it was asked.
type table struct {
	mu sync.Mutex
	// states are lines of the listing of states, jobs those of GET /job/ID by id.
	states, jobs map[string]string
	asked        []string
	down         bool
}

func (c *table) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what, isJob := strings.CutPrefix(r.URL.Path, "/slurm/v0.0.45/job/")
	if !isJob {
		what = "states"
	}
	c.asked = append(c.asked, what)
	switch {
	case c.down:
		w.WriteHeader(http.StatusInternalServerError)
	case isJob:
		_, _ = io.WriteString(w, `{"jobs":[`+c.jobs[what]+`],"errors":[]}`)
	default:
		var lines []string
		for id, state := range c.states {
			lines = append(lines, fmt.Sprintf(`{"job_id":%q,"state":[%q]}`, id, state))
		}
		_, _ = io.WriteString(w, `{"jobs":[`+strings.Join(lines, ",")+`]}`)
	}
}

// tell changes the table.
func (c *table) tell(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// watching is a rest over a table, and a look at jobs 1 and 2 that returns what slurmctld was asked.
func watching(t *testing.T, c *table) (r *rest, look func() []string) {
	r = newFakeOf(t, "v0.0.45", c.serve).backend.orders.(*rest)
	return r, func() []string {
		records, err := r.watch(t.Context(), []string{"1", "2"})
		c.mu.Lock()
		defer c.mu.Unlock()
		asked := c.asked
		c.asked = nil
		if c.down {
			require.Error(t, err)
			return asked
		}
		require.NoError(t, err)
		require.NotEmpty(t, records)
		return asked
	}
}

// tabled is a job as GET /job/ID tells of it.
func tabled(id int, state, more string) string {
	return fmt.Sprintf(`{"job_id":%d,"job_state":[%q],"comment":"dagbridge:%s x"%s}`, id, state, token, more)
}

func TestOnlyAJobWhoseStateHasChangedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	c := &table{states: map[string]string{"1": "RUNNING", "2": "PENDING"}, jobs: map[string]string{"1": tabled(1, "RUNNING", ""), "2": tabled(2, "PENDING", "")}}
	r, look := watching(t, c)
	require.ElementsMatch(t, []string{"states", "1", "2"}, look())
	require.Equal(t, []string{"states"}, look())

	c.tell(func() { c.states["2"], c.jobs["2"] = "RUNNING", tabled(2, "RUNNING", "") })
	require.Equal(t, []string{"states", "2"}, look())
	require.Equal(t, []string{"states"}, look())

	r.watched.alter("1")
	require.Equal(t, []string{"states", "1"}, look(), "something was ordered about it")
	require.Equal(t, []string{"states"}, look())

	c.tell(func() { delete(c.states, "2"); delete(c.jobs, "2") })
	require.Equal(t, []string{"states", "2"}, look(), "before it counts as absent it is asked for by its id")
	require.Equal(t, []string{"states"}, look())

	c.tell(func() { c.down = true })
	require.Equal(t, []string{"states"}, look())
	c.tell(func() { c.down = false })
	require.ElementsMatch(t, []string{"states", "1", "2"}, look(), "what was known before an outage proves nothing")
}

func TestAnElementThatHasStartedIsListedByAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	element := func(own, position int, state string) string {
		return tabled(own, state, fmt.Sprintf(`,"array_job_id":1,"array_task_id":%d`, position))
	}
	c := &table{
		states: map[string]string{"1_1": "RUNNING", "7_0": "RUNNING"},
		jobs:   map[string]string{"1": element(1, 1, "RUNNING") + "," + element(7, 0, "RUNNING")},
	}
	_, look := watching(t, c)
	require.ElementsMatch(t, []string{"states", "1", "2"}, look())
	look() // only now is it known whose the id is
	require.Equal(t, []string{"states"}, look())
	c.tell(func() {
		c.states["7_0"], c.jobs["1"] = "COMPLETED", element(1, 1, "RUNNING")+","+element(7, 0, "COMPLETED")
	})
	require.Equal(t, []string{"states", "1"}, look())
	require.Equal(t, []string{"states"}, look())
}

// What cannot run any more is PENDING still: nothing in the listing of states tells of it.
func TestAJobIsAskedForAgainOnceWhatItWaitsForHasEnded(t *testing.T) {
	t.Parallel()
	c := &table{
		states: map[string]string{"1": "RUNNING", "2": "PENDING"},
		jobs:   map[string]string{"1": tabled(1, "RUNNING", ""), "2": tabled(2, "PENDING", `,"dependency":"afterok:1(unfulfilled)"`)},
	}
	_, look := watching(t, c)
	require.ElementsMatch(t, []string{"states", "1", "2"}, look())
	require.Equal(t, []string{"states"}, look())
	c.tell(func() { c.states["1"], c.jobs["1"] = "FAILED", tabled(1, "FAILED", "") })
	require.ElementsMatch(t, []string{"states", "1", "2"}, look())
	require.Equal(t, []string{"states", "2"}, look())
}

// The listings were recorded from the slurmrestd of 24.11 and 26.05: an array of which the elements 0 to 2 have started, one of
// a hundred that are held, and single jobs.
func TestTheListOfStatesIsRead(t *testing.T) {
	t.Parallel()
	for version, ended := range map[string]string{"v0.0.40": "10", "v0.0.45": "11"} {
		text, err := os.ReadFile("testdata/states." + version + ".json")
		require.NoError(t, err)
		r := newFakeOf(t, version, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }).backend.orders.(*rest)
		states, err := r.states(t.Context(), []string{"1", "2", "7", ended, "99"}, nil)
		require.NoError(t, err)
		require.Equal(t, 100, states["2"].live, version)
		require.Positive(t, states["1"].live, version)
		require.Zero(t, states[ended].live, version)
		require.NotZero(t, states[ended].sum, version)
		require.Zero(t, states["99"], version)
	}
}
