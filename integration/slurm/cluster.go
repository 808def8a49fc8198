// Package slurmtest starts a real, private Slurm on loopback for tests: munged, slurmdbd with its MariaDB, slurmctld, two
// slurmd and slurmrestd, on free ports, with everything they write under one short folder in /tmp. Debian's packages are
// installed when they are missing, and those of newer releases are put into a root file system in the user's cache, which
// only this cluster's processes see as /. It needs root, as slurmd does to become the jobs' users. Beside it a test may have
// a login node (LogIn: an sshd) and images for containers (Image, Bundle).
//
// A cluster never outlives its test binary: a watchdog holds the other end of a pipe and stops the daemons, each by its
// recorded pid, when the binary ends, however it ends. A test binary that uses Shared calls Main from its TestMain.
package slurmtest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dagbridge/dagbridge/integration/loopback"
	"github.com/dagbridge/dagbridge/integration/program"
)

//go:embed start-slurm.sh stop-slurm.sh daemon.sh build-root.sh enter-root.sh
var scripts embed.FS

// User is the ordinary user whose account jobs over REST are charged to.
const User = "slurmtest"

// OtherUser is another ordinary user, in the same account.
const OtherUser = "slurmtest2"

// Options of a cluster. The zero value: the oldest release, accounting, two nodes.
type Options struct {
	// Release of Slurm. Left out: the oldest.
	Release Release
	// NoAccounting leaves slurmdbd and its database out.
	NoAccounting bool
	// Set holds further lines of slurm.conf, "MinJobAge=5", in place of those of the same name.
	Set []string
}

// Cluster is a running Slurm.
type Cluster struct {
	// Prefix is the folder that everything is under.
	Prefix string
	// URL of slurmrestd.
	URL string
	// Version is what the release calls itself, "26.05.5".
	Version string

	watchdog *loopback.Watchdog
}

var shared struct {
	sync.Once
	options Options
	cluster *Cluster
	err     error
}

// Shared is the cluster that all tests of a binary share, started at the first call.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	shared.Do(func() { shared.cluster, shared.err = start(shared.options) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

// Main runs the tests of a binary and then ends the shared cluster. It is what TestMain calls.
func Main(m *testing.M) { MainWith(m, Options{}) }

// MainWith is Main, for a shared cluster with options.
func MainWith(m *testing.M, o Options) {
	shared.options = o
	code := m.Run()
	if shared.cluster != nil {
		shared.cluster.stop()
	}
	os.Exit(code)
}

// Start starts a cluster of the test's own, which ends with it.
func Start(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	c, err := start(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.stop)
	return c
}

func start(o Options) (*Cluster, error) {
	// sockets' paths are limited to 108 bytes, so the test's own temporary folder is too deep
	prefix, err := os.MkdirTemp("/tmp", "dbslurm-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(prefix, 0o755); err != nil {
		return nil, err
	}
	files, _ := scripts.ReadDir(".")
	for _, f := range files {
		text, _ := scripts.ReadFile(f.Name())
		if err := program.Write(filepath.Join(prefix, f.Name()), text); err != nil {
			return nil, err
		}
	}
	c := &Cluster{Prefix: prefix}
	if c.watchdog, err = loopback.Watch(`"$0/stop-slurm.sh" "$0"; rm -rf "$0"`, prefix); err != nil {
		return nil, err
	}
	root, err := o.Release.root(filepath.Join(prefix, "build-root.sh"))
	if err != nil {
		c.stop()
		return nil, err
	}
	var output []byte
	for range 5 {
		base := loopback.FreePorts()
		arguments := []string{"--base-port", fmt.Sprint(base)}
		if root != "" {
			arguments = append(arguments, "--root", root)
		}
		if o.NoAccounting {
			arguments = append(arguments, "--no-accounting")
		}
		for _, line := range o.Set {
			arguments = append(arguments, "--set", line)
		}
		c.URL = fmt.Sprintf("http://127.0.0.1:%d", base+2)
		output, err = exec.Command(filepath.Join(prefix, "start-slurm.sh"), append(arguments, prefix)...).CombinedOutput()
		if err == nil {
			if c.Version, err = c.version(); err != nil {
				break
			}
			return c, nil
		}
		if !strings.Contains(string(output), "already in use") {
			break
		}
	}
	c.stop()
	return nil, fmt.Errorf("Slurm does not start: %w\n%s", err, output)
}

// version is what sbatch says: "slurm 26.05.5", or "slurm-wlm 22.05.8" where Debian built it.
func (c *Cluster) version() (string, error) {
	output, err := exec.Command(filepath.Join(c.Bin(), "sbatch"), "--version").CombinedOutput()
	fields := strings.Fields(string(output))
	if err != nil || len(fields) == 0 {
		return "", fmt.Errorf("sbatch --version: %v: %s", err, output)
	}
	return fields[len(fields)-1], nil
}

func (c *Cluster) stop() { c.watchdog.Stop() }
