// Package launcher does on a node what a step of a translated pipeline says (kfp.Step): it finds the inputs, runs the program as the
// executors of Kubeflow Pipelines are run, and keeps the outputs.
//
// The steps of a run share a folder:
//
//	<folder>/<deployment>/<orchestrator>/<pipeline>/<run>/
//	    records/<task>/@<index>/record    what the step left; there once it has succeeded, or was skipped
//	    artifacts/<task>/@<index>/<name>  its artifacts, where the pipeline does not want them elsewhere
//	    workspace                         for the pipeline's own use
//	    created                           its time is that of the run's first step
//	<folder>/environments/<digest>        a virtual environment for each set of packages that lightweight components ask for
//
// Of a loop whose items are known only when the pipeline runs, a step lists the instances in its record; the steps in the loop are
// native arrays, and find by their place in the list which instance they are. Their records are by the instance's index.
//
// A record is written whole, as the last thing, and removed as the first; so what a step finds is what a step before it has
// left by succeeding. The package must not decide what runs when: that is the gateway's, by the edges of the workflow.
package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/kfp"
)

// outputLimit is how much of its parameters a step leaves as the job's outputs, where people see them.
const outputLimit = 48 << 10

// launch is the work on one step.
type launch struct {
	step        *kfp.Step
	expressions *kfp.Expressions
	// run is the folder of the run's steps, shared the one above all.
	run, shared string
	// index of the instance.
	index []int32
	// lists are those of loops' instances that have been read.
	lists map[string]list
	// env is the environment as the program finds it.
	env    map[string]string
	stdout io.Writer
	stderr io.Writer
}

// Run does the step whose text comes from stdin, in the environment of its job, and returns the exit code: the program's own,
// kfp.ExitSkipped when a condition does not hold, 1 when the step cannot be done, which is told on stderr.
func Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) int {
	code, err := run(ctx, stdin, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "dagbridge: %v\n", err)
		return 1
	}
	return code
}

func run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	l, err := open(stdin)
	if err != nil {
		return 0, err
	}
	l.stdout, l.stderr = stdout, stderr
	if err := os.RemoveAll(l.recordFile(l.step.Task, l.index)); err != nil {
		return 0, err
	}
	if l.step.Listing != nil {
		return 0, l.listing()
	}
	x, err := l.inputs()
	if err != nil {
		return 0, err
	}
	switch {
	case l.step.Condition != "":
		return l.condition(x)
	case l.step.Importer != nil:
		return 0, l.imported(x)
	}
	return l.program(ctx, x)
}

// open reads the step, and where the job runs.
func open(stdin io.Reader) (*launch, error) {
	text, err := io.ReadAll(stdin)
	if err != nil {
		return nil, err
	}
	l := &launch{env: map[string]string{}, lists: map[string]list{}}
	if l.step, err = kfp.ParseStep(text); err != nil {
		return nil, err
	}
	if l.expressions, err = kfp.NewExpressions(); err != nil {
		return nil, err
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		l.env[name] = value
	}
	if l.shared = l.env[translators.PipelinesVariable]; !filepath.IsAbs(l.shared) {
		return nil, errors.New(translators.PipelinesVariable + " names no folder: this runs in jobs of a gateway's only")
	}
	for _, number := range strings.Split(l.env["DAGBRIDGE_MAP_INDEX"], ",") {
		var n int32
		if number == "" {
			continue
		}
		if _, err := fmt.Sscan(number, &n); err != nil {
			return nil, fmt.Errorf("DAGBRIDGE_MAP_INDEX is %q: %w", l.env["DAGBRIDGE_MAP_INDEX"], err)
		}
		l.index = append(l.index, n)
	}
	parts := []string{l.shared}
	for _, part := range append(append([]string{}, l.step.Run...), l.env["DAGBRIDGE_RUN"]) {
		parts = append(parts, folderName(part))
	}
	l.run = filepath.Join(parts...)
	if l.step.Instances != "" && l.step.Listing == nil {
		if err := l.find(); err != nil {
			return nil, err
		}
	}
	return l, os.MkdirAll(l.run, 0o700)
}

// created is when the run's first step started.
func (l *launch) created() (string, error) {
	name := filepath.Join(l.run, "created")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = file.Close()
	} else if errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	return info.ModTime().UTC().Format(time.RFC3339), nil
}

// condition judges one. What the expression language cannot do fails the step.
func (l *launch) condition(x *kfp.Execution) (int, error) {
	holds, err := l.expressions.Condition(l.step.Condition, x.Parameters)
	if err != nil {
		return 0, fmt.Errorf("the condition %s: %w", l.step.Condition, err)
	}
	fmt.Fprintf(l.stdout, "%s: %v\n", l.step.Condition, holds)
	record := &record{State: succeeded}
	if !holds {
		record.State = skipped
	}
	if err := l.write(record); err != nil {
		return 0, err
	}
	if !holds {
		return kfp.ExitSkipped, nil
	}
	return 0, nil
}

// imported leaves an artifact that is there already.
func (l *launch) imported(x *kfp.Execution) error {
	uri, err := x.Text(l.step.Importer.URI)
	if err != nil {
		return err
	}
	metadata := l.step.Importer.Metadata
	if len(metadata) > 0 {
		if metadata, err = texts(metadata, x.Text); err != nil {
			return err
		}
	}
	record := &record{State: succeeded, Artifacts: map[string][]kfp.Artifact{}}
	for name := range l.step.Outputs.Artifacts {
		record.Artifacts[name] = []kfp.Artifact{{Name: name, Type: l.step.Importer.Type, URI: uri, Metadata: metadata}}
	}
	return l.write(record)
}

// texts replaces placeholders in the texts of a JSON value.
func texts(value json.RawMessage, replace func(string) (string, error)) (json.RawMessage, error) {
	var native any
	if err := json.Unmarshal(value, &native); err != nil {
		return nil, err
	}
	var failed error
	var walk func(any) any
	walk = func(value any) any {
		switch value := value.(type) {
		case string:
			text, err := replace(value)
			failed = errors.Join(failed, err)
			return text
		case []any:
			for i := range value {
				value[i] = walk(value[i])
			}
		case map[string]any:
			for key := range value {
				value[key] = walk(value[key])
			}
		}
		return value
	}
	native = walk(native)
	if failed != nil {
		return nil, failed
	}
	return kfp.JSON(native)
}
