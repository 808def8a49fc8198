package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dagbridge/dagbridge/translators/kfp"
)

// longestArgument is what the kernel takes for one.
const longestArgument = 128<<10 - 1

// program runs the step's, and keeps what it leaves.
func (l *launch) program(ctx context.Context, x *kfp.Execution) (int, error) {
	if err := l.places(x); err != nil {
		return 0, err
	}
	argv, err := x.Argv()
	if err != nil {
		return 0, err
	}
	for _, argument := range argv {
		if len(argument) > longestArgument {
			return 0, fmt.Errorf("one of its arguments has %d bytes, and the kernel takes %d: hand over large inputs as artifacts", len(argument), longestArgument)
		}
	}
	for name, text := range l.step.Env {
		if l.env[name], err = x.Text(text); err != nil {
			return 0, err
		}
	}
	if argv, err = l.environment(ctx, argv); err != nil {
		return 0, err
	}
	code, err := l.execute(argv)
	if err != nil || code != 0 {
		return code, err
	}
	r, err := l.collect(x)
	if err != nil {
		return 0, err
	}
	return 0, l.write(r)
}

// places makes the folders for what the program leaves, and leaves nothing of an earlier attempt in them.
func (l *launch) places(x *kfp.Execution) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	outputs := filepath.Join(here, "kfp-outputs-"+x.Job) // the instances of an array may share the folder
	x.OutputFile = filepath.Join(outputs, "output_metadata.json")
	x.OutputFiles = map[string]string{}
	for name := range l.step.Outputs.Parameters {
		x.OutputFiles[name] = filepath.Join(outputs, "parameters", folderName(name))
	}
	artifacts := l.place("artifacts", l.step.Task, l.index)
	if root := kfp.LocalPath(l.step.Root); filepath.IsAbs(root) && !strings.Contains(strings.TrimPrefix(l.step.Root, "file://"), "://") {
		below, err := filepath.Rel(l.shared, artifacts)
		if err != nil {
			return err
		}
		artifacts = filepath.Join(root, below)
	}
	x.OutputArtifacts = map[string]kfp.Artifact{}
	for name, kind := range l.step.Outputs.Artifacts {
		x.OutputArtifacts[name] = kfp.Artifact{Name: name, Type: kind, URI: filepath.Join(artifacts, folderName(name))}
	}
	return errors.Join(
		os.RemoveAll(outputs), os.RemoveAll(artifacts),
		os.MkdirAll(filepath.Join(outputs, "parameters"), 0o700), os.MkdirAll(artifacts, 0o700), os.MkdirAll(x.Workspace, 0o700),
	)
}

// execute runs a program to its end and returns its exit code, of one that a signal has ended 128 more than the signal. What ends the
// job ends the program as well: they are one process group.
func (l *launch) execute(argv []string) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	path, err := l.lookPath(argv[0])
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Env: l.environ(), Stdout: l.stdout, Stderr: l.stderr}
	err = cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return 0, err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return ended.ExitCode(), nil
}

func (l *launch) environ() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		list = append(list, name+"="+l.env[name])
	}
	return list
}

// lookPath finds a program by the PATH that it will have.
func (l *launch) lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, folder := range filepath.SplitList(l.env["PATH"]) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in %s, which stands in for the image %s", name, l.env["PATH"], l.step.Image)
}

// executorOutput is what an executor says of its outputs (ExecutorOutput).
type executorOutput struct {
	ParameterValues map[string]json.RawMessage `json:"parameterValues"`
	Artifacts       map[string]struct {
		Artifacts []kfp.Artifact `json:"artifacts"`
	} `json:"artifacts"`
}

// collect finds what the program has left. A parameter that it has not written is none; whoever needs it is told.
func (l *launch) collect(x *kfp.Execution) (*record, error) {
	r := &record{State: succeeded, Parameters: map[string]json.RawMessage{}, Artifacts: map[string][]kfp.Artifact{}}
	var said executorOutput
	text, err := os.ReadFile(x.OutputFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(text, &said); err != nil {
			return nil, fmt.Errorf("what the executor says of its outputs cannot be read: %w", err)
		}
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(l.step.Outputs.Parameters)) {
		kind := l.step.Outputs.Parameters[name]
		value, there := said.ParameterValues[name]
		var err error
		if there {
			value, err = kfp.Typed(kind, value)
		} else if text, readErr := os.ReadFile(x.OutputFiles[name]); readErr == nil {
			value, err = kfp.ReadParameter(kind, text)
		} else if !errors.Is(readErr, os.ErrNotExist) {
			err = readErr
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("its output %s %w", name, err))
		} else if len(value) > 0 {
			r.Parameters[name] = value
		}
	}
	for name, artifact := range x.OutputArtifacts {
		r.Artifacts[name] = []kfp.Artifact{artifact}
		if list := said.Artifacts[name].Artifacts; len(list) > 0 {
			r.Artifacts[name] = list
		}
	}
	return r, errors.Join(faults...)
}
