package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// screen is a view on a terminal of a size, and what is to be read there.
type screen struct {
	*view
	out bytes.Buffer
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newScreen(width, height int, jobs []*dagbridgev1.Job) *screen {
	s := &screen{}
	s.view = newView(&s.out, nil)
	s.size = func() (int, int) { return width, height }
	s.now = func() time.Time { return noon.Add(90 * time.Second) }
	s.jobs = jobs
	for i, job := range jobs {
		s.rows[job.GetId()] = i
	}
	s.draw()
	return s
}

// lines plays the escape sequences that a view uses.
func (s *screen) lines(t *testing.T) []string {
	t.Helper()
	lines := []string{}
	for _, line := range strings.SplitAfter(s.out.String(), "\n") {
		for strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexAny(line, "AJm")
			var up int
			if line[end] == 'A' {
				_, err := fmt.Sscanf(line, "\x1b[%dA", &up)
				require.NoError(t, err)
				require.LessOrEqual(t, up, len(lines), "the view goes above what it has drawn")
				lines = lines[:len(lines)-up]
			}
			line = line[end+1:]
		}
		if line != "" {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func job(task string, state dagbridgev1.Job_State) *dagbridgev1.Job {
	return &dagbridgev1.Job{Id: "id-" + task, Key: &dagbridgev1.TaskKey{Task: task}, State: state, Cluster: "hpc"}
}

func TestViewOnATerminal(t *testing.T) {
	t.Parallel()
	s := newScreen(60, 24, []*dagbridgev1.Job{job("train", dagbridgev1.Job_ACCEPTED), job("a-task-with-a-name-that-is-too-long", dagbridgev1.Job_ACCEPTED)})
	running := job("train", dagbridgev1.Job_RUNNING)
	running.NativeId, running.StartTime = "17", timestamppb.New(noon)
	s.update(running)
	array := job("a-task-with-a-name-that-is-too-long", dagbridgev1.Job_FAILED)
	array.Counts = map[string]int32{"SUCCEEDED": 3, "FAILED": 1, "RUNNING": 2}
	array.Message = "a sentence that goes on for longer than the screen is wide"
	s.update(array)
	s.note("a note")
	require.Equal(t, []string{
		"a note",
		"▶ train                 RUNNING         hpc 17, 1m30s",
		"✗ a-task-with-a-name-…  FAILED          4 of 6 ended, a se…",
	}, s.lines(t))
}

func TestViewLargerThanTheTerminal(t *testing.T) {
	t.Parallel()
	var jobs []*dagbridgev1.Job
	for i := range 10 {
		jobs = append(jobs, job(fmt.Sprintf("done-%d", i), dagbridgev1.Job_SUCCEEDED))
	}
	jobs = append(jobs, job("waits", dagbridgev1.Job_ACCEPTED), job("runs", dagbridgev1.Job_RUNNING))
	s := newScreen(80, 5, jobs)
	require.Equal(t, []string{"✓ done-0  SUCCEEDED", "· waits   ACCEPTED", "▶ runs    RUNNING", "  and 9 more"}, s.lines(t))
}

func TestViewColours(t *testing.T) {
	t.Parallel()
	s := newScreen(80, 24, []*dagbridgev1.Job{job("train", dagbridgev1.Job_SUCCEEDED)})
	require.NotContains(t, s.out.String(), "\x1b[32m")
	s.color = true
	s.draw()
	require.Contains(t, s.out.String(), "\x1b[32m✓ train")
}

func TestViewInAPipe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := newView(&out, []*dagbridgev1.Job{job("train", dagbridgev1.Job_ACCEPTED)})
	require.True(t, v.live())
	submitted := job("train", dagbridgev1.Job_SUBMITTED)
	submitted.NativeId, submitted.Reason, submitted.Message = "17", "RESOURCES", "waits for\nnodes"
	v.update(submitted)
	v.update(submitted) // the same again is no news
	v.update(job("somebody else's", dagbridgev1.Job_RUNNING))
	failed := job("train", dagbridgev1.Job_FAILED)
	failed.NativeId, failed.ExitCode = "17", new(int32(3))
	v.update(failed)
	require.False(t, v.live())
	require.Equal(t, "train: ACCEPTED\ntrain: SUBMITTED hpc 17, RESOURCES: waits for nodes\ntrain: FAILED hpc 17, exit code 3\n", out.String())
}
