// Package loopback is what those share who start daemons for tests: ports of this machine that are free, and a watchdog, so that
// daemons never outlive the test binary.
package loopback

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"syscall"
)

// FreePorts finds the first of 20 ports in a row that nobody listens on. Another process may still take one: who starts
// something there says so.
func FreePorts() int {
	for {
		base := 20000 + rand.IntN(500)*20
		free := true
		for port := base; port < base+20 && free; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if free = err == nil; free {
				l.Close()
			}
		}
		if free {
			return base
		}
	}
}

// Watchdog is a shell in a session of its own that waits for the end of its input: of this process, however that ends, or Stop.
type Watchdog struct {
	input   io.Closer
	stopped chan struct{}
}

// Watch starts a watchdog that runs lines of sh at the end, with $0 and so on as they are given.
func Watch(lines string, arguments ...string) (*Watchdog, error) {
	command := exec.Command("/bin/sh", append([]string{"-c", "read -r _; " + lines}, arguments...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	w := &Watchdog{input: input, stopped: make(chan struct{})}
	go func() {
		defer close(w.stopped)
		_ = command.Wait()
	}()
	return w, nil
}

// Stop has the lines run now, and waits until they have.
func (w *Watchdog) Stop() {
	_ = w.input.Close()
	<-w.stopped
}
