package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// printJobs writes one row a job.
func printJobs(w io.Writer, jobs []*dagbridgev1.Job) {
	fmt.Fprintln(w, "ID\tTASK\tSTATE\tCLUSTER\tNATIVE ID\tSUBMITTED\tWHY")
	for _, job := range jobs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", job.GetId(), taskName(job.GetKey()), stateOf(job), job.GetCluster(), dash(job.GetNativeId()),
			when(job.GetSubmitTime()), dash(job.GetReason()))
	}
}

// printMapping writes one row a task: which native job carried it.
func printMapping(w io.Writer, jobs []*dagbridgev1.Job) {
	fmt.Fprintln(w, "TASK\tSTATE\tCLUSTER\tNATIVE ID")
	for _, job := range jobs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", taskName(job.GetKey()), stateOf(job), job.GetCluster(), dash(job.GetNativeId()))
	}
}

// printJob writes all there is to know of one job.
func printJob(w io.Writer, job *dagbridgev1.Job) {
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, value)
		}
	}
	key := job.GetKey()
	row("Job", job.GetId())
	row("Task", taskName(key))
	row("Run", strings.Join([]string{key.GetOrchestrator(), key.GetWorkflow(), key.GetRun()}, " / "))
	if key.GetDeployment() != "default" {
		row("Deployment", key.GetDeployment())
	}
	row("Try", tryOf(job))
	row("State", stateOf(job))
	row("Why", why(job))
	row("Exit", exitOf(job))
	row("Cluster", job.GetCluster())
	row("Native id", job.GetNativeId())
	row("Owner", job.GetOwner())
	for _, at := range []struct {
		name string
		time *timestamppb.Timestamp
	}{
		{"Created", job.GetCreateTime()},
		{"Submitted", job.GetSubmitTime()},
		{"Started", job.GetStartTime()},
		{"Ended", job.GetEndTime()},
		{"Cancel asked", job.GetCancelRequestTime()},
	} {
		if at.time != nil {
			row(at.name, when(at.time))
		}
	}
	row("Stdout", job.GetLogs().GetStdout())
	row("Stderr", job.GetLogs().GetStderr())
	for _, name := range slices.Sorted(maps.Keys(job.GetLabels())) {
		row("Label", name+"="+job.GetLabels()[name])
	}
	for _, name := range slices.Sorted(maps.Keys(job.GetOutputs())) {
		row("Output", name+" = "+job.GetOutputs()[name].GetText())
	}
	if len(job.GetAttempts()) > 1 {
		for _, a := range job.GetAttempts() {
			row(fmt.Sprintf("Attempt %d", a.GetNumber()), attempt(a))
		}
	}
	for _, note := range job.GetNotes() {
		row("Note", note)
	}
	row("URL", job.GetUrl())
}

// attempt is one of a job's attempts: how it ended, where, and in what it was unlike the first.
func attempt(a *dagbridgev1.Attempt) string {
	words := []string{a.GetState().String(), a.GetCluster(), a.GetNativeId(), a.GetNode(), a.GetReason()}
	if a.GetReason() == "" && a.GetExitCode() != 0 {
		words = append(words, fmt.Sprintf("exit code %d", a.GetExitCode()))
	}
	text := strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	if a.GetMemory() != "" {
		text += ", with " + a.GetMemory() + " of memory"
	}
	if a.GetTimeLimit() != nil {
		text += ", with a time limit of " + a.GetTimeLimit().AsDuration().String()
	}
	if len(a.GetExcludedNodes()) > 0 {
		text += ", kept off " + strings.Join(a.GetExcludedNodes(), ", ")
	}
	return text
}

// taskName is a task's id, with the index of a mapped one.
func taskName(key *dagbridgev1.TaskKey) string {
	name := key.GetTask()
	for _, i := range key.GetMapIndex() {
		name += fmt.Sprintf("[%d]", i)
	}
	return name
}

func tryOf(job *dagbridgev1.Job) string {
	if job.GetUid() == "" {
		return fmt.Sprint(job.GetTryNumber())
	}
	return fmt.Sprintf("%d, uid %s", job.GetTryNumber(), job.GetUid())
}

// stateOf is a job's state; of an array also how many of its instances are in which.
func stateOf(job *dagbridgev1.Job) string {
	state := job.GetState().String()
	if len(job.GetCounts()) == 0 {
		return state
	}
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(job.GetCounts())) {
		if n := job.GetCounts()[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return fmt.Sprintf("%s (%s)", state, strings.Join(parts, ", "))
}

// why is what the scheduler, or the gateway, says of a job's state: a word, and a sentence where there is one.
func why(job *dagbridgev1.Job) string {
	message := strings.Join(strings.FieldsFunc(job.GetMessage(), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	switch {
	case message == "":
		return job.GetReason()
	case job.GetReason() == "" || strings.Contains(message, job.GetReason()):
		return message
	}
	return job.GetReason() + ": " + message
}

func exitOf(job *dagbridgev1.Job) string {
	switch {
	case job.Signal != nil:
		return fmt.Sprintf("signal %d", job.GetSignal())
	case job.ExitCode != nil:
		return fmt.Sprintf("code %d", job.GetExitCode())
	}
	return ""
}

func when(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format(time.DateTime)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
