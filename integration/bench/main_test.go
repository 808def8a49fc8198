// Package bench measures the gateway against the bare libraries it stands on, side by side in one run: a ratio within a run
// says something on a busy machine, a number does not.
package bench

import (
	"fmt"
	"os"
	"testing"
)

// roles are what this test's own binary does when it is started as another process, so that the processor time of a server
// is its own.
var roles = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}
