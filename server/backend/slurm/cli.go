package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// cli is the way through Slurm's own commands. Looks are made as the user that the runner is, orders as the jobs' user.
type cli struct {
	runner
	timeout time.Duration
	// self is whom the runner is.
	self string
	// sees: it was found to be told of everybody's jobs.
	sees atomic.Bool
}

// searchPath is where commands find others.
const searchPath = "PATH=/usr/local/bin:/usr/bin:/bin"

func (c *cli) server() string { return "" }

// look runs a command that looks. Times come as epoch seconds, and lists of array indices in full.
func (c *cli) look(ctx context.Context, timeout time.Duration, name string, arguments ...string) (output, error) {
	environment := []string{searchPath, "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"}
	return c.call(ctx, timeout, command{environment: environment, name: name, arguments: arguments})
}

// order runs a command that changes a user's jobs.
func (c *cli) order(ctx context.Context, user, name string, arguments ...string) (output, error) {
	return c.call(ctx, c.timeout, command{user: user, environment: []string{searchPath, "LC_ALL=C"}, name: name, arguments: arguments})
}

// call runs a command. An error is what the command said.
func (c *cli) call(ctx context.Context, timeout time.Duration, cmd command) (output, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if cmd.user == c.self {
		cmd.user = ""
	}
	o, err := c.run(ctx, cmd)
	said := strings.Join(o.sentences(), "; ")
	switch {
	case err != nil:
		return o, err
	case o.status == 0:
		return o, nil
	case o.notStarted() && cmd.user != "":
		return o, notStarted("%s does not run as %s: %s; the gateway has to be root, or a sudoer who may run /usr/bin/env as %[2]s without a password", cmd.name, cmd.user, said)
	case o.notStarted():
		return o, notStarted("%s does not run: %s", cmd.name, said)
	case said != "":
		return o, errors.New(said)
	default:
		return o, fmt.Errorf("%s ended with status %d and not a word", cmd.name, o.status)
	}
}
