package slurm

import (
	"strconv"
	"strings"
	"time"

	"github.com/dagbridge/dagbridge/translators/slurm"
)

// placed is a record of what an id is about: "77", "77_3", "77_[2,5-6%4]".
func placed(text string) record {
	base, positions, _, err := slurm.ParseIDs(text)
	if err != nil {
		base, _, _ = strings.Cut(text, "_")
		return record{id: base, unread: true}
	}
	return record{id: base, positions: positions}
}

// stateWords are a state and its flags: "RUNNING", "CANCELLED by 500", "RUNNING+COMPLETING".
func stateWords(text string) []string { return strings.Split(strings.TrimSpace(text), "+") }

// exitStatus is sacct's "exit:signal".
func exitStatus(text string) (exit, signal *int32, err error) { return slurm.Exit(text) }

// queueExit is squeue's exit code: the status of wait(2) in 22.05, and "exit:signal" in 24.11 and 26.05.
func queueExit(text string) (exit, signal *int32) {
	if status, err := strconv.ParseInt(text, 10, 64); err == nil {
		return waitStatus(status)
	}
	exit, signal, _ = exitStatus(text)
	return exit, signal
}

// given is a field's text, "" for the many ways in which Slurm says that there is none.
func given(text string) string {
	switch text {
	case "(null)", "N/A", "n/a", "None", "None assigned", "Unknown":
		return ""
	default:
		return text
	}
}

// epoch is a time in seconds; zero for "N/A", "Unknown", "None" and whatever else is no time.
func epoch(text string) time.Time {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
