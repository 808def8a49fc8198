package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// view shows jobs while they change: on a terminal a line a task, drawn again and again; elsewhere a line each time a
// task's state changes.
type view struct {
	out   io.Writer
	size  func() (width, height int) // of the terminal; nil when there is none
	color bool
	now   func() time.Time
	jobs  []*dagbridgev1.Job // in the order of the tasks
	rows  map[string]int     // by job id
	drawn int                // lines on the screen that are the view's
}

// newView shows the jobs on w.
func newView(w io.Writer, jobs []*dagbridgev1.Job) *view {
	v := &view{out: w, now: time.Now, jobs: append([]*dagbridgev1.Job(nil), jobs...), rows: map[string]int{}}
	for i, job := range jobs {
		v.rows[job.GetId()] = i
	}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		v.size = func() (int, int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}
		v.color = os.Getenv("NO_COLOR") == ""
	}
	for _, job := range v.jobs {
		v.line(job)
	}
	v.draw()
	return v
}

// update takes a job as it is now.
func (v *view) update(job *dagbridgev1.Job) {
	row, ok := v.rows[job.GetId()]
	if !ok {
		return
	}
	before := v.jobs[row]
	v.jobs[row] = job
	if before.GetState() != job.GetState() {
		v.line(job)
	}
	v.draw()
}

// note says something beside the jobs.
func (v *view) note(format string, args ...any) {
	fmt.Fprintf(v.out, v.erase()+format+"\n", args...)
	v.draw()
}

// live says whether any job has not ended.
func (v *view) live() bool {
	for _, job := range v.jobs {
		if !graph.IsTerminal(job.GetState()) {
			return true
		}
	}
	return false
}

// line is the view where there is no terminal.
func (v *view) line(job *dagbridgev1.Job) {
	if v.size == nil {
		fmt.Fprintln(v.out, strings.TrimRight(fmt.Sprintf("%s: %s %s", taskName(job.GetKey()), job.GetState(), v.detail(job)), " "))
	}
}

// draw writes the lines of a terminal over those that are there, in one piece, so that nothing flickers.
func (v *view) draw() {
	if v.size == nil {
		return
	}
	width, height := v.size()
	var names int
	for _, job := range v.jobs {
		names = max(names, utf8.RuneCountInString(taskName(job.GetKey())))
	}
	names = min(names, width/3)
	shown, hidden := v.visible(max(height-2, 1))
	var frame strings.Builder
	for _, job := range shown {
		// The colour is no part of the width: the line is cut first.
		symbol, color := look(job.GetState())
		text := fmt.Sprintf("%s %-*s  %-15s %s", symbol, names, cut(taskName(job.GetKey()), names), job.GetState(), v.detail(job))
		text = cut(strings.TrimRight(text, " "), width-1)
		if v.color {
			text = "\x1b[" + color + "m" + text + "\x1b[0m"
		}
		frame.WriteString(text + "\n")
	}
	if hidden > 0 {
		frame.WriteString(cut(fmt.Sprintf("  and %d more", hidden), width-1) + "\n")
	}
	fmt.Fprint(v.out, v.erase()+frame.String())
	v.drawn = strings.Count(frame.String(), "\n")
}

// erase is what takes the lines that are there off the screen.
func (v *view) erase() string {
	if v.drawn == 0 {
		return ""
	}
	up := fmt.Sprintf("\x1b[%dA\x1b[J", v.drawn)
	v.drawn = 0
	return up
}

// visible chooses what a screen has room for: what runs or failed first, then what waits, then what is done.
func (v *view) visible(room int) (shown []*dagbridgev1.Job, hidden int) {
	if len(v.jobs) <= room {
		return v.jobs, 0
	}
	chosen := map[int]bool{}
	for rank := range 3 {
		for i, job := range v.jobs {
			if len(chosen) < room && interest(job.GetState()) == rank {
				chosen[i] = true
			}
		}
	}
	for i, job := range v.jobs {
		if chosen[i] {
			shown = append(shown, job)
		}
	}
	return shown, len(v.jobs) - len(shown)
}

func interest(s dagbridgev1.Job_State) int {
	switch s {
	case dagbridgev1.Job_RUNNING, dagbridgev1.Job_FAILED, dagbridgev1.Job_LOST:
		return 0
	case dagbridgev1.Job_ACCEPTED, dagbridgev1.Job_SUBMITTED:
		return 1
	}
	return 2
}

// look is how a state looks: a symbol and an ANSI colour.
func look(s dagbridgev1.Job_State) (symbol, color string) {
	switch s {
	case dagbridgev1.Job_RUNNING:
		return "▶", "36"
	case dagbridgev1.Job_SUCCEEDED:
		return "✓", "32"
	case dagbridgev1.Job_FAILED, dagbridgev1.Job_LOST:
		return "✗", "31"
	case dagbridgev1.Job_CANCELLED, dagbridgev1.Job_SKIPPED, dagbridgev1.Job_UPSTREAM_FAILED:
		return "-", "33"
	}
	return "·", "2"
}

// detail is what there is to say beside a state.
func (v *view) detail(job *dagbridgev1.Job) string {
	var parts []string
	if id := job.GetNativeId(); id != "" {
		parts = append(parts, job.GetCluster()+" "+id)
	}
	if counts := job.GetCounts(); len(counts) > 0 {
		var ended, all int32
		for word, n := range counts {
			all += n
			if graph.IsTerminal(dagbridgev1.Job_State(dagbridgev1.Job_State_value[word])) {
				ended += n
			}
		}
		parts = append(parts, fmt.Sprintf("%d of %d ended", ended, all))
	}
	if start := job.GetStartTime(); start != nil && v.size != nil {
		end := v.now()
		if job.GetEndTime() != nil {
			end = job.GetEndTime().AsTime()
		}
		parts = append(parts, max(end.Sub(start.AsTime()), 0).Round(time.Second/10).String())
	}
	if job.GetState() == dagbridgev1.Job_RUNNING || job.GetState() == dagbridgev1.Job_SUCCEEDED {
		return strings.Join(parts, ", ") // there is nothing to explain
	}
	if reason := why(job); reason != "" {
		parts = append(parts, reason)
	} else if exit := exitOf(job); exit != "" && exit != "code 0" {
		parts = append(parts, "exit "+exit)
	}
	return strings.Join(parts, ", ")
}

// cut shortens a text to so many characters.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}
