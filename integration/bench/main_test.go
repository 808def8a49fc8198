// Package bench measures the gateway against the bare libraries and commands it stands on, side by side in one run: a ratio
// within a run says something on a busy machine, a number does not. `make bench` runs it and prints one table.
//
// Each benchmark takes turns: the gateway, then what it is measured against, several rounds of both. The table shows the
// medians, and the median of the rounds' ratios beside what is aimed at.
package bench

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
)

var (
	rounds  = flag.Int("rounds", 3, "how many turns the gateway and what it is measured against take")
	profile = flag.String("profile", "", "folder for profiles, of time and of memory, of the gateways' processes")
)

// roles are what this test's own binary does when it is started as another process, so that the processor time of a server
// is its own.
var roles = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			if err := play(role, os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	code := kubernetestest.Run(m)
	printTable()
	if filled != "" {
		_ = os.RemoveAll(filled)
	}
	os.Exit(code)
}

// profileFolder is how a role is told where to leave a profile of itself.
const profileFolder = "DAGBRIDGE_BENCH_PROFILE"

func play(role func([]string) error, args []string) error {
	dir := os.Getenv(profileFolder)
	if dir == "" {
		return role(args)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%d", os.Args[1], os.Getpid()))
	time, err := os.Create(path + ".cpu")
	if err != nil {
		return err
	}
	memory, err := os.Create(path + ".allocs")
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(time); err != nil {
		return err
	}
	err = role(args)
	pprof.StopCPUProfile()
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(memory, 0), memory.Close(), time.Close())
}
