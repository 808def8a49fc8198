package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Exit codes of a program that could not be started, as shells have them.
const (
	exitNotFound   = 127
	exitNotStarted = 126
)

// begin writes the program's files and starts it, in a process group of its own. It dies with this process.
func (s *spec) begin(f folder) (pid int, failure *end) {
	files := make([]*os.File, 3)
	for i, path := range []string{os.DevNull, f.stdout(), f.stderr()} {
		flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
		if i == 0 {
			flags = os.O_RDONLY
		}
		file, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			return 0, notStarted(err, "its files cannot be opened")
		}
		defer func() { _ = file.Close() }()
		files[i] = file
	}
	defer func() {
		if failure != nil { // whoever reads the log looks for the reason there
			_, _ = fmt.Fprintln(files[2], "dagbridge:", failure.Message)
		}
	}()
	if err := s.write(f); err != nil {
		return 0, notStarted(err, "its files cannot be written")
	}
	if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
		return 0, &end{
			State: dagbridgev1.Job_FAILED, Reason: "WORKING_DIRECTORY",
			Message: fmt.Sprintf("the working directory %s is not there: make it, or name another", s.Dir),
		}
	}
	argv := s.command(f)
	path, err := s.lookPath(argv[0])
	if err != nil {
		return 0, notStarted(err, "the program cannot be started")
	}
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: s.Dir, Env: s.Env, Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, notStarted(&fs.PathError{Op: "exec", Path: argv[0], Err: err}, "the program cannot be started")
	}
	return pid, nil
}

// write leaves what the program reads.
func (s *spec) write(f folder) error {
	errs := []error{os.WriteFile(f.inputs(), []byte(s.Inputs), 0o600)}
	if s.Prologue != "" {
		errs = append(errs, os.WriteFile(f.prologue(), []byte(s.Prologue), 0o600))
	}
	if s.Script != "" {
		errs = append(errs, os.WriteFile(f.script(), []byte(s.Script), 0o600))
	}
	return errors.Join(errs...)
}

// lookPath finds a program by the PATH that it will have, not by this process's.
func (s *spec) lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, entry := range s.Env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	return exec.LookPath(name)
}

func notStarted(err error, what string) *end {
	code := int32(exitNotStarted)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		code = exitNotFound
	}
	return &end{State: dagbridgev1.Job_FAILED, Reason: "NOT_STARTED", ExitCode: &code, Message: fmt.Sprintf("%s: %v", what, err)}
}
