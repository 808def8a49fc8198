package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/program"
)

func init() { roles["counted"] = runCounted }

// calls of Slurm's commands, or of slurmrestd, and the bytes that came back.
type calls struct{ number, bytes float64 }

func (c calls) since(before calls) calls {
	return calls{c.number - before.number, c.bytes - before.bytes}
}

// countCommands makes a folder with Slurm's commands, each of which notes that it was called. The counter says how often so far.
func countCommands(b *testing.B, bin string) (folder string, counter func() calls) {
	b.Helper()
	folder = b.TempDir()
	log := filepath.Join(folder, "calls")
	self, err := os.Executable()
	require.NoError(b, err)
	commands, err := os.ReadDir(bin)
	require.NoError(b, err)
	for _, command := range commands {
		text := fmt.Sprintf("#!/bin/sh\nexec %s counted %s %s \"$@\"\n", self, log, filepath.Join(bin, command.Name()))
		require.NoError(b, program.Write(filepath.Join(folder, command.Name()), []byte(text)))
	}
	return folder, func() (all calls) {
		text, err := os.ReadFile(log)
		if !os.IsNotExist(err) {
			require.NoError(b, err)
		}
		for line := range strings.Lines(string(text)) {
			n, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(b, err)
			all.number, all.bytes = all.number+1, all.bytes+float64(n)
		}
		return all
	}
}

// runCounted runs a command, and notes how many bytes it prints.
func runCounted(args []string) error {
	printed := &written{to: os.Stdout}
	command := exec.Command(args[1], args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, printed, os.Stderr
	failed := command.Run()
	log, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(log, printed.bytes.Load()); err != nil {
		return err
	}
	if failed != nil {
		os.Exit(command.ProcessState.ExitCode())
	}
	return nil
}

// written counts what goes through it.
type written struct {
	to    io.Writer
	bytes atomic.Int64
}

func (w *written) Write(p []byte) (int, error) {
	w.bytes.Add(int64(len(p)))
	return w.to.Write(p)
}

// countREST is a proxy in front of slurmrestd; the counter says how often it was called so far.
func countREST(b *testing.B, slurmrestd string) (address string, counter func() calls) {
	b.Helper()
	to, err := url.Parse(slurmrestd)
	require.NoError(b, err)
	var number, bytes atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: clients}
	proxy.ModifyResponse = func(resp *http.Response) error {
		number.Add(1)
		resp.Body = &counted{resp.Body, &bytes}
		return nil
	}
	server := httptest.NewServer(proxy)
	b.Cleanup(server.Close)
	return server.URL, func() calls { return calls{float64(number.Load()), float64(bytes.Load())} }
}

// counted counts what is read of an answer.
type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
