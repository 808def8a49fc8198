package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/program"
	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	"github.com/dagbridge/dagbridge/server/backend/slurm"
)

// gate is a way to Slurm on which the orders of a kind wait until it is opened.
type gate struct {
	options slurm.Options
	// asked and done are files with a line for each order that came, and that Slurm has answered.
	asked, done string
	opened      string
}

// order is a kind of orders: what tells them, over REST and on a command line.
type order struct{ rest, cli string }

var (
	release = order{`"hold"`, "release*"}
	rewrite = order{`"dependency"`, "*Dependency=*"}
)

func newGate(t *testing.T, c *slurmtest.Cluster, way string, what order) *gate {
	t.Helper()
	dir := t.TempDir()
	g := &gate{asked: filepath.Join(dir, "asked"), done: filepath.Join(dir, "done"), opened: filepath.Join(dir, "opened")}
	if way == "cli" {
		g.options = slurm.Options{CLI: &slurm.CLI{Path: g.commands(t, c, what)}}
		return g
	}
	p := newProxy(t, c.URL)
	p.gate = func(order string, pass func()) {
		if !strings.Contains(order, what.rest) {
			pass()
			return
		}
		g.note(g.asked)
		poll(patience, func() bool { return g.count(t, g.opened) > 0 || p.ended.Err() != nil })
		pass()
		g.note(g.done)
	}
	g.options = slurm.Options{REST: &slurm.REST{URL: p.URL, User: slurmtest.User, TokenFile: c.TokenFile(t)}}
	return g
}

// commands is a folder of Slurm's commands of which scontrol is a gate.
func (g *gate) commands(t *testing.T, c *slurmtest.Cluster, what order) string {
	t.Helper()
	dir := t.TempDir()
	commands, err := os.ReadDir(c.Bin())
	require.NoError(t, err)
	for _, command := range commands {
		if command.Name() != "scontrol" {
			require.NoError(t, os.Symlink(filepath.Join(c.Bin(), command.Name()), filepath.Join(dir, command.Name())))
		}
	}
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in
%s) ;;
*) exec %[2]s "$@" ;;
esac
echo >>%[3]s
until [ -e %[4]s ]; do sleep 0.05; done
%[2]s "$@"
code=$?
echo >>%[5]s
exit $code
`, what.cli, filepath.Join(c.Bin(), "scontrol"), g.asked, g.opened, g.done)
	require.NoError(t, program.Write(filepath.Join(dir, "scontrol"), []byte(script)))
	return dir
}

// note adds a line to a file.
func (g *gate) note(path string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, _ = file.WriteString("\n") // whoever waits for it tells
		_ = file.Close()
	}
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(g.opened, []byte("\n"), 0o644))
}

// count is how many lines a file has.
func (g *gate) count(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	return strings.Count(string(text), "\n")
}

// await waits until a file has a line.
func (g *gate) await(t *testing.T, path string) {
	t.Helper()
	require.True(t, poll(patience, func() bool { return g.count(t, path) > 0 }), "nothing comes to the gate, or through it")
}
