package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// cli is the way through Slurm's own commands, as the gateway's user.
type cli struct {
	// path is the folder of the commands; "" when they are found in PATH.
	path    string
	timeout time.Duration
}

func (c *cli) close() error { return nil }

// output of a command.
type output struct{ stdout, stderr string }

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

// errNotStarted: the command was never run.
type errNotStarted struct{ error }

// run runs a command. Times come as epoch seconds, and lists of array indices in full; an error is what the command said.
func (c *cli) run(ctx context.Context, timeout time.Duration, command string, arguments ...string) (output, error) {
	environment := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0",
	}
	return c.runWith(ctx, timeout, environment, "", command, arguments...)
}

func (c *cli) runWith(ctx context.Context, timeout time.Duration, environment []string, stdin, command string, arguments ...string) (output, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	name := command
	if c.path != "" {
		name = filepath.Join(c.path, command)
	}
	cmd := exec.CommandContext(ctx, name, arguments...)
	// nothing of what users set for themselves (SBATCH_*, SQUEUE_*) applies to the gateway's calls
	cmd.Env = environment
	if conf := os.Getenv("SLURM_CONF"); conf != "" {
		cmd.Env = append(cmd.Env, "SLURM_CONF="+conf)
	}
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return output{}, errNotStarted{fmt.Errorf("%s does not run: %w", command, err)}
	}
	err := cmd.Wait()
	o := output{stdout.String(), stderr.String()}
	switch {
	case err == nil:
		return o, nil
	case ctx.Err() != nil:
		return o, fmt.Errorf("%s did not answer in time: %w", command, ctx.Err())
	case len(o.sentences()) > 0:
		return o, errors.New(strings.Join(o.sentences(), "; "))
	default:
		return o, fmt.Errorf("%s ended with %w and not a word", command, err)
	}
}
