package slurmtest_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
	"github.com/dagbridge/dagbridge/translators"
)

// containers runs tasks in the image of one runtime.
type containers struct {
	*bench
	image string
}

// TestContainers runs what a program may rely on inside of real containers: of an OCI bundle, by Slurm's --container and runc,
// and by charliecloud. The image has busybox alone: neither bash nor coreutils nor Slurm.
func TestContainers(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	for _, name := range []string{"REST", "CLI"} {
		owner := slurmtest.User
		if name == "CLI" {
			owner = "root"
		}
		for runtime, image := range map[string]string{"charliecloud": c.Image(t, owner), "oci": c.Bundle(t, owner, true)} {
			t.Run(name+" "+runtime, func(t *testing.T) {
				t.Parallel()
				s := &containers{newBench(t, c, ways[name], func(o *slurm.Options) { o.Container = runtime }), image}
				for _, rule := range []struct {
					name string
					test func(*testing.T, *containers)
				}{
					{"the image is what the program sees", insideTheImage},
					{"the program is known by its exit code", exitsInside},
					{"a script is the image's interpreter's", scriptInside},
					{"the image's arguments are the container's", commandInside},
					{"inputs come in and outputs go out", outputsInside},
					{"arguments and environment are handed in byte for byte", bytesInside},
					{"each instance has its own arguments and environment", arrayInside},
					{"the working directory is the same inside", folderInside},
					{"a cancel ends the program", cancelInside},
				} {
					t.Run(rule.name, func(t *testing.T) {
						t.Parallel()
						rule.test(t, s)
					})
				}
			})
		}
	}
	t.Run("a bundle that does not mount the job's folder", func(t *testing.T) {
		t.Parallel()
		s := &containers{newBench(t, c, ways["CLI"], func(o *slurm.Options) { o.Container = "oci" }), c.Bundle(t, "root", false)}
		known, o := s.run(t, task("true"))
		require.Equal(t, dagbridgev1.Job_FAILED, o.State)
		require.Contains(t, s.log(t, known, -1, "stderr"), "the config.json of the bundle mounts no "+s.options.WorkDir)
	})
}

// inside puts a task into the image.
func (s *containers) inside(task *dagbridgev1.Task) *dagbridgev1.Task {
	if task.Container == nil {
		task.Container = &dagbridgev1.Container{}
	}
	task.Container.Image = s.image
	return task
}

// run runs a task to its end.
func (s *containers) run(t *testing.T, task *dagbridgev1.Task) (backend.Known, backend.Observation) {
	t.Helper()
	known := s.submit(t, backendtest.Submission(t, s.inside(task)))
	return known, s.await(t, known, "its end", func(o backend.Observation) bool {
		return o.State == dagbridgev1.Job_SUCCEEDED || o.State == dagbridgev1.Job_FAILED || o.State == dagbridgev1.Job_CANCELLED
	})
}

func (s *containers) log(t *testing.T, known backend.Known, position int, stream string) string {
	t.Helper()
	file, _, err := s.backend.Log(t.Context(), known.Ref, known.Job, position, stream, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	return string(text)
}

// prints runs a task that succeeds and returns what it wrote.
func (s *containers) prints(t *testing.T, task *dagbridgev1.Task) string {
	t.Helper()
	known, o := s.run(t, task)
	if o.State != dagbridgev1.Job_SUCCEEDED {
		require.Fail(t, "it has not succeeded", "%+v\n%s", o, s.log(t, known, -1, "stderr"))
	}
	return s.log(t, known, -1, "stdout")
}

func insideTheImage(t *testing.T, s *containers) {
	require.Equal(t, "busybox\n", s.prints(t, task("cat", "/etc/image")))
}

func exitsInside(t *testing.T, s *containers) {
	for want, argv := range map[int32][]string{3: {"sh", "-c", "exit 3"}, 255: {"sh", "-c", "exit 255"}} {
		_, o := s.run(t, task(argv...))
		require.Equal(t, dagbridgev1.Job_FAILED, o.State)
		require.Equal(t, want, *o.ExitCode)
	}
	_, o := s.run(t, task("no-such-program"))
	require.Equal(t, dagbridgev1.Job_FAILED, o.State)
}

func scriptInside(t *testing.T, s *containers) {
	text := "#!/bin/sh\necho \"$(cat /etc/image) it's $1$0\" | sed 's,/.*/,,'\n"
	script := task()
	script.Command, script.Script = nil, &dagbridgev1.Script{Text: text}
	require.Equal(t, "busybox it's 1.script\n", s.prints(t, script))
}

func commandInside(t *testing.T, s *containers) {
	alone := task()
	alone.Command, alone.Container = nil, &dagbridgev1.Container{Command: []string{"echo", "a b"}, Args: []string{"c"}}
	require.Equal(t, "a b c\n", s.prints(t, alone))
}

func outputsInside(t *testing.T, s *containers) {
	sub := backendtest.Submission(t, s.inside(task("sh", "-c", `cp "$DAGBRIDGE_INPUTS" "$DAGBRIDGE_OUTPUT"`)))
	sub.Inputs = []translators.Input{{Task: "before", JSON: `{"auc":3.0,"text":"é \"q\" \\"}`}}
	known := s.submit(t, sub)
	s.await(t, known, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
	outputs, err := s.backend.Outputs(t.Context(), known.Ref, known.Job, -1)
	require.NoError(t, err)
	require.Equal(t, `{"before":{"auc":3.0,"text":"é \"q\" \\"}}`, string(outputs))
}

// awkward are texts that a runtime might read as something else.
var awkward = []string{
	`{"a":"b"}`, "line1\nline2", "\u2728", "--x", "-", "", " ", "%s%d", "it's", `"double"`, "$(id)", "${HOME}", `back\slash\n`, "\t", "a\rb", "trailing\n",
	"*", "~", "a;b|c&d>e<f", "a,b:c=d", "\x01\x1b[0m",
}

func bytesInside(t *testing.T, s *containers) {
	var got []string
	show := `for a in "$@"; do printf %s "$a" | od -An -v -tx1 | tr -d ' \n'; echo; done`
	for line := range strings.Lines(s.prints(t, task(append([]string{"sh", "-c", show, "sh"}, awkward...)...))) {
		text, err := hex.DecodeString(strings.TrimSuffix(line, "\n"))
		require.NoError(t, err)
		got = append(got, string(text))
	}
	require.Equal(t, awkward, got)

	odd := task("cat", "/proc/self/environ")
	odd.Env = map[string]string{"lower": "2"}
	if s.options.Container != "oci" { // where sh starts the program
		odd.Env["with.dot"] = "1"
	}
	for i, text := range awkward {
		odd.Env[fmt.Sprintf("ODD_%d", i)] = text
	}
	known, o := s.run(t, odd)
	require.Equal(t, dagbridgev1.Job_SUCCEEDED, o.State)
	env := map[string]string{}
	for entry := range strings.SplitSeq(s.log(t, known, -1, "stdout"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	for name, value := range odd.Env {
		require.Equal(t, value, env[name], name)
	}
	require.Equal(t, known.Job.GetId(), env["DAGBRIDGE_JOB_ID"])
	require.NotContains(t, env, "DAGBRIDGE_GATEWAY_SECRET")
}

func arrayInside(t *testing.T, s *containers) {
	array := task("sh", "-c", `echo "$WHICH $1 $(cat /etc/image)"`, "sh")
	array.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{Argv: []string{"x"}, Env: map[string]string{"WHICH": "first"}}, {Argv: []string{"y z"}}}}
	array.Env = map[string]string{"WHICH": "any"}
	sub := backendtest.Submission(t, s.inside(array))
	for i, item := range array.Array.Items {
		sub.Instances = append(sub.Instances, translators.Instance{Position: i, JobID: sub.Job.Id, MapIndex: []int32{int32(i)}, Item: item})
	}
	known := s.submit(t, sub)
	for i, want := range []string{"first x busybox\n", "any y z busybox\n"} {
		s.watcher.Await(t, known.Ref, i, patience, "SUCCEEDED", is(dagbridgev1.Job_SUCCEEDED))
		require.Equal(t, want, s.log(t, known, i, "stdout"))
	}
}

func folderInside(t *testing.T, s *containers) {
	pwd := task("sh", "-c", `pwd; echo here >file`)
	pwd.WorkingDirectory = s.WorkDir(t)
	require.NoError(t, os.Chmod(pwd.WorkingDirectory, 0o777))
	require.Equal(t, pwd.WorkingDirectory+"\n", s.prints(t, pwd))
	require.FileExists(t, pwd.WorkingDirectory+"/file")
}

func cancelInside(t *testing.T, s *containers) {
	known := s.submit(t, backendtest.Submission(t, s.inside(task("sh", "-c", `trap '' TERM; sleep 3; echo up; while :; do sleep 1; done`))))
	s.await(t, known, "RUNNING", is(dagbridgev1.Job_RUNNING))
	require.Eventually(t, func() bool { return isUp(t, s, known) }, patience, 200*time.Millisecond)
	require.Equal(t, []error{nil}, s.backend.Cancel(t.Context(), []backend.Known{known}))
	s.await(t, known, "CANCELLED", is(dagbridgev1.Job_CANCELLED))
	exit := filepath.Join(filepath.Dir(s.backend.Logs(known.Job, known.Ref.Token, -1).Stdout), "1.exit")
	if text, err := os.ReadFile(exit); err == nil { // else it was killed with the program
		require.NotContains(t, string(text), "exit=0\n", "what was cancelled has not succeeded")
	}
	require.Eventually(t, func() bool { return !processOf(t, known.Job.GetId()) }, patience, 200*time.Millisecond, "nothing of it is left on the node")
}

// isUp: the program has written its first line.
func isUp(t *testing.T, s *containers, known backend.Known) bool {
	file, _, err := s.backend.Log(t.Context(), known.Ref, known.Job, -1, "stdout", 0)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(file)
	return err == nil && strings.Contains(string(text), "up\n")
}

// processOf says whether a process of a job lives on this machine, which is every node.
func processOf(t *testing.T, jobID string) bool {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range environments {
		text, err := os.ReadFile(file) // gone meanwhile, or another's
		if err == nil && strings.Contains(string(text), "DAGBRIDGE_JOB_ID="+jobID+"\x00") {
			return true
		}
	}
	return false
}
