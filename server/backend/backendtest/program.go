package backendtest

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// awkward are texts that shells, templates, YAML and JSON have tripped over.
var awkward = []string{
	`{"a":"b"}`, "line1\nline2", "\u2728", "--x", "-", "{{item}}", "", " ", "%F0%9F", "%s%d", "it's", `"double"`, "$(id)", "`id`", "${HOME}", "$$",
	`back\slash\n`, `\`, "\t tab", "a\rb", "trailing\n", "\n", "*", "?[a-z]", "~", "!event", "#no comment", "a;b|c&d>e<f", "EOF", "é", "\x01\x1b[0m", "'\\''",
}

// arguments are shown as hex by sh, od and nothing else.
func arguments(t *testing.T, s *suite) {
	argv := append([]string{"sh", "-c", `for a in "$@"; do printf %s "$a" | od -An -v -tx1 | tr -d ' \n'; echo; done`, "sh"}, awkward...)
	a := s.run(t, command(argv...))
	a.end(dagbridgev1.Job_SUCCEEDED)
	var got []string
	for line := range strings.Lines(a.stdout(-1)) {
		text, err := hex.DecodeString(strings.TrimSuffix(line, "\n"))
		require.NoError(t, err)
		got = append(got, string(text))
	}
	require.Equal(t, awkward, got)
}

func manyArguments(t *testing.T, s *suite) {
	argv := []string{"sh", "-c", `echo $#; printf '%s\n' "$@" | md5sum`, "sh"}
	var lines strings.Builder
	for i := range 5000 {
		argv = append(argv, fmt.Sprintf("file-%055d", i))
		fmt.Fprintln(&lines, argv[len(argv)-1])
	}
	many := s.run(t, command(argv...))
	same := s.run(t, command("sh", "-c", `echo 5000; for i in $(seq 0 4999); do printf 'file-%055d\n' $i; done | md5sum`))
	many.end(dagbridgev1.Job_SUCCEEDED)
	same.end(dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, same.stdout(-1), many.stdout(-1))
}

// environ of a job that ran `cat /proc/self/environ`: no shell reads it on the way.
func (a *attempt) environ() map[string]string {
	a.t.Helper()
	env := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(a.stdout(-1), "\x00"), "\x00") {
		name, value, ok := strings.Cut(entry, "=")
		require.True(a.t, ok, entry)
		env[name] = value
	}
	return env
}

func environment(t *testing.T, s *suite) {
	task := command("cat", "/proc/self/environ")
	task.Env = map[string]string{"EPOCHS": "3", "with.dot": "1", "with-dash": "2", "lower": "3", "_x": "4"}
	for i, text := range awkward {
		task.Env[fmt.Sprintf("AWKWARD_%d", i)] = text
	}
	a := s.run(t, task)
	a.end(dagbridgev1.Job_SUCCEEDED)
	env := a.environ()
	for name, value := range task.Env {
		got, ok := env[name]
		require.True(t, ok, "%s is set", name)
		require.Equal(t, value, got, name)
	}
}

func environmentClean(t *testing.T, s *suite) {
	a := s.run(t, command("cat", "/proc/self/environ"))
	a.end(dagbridgev1.Job_SUCCEEDED)
	env := a.environ()
	require.NotContains(t, env, "DAGBRIDGE_GATEWAY_SECRET")
	require.NotEmpty(t, env["PATH"])
}

func identity(t *testing.T, s *suite) {
	task := command("cat", "/proc/self/environ")
	task.Key = &dagbridgev1.TaskKey{Task: "for-loop-1/train: 50% ü", Run: "manual__2026-01-01T00:00:00+00:00", MapIndex: []int32{3, 1}}
	task.TryNumber = 2
	mapped, single := s.run(t, task), s.run(t, command("cat", "/proc/self/environ"))

	mapped.end(dagbridgev1.Job_SUCCEEDED)
	env := mapped.environ()
	require.Equal(t, mapped.Job.Id, env["DAGBRIDGE_JOB_ID"])
	require.Equal(t, "for-loop-1/train: 50% ü", env["DAGBRIDGE_TASK"])
	require.Equal(t, "manual__2026-01-01T00:00:00+00:00", env["DAGBRIDGE_RUN"])
	require.Equal(t, "3,1", env["DAGBRIDGE_MAP_INDEX"])
	require.Equal(t, "2", env["DAGBRIDGE_TRY"])
	require.NotEmpty(t, env["DAGBRIDGE_OUTPUT"])
	require.NotEmpty(t, env["DAGBRIDGE_INPUTS"])

	single.end(dagbridgev1.Job_SUCCEEDED)
	index, ok := single.environ()["DAGBRIDGE_MAP_INDEX"]
	require.True(t, ok)
	require.Empty(t, index, "not mapped")
}

func prologue(t *testing.T, s *suite) {
	task := command("sh", "-c", `echo "$FROM_PROLOGUE-$EPOCHS-$0"`, "it's $0")
	task.Prologue = "export FROM_PROLOGUE=\"loaded $EPOCHS\"\n# no line end after this"
	task.Env = map[string]string{"EPOCHS": "3"}
	a := s.run(t, task)
	a.end(dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, "loaded 3-3-it's $0\n", a.stdout(-1))
}

func (s *suite) prints(t *testing.T, want, text string) {
	t.Helper()
	a := s.run(t, script(text))
	a.end(dagbridgev1.Job_SUCCEEDED)
	require.Equal(t, want, a.stdout(-1))
}

func scriptBash(t *testing.T, s *suite) {
	s.prints(t, "bash: it's $x\n", `list=(a b); [[ ${#list[@]} == 2 ]] && echo "${BASH_VERSION:+bash}: it's \$x"`)
}

func scriptInterpreter(t *testing.T, s *suite) {
	s.prints(t, "awk 42\n", "#!/usr/bin/awk -f\nBEGIN { print \"awk\", 6 * 7 }\n")
	s.prints(t, "sh\n", "#!/bin/sh -u\necho sh\n")
}

func scriptBlankLines(t *testing.T, s *suite) {
	s.prints(t, "awk\n", "\n  \n\t\n#!/usr/bin/awk -f\nBEGIN { print \"awk\" }\n")
}

func scriptBOM(t *testing.T, s *suite) {
	s.prints(t, "awk\n", "\ufeff#!/usr/bin/awk -f\nBEGIN { print \"awk\" }\n")
}

func scriptCRLF(t *testing.T, s *suite) {
	_, faults := s.Backend.Render(s.submission(t, script("#!/bin/bash\r\necho x\r\n")))
	require.Len(t, faults, 1)
	require.Contains(t, faults[0].Field, "script")
	require.NotEmpty(t, faults[0].Description)
}
