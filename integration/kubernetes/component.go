package kubernetestest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Kill ends a component ("kube-apiserver", "kubelet") at once, and waits until it is gone.
func (c *Cluster) Kill(tb testing.TB, component string) {
	tb.Helper()
	pid := c.pid(tb, component)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		tb.Fatalf("%s (%d): %v", component, pid, err)
	}
	c.Eventually(tb, component+" is gone", func() error {
		if err := syscall.Kill(pid, 0); err == nil && !zombie(pid) {
			return fmt.Errorf("process %d is there", pid)
		}
		return nil
	})
}

// StartAgain starts a component that was killed, with the arguments that it had and some more, and waits for the API server,
// should it be that.
func (c *Cluster) StartAgain(tb testing.TB, component string, more ...string) {
	tb.Helper()
	command, err := os.ReadFile(filepath.Join(c.Dir, "commands", component))
	if err != nil {
		tb.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(c.Dir, "log", component+".log"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	// bash wrote the line, and reads it; it becomes the component.
	cmd := exec.Command("bash", append([]string{"-c", "exec " + string(command) + ` "$@"`, "bash"}, more...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // its end is seen by its pid
	c.record(tb, component, cmd.Process.Pid)
	tb.Cleanup(func() {
		if tb.Failed() {
			text, _ := os.ReadFile(log.Name())
			tb.Logf("%s ends with:\n%s", log.Name(), text[max(0, len(text)-8<<10):])
		}
	})
	if component == "kube-apiserver" {
		c.Eventually(tb, "the API server is ready", func() error {
			probe := exec.Command(c.binary, "kubectl", "get", "--raw", "/readyz")
			probe.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
			return probe.Run()
		})
	}
}

// Eventually waits until a check passes, for three minutes at most.
func (c *Cluster) Eventually(tb testing.TB, what string, check func() error) {
	tb.Helper()
	c.Within(tb, 3*time.Minute, what, check)
}

// Within waits until a check passes.
func (c *Cluster) Within(tb testing.TB, patience time.Duration, what string, check func() error) {
	tb.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	tb.Fatalf("waited %v until %s: %v", patience, what, err)
}

// pid of a component, the last that was recorded.
func (c *Cluster) pid(tb testing.TB, component string) int {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "pids"))
	if err != nil {
		tb.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		if number, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == component {
			found, _ = strconv.Atoi(number) // the script writes numbers
		}
	}
	if found == 0 {
		tb.Fatalf("there is no %s", component)
	}
	return found
}

func (c *Cluster) record(tb testing.TB, component string, pid int) {
	tb.Helper()
	path := filepath.Join(c.Dir, "pids")
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(strings.TrimSpace(line), " "+component) {
			lines.WriteString(line)
		}
	}
	fmt.Fprintf(&lines, "%d %s\n", pid, component)
	if err := os.WriteFile(path, []byte(lines.String()), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// zombie says whether a process is only a corpse: nobody has asked for its end yet. Its first thread may be one while others still
// hold its sockets.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // it may be gone by now
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") && len(threads) <= 1
}
