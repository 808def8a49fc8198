package slurm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processes runs commands on the gateway's machine. A gateway that is root becomes another user by itself, any other by sudo.
type processes struct {
	// path is the folder of the commands; "" when they are found in PATH.
	path     string
	accounts *accounts
	// root: the gateway is.
	root bool
}

func (p *processes) close() error { return nil }

// killDelay is how long a command that is told to end may take before it is killed, and then before it is left to itself: one
// that sudo runs is not the gateway's to kill.
const killDelay = time.Second

func (p *processes) run(ctx context.Context, c command) (output, error) {
	cmd, err := p.command(ctx, c)
	if err != nil {
		return output{}, notStarted("%s does not run: %w", c.name, err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return output{}, notStarted("%s does not run: %w", c.name, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the state tells
		if stdin, ok := cmd.Stdin.(*os.File); ok {
			_ = stdin.Close()
		}
	}()
	select {
	case <-ended:
	case <-after(ctx, 3*killDelay):
		return output{}, fmt.Errorf("%s did not answer in time: %w", c.name, ctx.Err())
	}
	if ctx.Err() != nil && cmd.ProcessState.ExitCode() != 0 {
		return output{}, fmt.Errorf("%s did not answer in time: %w", c.name, ctx.Err())
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, nil
}

// after is closed when a context has been over for so long.
func after(ctx context.Context, delay time.Duration) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(delay, func() { close(over) }) })
	return over
}

func (p *processes) command(ctx context.Context, c command) (*exec.Cmd, error) {
	name, err := exec.LookPath(filepath.Join(p.path, c.name))
	if err != nil {
		return nil, err
	}
	environment := slices.Clone(c.environment)
	if conf := os.Getenv("SLURM_CONF"); conf != "" {
		environment = append(environment, "SLURM_CONF="+conf)
	}
	argv := append([]string{name}, c.arguments...)
	var credential *syscall.Credential
	switch {
	case c.user == "":
	case p.root:
		if credential, err = p.credential(ctx, c.user); err != nil {
			return nil, err
		}
	default:
		argv = append(c.alone(environment), argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.WaitDelay = environment, killDelay
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if credential != nil {
		// the gateway's own folder may be closed to the user
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: credential}
	}
	if c.stdin != "" {
		cmd.Stdin, err = memory(c.stdin)
	}
	return cmd, err
}

// memory is a file of a text. From a pipe a command would take half a text for the whole if the gateway were killed meanwhile.
func memory(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "stdin")
	if _, err = file.WriteString(text); err == nil {
		_, err = file.Seek(0, 0)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func (p *processes) credential(ctx context.Context, user string) (*syscall.Credential, error) {
	a, err := p.accounts.of(ctx, user)
	if err != nil {
		return nil, err
	}
	c := &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.groups[0])}
	for _, group := range a.groups {
		c.Groups = append(c.Groups, uint32(group))
	}
	return c, nil
}
