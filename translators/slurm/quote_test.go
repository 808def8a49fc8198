package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// bytesWithoutNUL are what an argument can hold; those that mean something to a shell come often.
func bytesWithoutNUL() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.OneOf(
			rapid.SampledFrom([]string{"'", `"`, `\`, "$(x)", "`", "\r\n", "\n", "\r", "\\r", "#SBATCH -n 9\n", "$'", "!", "~", "*", " ", "%s", "é", "\u2028"}),
			rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 4), func(b []byte) string { return string(b) }),
		)
		return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "")
	})
}

func TestQuotedBytesReachTheProcess(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"LC_ALL=C", "LC_ALL=C.UTF-8"} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				words := rapid.SliceOfN(bytesWithoutNUL(), 1, 5).Draw(t, "words")
				line := "printf '%s\\0'"
				for _, word := range words {
					quoted := slurm.Quote(word)
					require.NotContains(t, quoted, "\r", "sbatch refuses CR LF")
					line += " " + quoted
				}
				cmd := exec.Command("bash", "-c", line)
				cmd.Env = []string{locale}
				out, err := cmd.Output()
				require.NoError(t, err)
				require.Equal(t, strings.Join(words, "\x00")+"\x00", string(out))
			})
		})
	}
}

func TestArgumentsArriveByteForByte(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	many := []string{"printf", `%s\0`}
	for range 5000 {
		many = append(many, strings.Repeat("f", 60))
	}
	for name, argv := range map[string][]string{
		"what others have tripped over": {"printf", `%s\0`, `{"a":"b"}`, "line1\nline2", "\u2728", "--x", "{{item}}", "", " ", "%F0%9F", "-n", "A=b"},
		"one argument of 128 KiB":       {"printf", `%s\0`, strings.Repeat("'", 131071)},
		"300 KB of arguments":           many,
	} {
		got := n.run(submission(command(argv...)), "SLURM_RESTART_COUNT=1")
		require.Zero(t, got.code, "%s: %s", name, got.stderr)
		require.Equal(t, strings.Join(argv[2:], "\x00")+"\x00", got.stdout, name)
		n = newNode(t)
	}
	t.Run("a program with = in its name", func(t *testing.T) {
		n := newNode(t)
		program := filepath.Join(t.TempDir(), "year=2024")
		writeProgram(t, program, "#!/bin/sh\necho \"$X\" \"$@\"\n")
		task := command(program, "a b", "c")
		task.Env = map[string]string{"X": "x"}
		require.Equal(t, "x a b c\n", n.run(submission(task)).stdout)
	})
}

func TestEverythingOfTheUsersArrivesByteForByte(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string { return strings.ToValidUTF8(bytesWithoutNUL().Draw(t, "bytes"), "?") })
		task := command("sh", "-c", `cat "$DAGBRIDGE_INPUTS"; printf '%s\0' "$@" "$V"`, "sh", text.Draw(rt, "argument"))
		task.Env = map[string]string{"V": text.Draw(rt, "value")}
		task.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{Argv: []string{text.Draw(rt, "item's argument")}}}}
		s := submission(task)
		s.Instances = []translators.Instance{{Position: 0, JobID: "j0", MapIndex: []int32{0}, Item: task.Array.Items[0]}}
		require.NoError(rt, os.RemoveAll(slurm.Dir(n.site, jobID)))
		got := n.run(s, "SLURM_ARRAY_JOB_ID=9", "SLURM_ARRAY_TASK_ID=0")
		require.Zero(rt, got.code, got.stderr)
		want := []string{task.Command.Argv[4], task.Array.Items[0].Argv[0], task.Env["V"], ""}
		require.Equal(rt, "{}"+strings.Join(want, "\x00"), got.stdout)
	})
}

func TestAScriptArrivesByteForByteAndRunsByItsInterpreter(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	rapid.Check(t, func(rt *rapid.T) {
		// cat as the interpreter shows what it was given.
		text := "#!/bin/cat\n" + strings.ToValidUTF8(bytesWithoutNUL().Draw(rt, "text"), "?")
		require.NoError(rt, os.RemoveAll(slurm.Dir(n.site, jobID)))
		got := n.run(submission(&dagbridgev1.Task{Script: &dagbridgev1.Script{Text: text}}))
		require.Equal(rt, end{0, text, ""}, got)
	})
	for name, c := range map[string]struct{ text, stdout string }{
		"no interpreter":          {"echo ${BASH_VERSION:+bash}\n", "bash\n"},
		"blank lines before it":   {"\n \n#!/usr/bin/awk -f\nBEGIN { print 1 }\n", "1\n"},
		"a byte order mark":       {"\ufeff#!/bin/bash\necho ok\n", "ok\n"},
		"one argument, as it is":  {"#! /usr/bin/env -S FOO=bar sh\necho $FOO\n", "bar\n"},
		"#SBATCH lines are inert": {"#!/bin/sh\n#SBATCH --job-name=other\necho ran\n", "ran\n"},
		"carriage returns inside": {"#!/bin/sh\nprintf 'a\r\nb'\n", "a\r\nb"},
		"no newline at the end":   {"echo ok", "ok\n"},
	} {
		n := newNode(t)
		got := n.run(submission(&dagbridgev1.Task{Script: &dagbridgev1.Script{Text: c.text}}))
		require.Equal(t, end{0, c.stdout, ""}, got, name)
		require.NoFileExists(t, slurm.Dir(n.site, jobID)+"/1.script", name)
	}
}
