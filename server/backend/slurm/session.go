package slurm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
)

// run runs a command in a session. Whatever hangs meanwhile, it returns when the context is over; the session then goes on
// until the command, which is told to end, or the connection does.
func (l *login) run(ctx context.Context, c command) (output, error) {
	on, err := l.connected(ctx)
	if err != nil {
		return output{}, errNotStarted{err}
	}
	x := &exchange{connection: on, command: c, path: l.Path, ended: make(chan struct{})}
	go x.run(ctx)
	select {
	case <-x.ended:
		return x.output, x.err
	case <-ctx.Done():
	}
	if x.begun.CompareAndSwap(false, true) { // it never will then
		return output{}, notStarted("%s opens no session in time: %w", l.address(), ctx.Err())
	}
	go x.end()
	return output{}, fmt.Errorf("%s on %s did not answer in time: %w", c.name, l.address(), ctx.Err())
}

// exchange is one command's session.
type exchange struct {
	*connection
	command command
	path    string
	// begun is set by who is first: the session when it runs the command, or its caller when there is no more time to.
	begun   atomic.Bool
	session *ssh.Session
	// output and err are there once it has ended.
	output output
	err    error
	ended  chan struct{}
}

// run opens the session and hears the command to its end.
func (x *exchange) run(ctx context.Context) {
	defer close(x.ended)
	session, done, err := x.open(ctx)
	if err != nil {
		x.err = errNotStarted{err}
		return
	}
	defer done()
	defer func() { _ = session.Close() }()
	x.session = session
	if x.begun.CompareAndSwap(false, true) {
		x.output, x.err = x.converse()
	}
}

// end tells the command to end, and hears no more of it.
func (x *exchange) end() {
	_ = x.session.Signal(ssh.SIGTERM)
	_ = x.session.Close()
}

func (x *exchange) converse() (output, error) {
	mark := rand.Text()
	var stdout, stderr bytes.Buffer
	x.session.Stdout, x.session.Stderr = &stdout, &stderr
	if x.command.stdin != "" {
		x.session.Stdin = strings.NewReader(x.command.stdin + mark)
	}
	err := x.session.Run(remoteLine(x.command, x.path, mark))
	var exit *ssh.ExitError
	status := 0
	switch {
	case errors.As(err, &exit):
		status = exit.ExitStatus()
	case err != nil:
		return output{}, fmt.Errorf("the answer of %s on %s was cut: %w", x.command.name, x.address, err)
	}
	return hear(stdout.String(), stderr.String(), mark, status)
}

// hear is what a command has answered, if all of it has come: a server may say how a command ended before it has sent all that
// the command printed, and half of a listing looks like a whole one.
func hear(stdout, stderr, mark string, status int) (output, error) {
	out, begun, ended := between(stdout, mark)
	errs, _, errsEnded := between(stderr, mark)
	switch {
	case ended && errsEnded:
		return output{out, errs, status}, nil
	case !begun && status != 0:
		return output{}, fmt.Errorf("the login shell ran no command and ended with status %d: %.300s", status, strings.TrimSpace(stderr+stdout))
	default:
		return output{}, errors.New("the answer was cut")
	}
}
