package store_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary a process that a test has started: its value names what it does, its argument a path.
const childEnv = "STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	child, ok := map[string]func(path string) error{
		"":       nil,
		"update": updateForEver,
		"full":   fillDisk,
		"limit":  fillLimit,
	}[os.Getenv(childEnv)]
	switch {
	case !ok:
		panic("no such child: " + os.Getenv(childEnv))
	case child == nil:
		goleak.VerifyTestMain(m)
	default:
		if err := child(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
