package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dagbridge/dagbridge/integration/examples"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dagbridge": main})
}

// Each testdata/script/NAME.txtar is a session at a shell; testscript's documentation says how to read it. Beside its own
// commands there are those below. The examples are in the folder examples.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"certificate": certificate,
			"exits":       exits,
			"gateway":     startGateway,
			"keep":        keep,
			"stop":        stopGateway,
		},
		Setup: func(env *testscript.Env) error {
			env.Values[processKey{}] = &process{}
			env.Setenv("TERM", "dumb")
			folder := filepath.Join(env.WorkDir, "examples")
			if err := os.CopyFS(folder, examples.Files); err != nil {
				return err
			}
			if err := os.CopyFS(filepath.Join(env.WorkDir, "pipelines"), os.DirFS(filepath.Join("..", "..", "translators", "kfp", "testdata"))); err != nil {
				return err
			}
			config := "listen: {grpc: \"127.0.0.1:0\", http: \"127.0.0.1:0\"}\ndata: data\n"
			return os.WriteFile(filepath.Join(env.WorkDir, "dagbridge.yaml"), []byte(config), 0o644)
		},
	})
}

// exits CODE PROGRAM ARGS... runs a program that must end with this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s ended with %d, not %d", strings.Join(args[1:], " "), got, want)
	}
}

// keep NAME REGEXP sets a variable to what the expression's group matches in the last standard output.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep NAME REGEXP")
	}
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("the output has no %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}
