package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dagbridge/dagbridge/integration/loopback"
)

// process is the gateway of one script.
type process struct{ command *exec.Cmd }

type processKey struct{}

// startGateway: `gateway [CONFIG]` starts one with dagbridge.yaml or another configuration, waits until it is ready, and
// points the commands at it: DAGBRIDGE_SERVER and HTTP. Started again it comes back at the same addresses.
func startGateway(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: gateway [CONFIG]")
	}
	path := ts.MkAbs(append(args, "dagbridge.yaml")[0])
	command := exec.Command(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "dagbridge"), "serve", "--config", path)
	command.Dir = ts.MkAbs(".")
	command.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	log, err := os.OpenFile(ts.MkAbs("gateway.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	ts.Check(err)
	defer log.Close()
	command.Stderr = log
	out, err := command.StdoutPipe()
	ts.Check(err)
	ts.Check(command.Start())
	ts.Value(processKey{}).(*process).command = command
	ts.Defer(func() {
		// Both are errors when it has been stopped.
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		ts.Fatalf("the gateway is not ready: %v\n%s", err, ts.ReadFile("gateway.log"))
	}
	addresses := regexp.MustCompile(`gRPC (\S+), REST (\S+), `).FindStringSubmatch(line)
	if addresses == nil {
		ts.Fatalf("this is no ready line: %s", line)
	}
	ts.Setenv("DAGBRIDGE_SERVER", addresses[1])
	ts.Setenv("HTTP", addresses[2])
	text := strings.Replace(ts.ReadFile(path), "127.0.0.1:0", addresses[1], 1)
	ts.Check(os.WriteFile(path, []byte(strings.Replace(text, "127.0.0.1:0", addresses[2], 1)), 0o644))
}

// stopGateway: `stop` ends the gateway as systemd would and waits; its exit code must be 0. `stop -kill` gives it no chance.
func stopGateway(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 || len(args) == 1 && args[0] != "-kill" {
		ts.Fatalf("usage: stop [-kill]")
	}
	command := ts.Value(processKey{}).(*process).command
	if len(args) == 1 {
		ts.Check(command.Process.Kill())
		_ = command.Wait() // it was killed
		return
	}
	ts.Check(command.Process.Signal(syscall.SIGTERM))
	if err := command.Wait(); err != nil {
		ts.Fatalf("the gateway ended badly: %v\n%s", err, ts.ReadFile("gateway.log"))
	}
}

// certificate CERT KEY makes a certificate of 127.0.0.1 that is its own authority.
func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certificate CERT KEY")
	}
	ts.Check(loopback.Certificate(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}
