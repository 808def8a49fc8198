package slurm

import (
	"context"
	"fmt"
	"strings"
)

// runner runs commands, on the gateway's machine or on a login node.
type runner interface {
	// run runs a command to its end or to its context's. An error is a sentence; it is an errNotStarted when the command was
	// never run, and after any other it may have been.
	run(context.Context, command) (output, error)
	close() error
}

// command is a command of Slurm's with all that it is given. Nothing of what users set for themselves (SBATCH_*, SQUEUE_*)
// applies to the gateway's calls: of its surroundings it has SLURM_CONF alone.
type command struct {
	// user to run it as; "": whom the runner is.
	user        string
	environment []string
	stdin       string
	name        string
	arguments   []string
}

// alone begins the command line by which it has these variables and no others, and by which it is its user's.
func (c command) alone(environment []string) []string {
	words := append([]string{"/usr/bin/env", "-i"}, environment...)
	if c.user != "" {
		words = append([]string{"sudo", "-n", "-u", c.user, "--"}, words...)
	}
	return words
}

// output of a command that ended.
type output struct {
	stdout, stderr string
	// status it ended with; -1 when a signal ended it.
	status int
}

// sentences of standard error, without "sbatch: error: " and the like.
func (o output) sentences() []string {
	var sentences []string
	for line := range strings.Lines(o.stderr) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"sbatch: ", "squeue: ", "sacct: ", "scancel: ", "scontrol: ", "sdiag: ", "error: ", "warning: ", "note: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" {
			sentences = append(sentences, line)
		}
	}
	return sentences
}

// notStarted says that none of Slurm's commands can have run: that env or a shell found none, or that sudo let nobody in.
func (o output) notStarted() bool {
	switch o.status {
	case statusNotRun, 126, 127:
		return true
	case 1:
		for _, sentence := range o.sentences() {
			if !strings.HasPrefix(sentence, "sudo: ") {
				return false
			}
		}
		return o.stdout == "" && o.stderr != ""
	}
	return false
}

// statusNotRun is what env(1) ends with when it does not come to run a command.
const statusNotRun = 125

// errNotStarted: the command was never run.
type errNotStarted struct{ error }

func notStarted(format string, args ...any) error { return errNotStarted{fmt.Errorf(format, args...)} }
