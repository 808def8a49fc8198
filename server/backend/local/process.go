package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process names one process for ever: its pid alone may be another's by now.
type process struct {
	Boot string
	PID  int
	// Start in clock ticks since the boot.
	Start uint64
}

// stat is what /proc tells of a process.
type stat struct {
	pid, parent, session int
	dead                 bool
	start                uint64
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// lookup names the process that has a pid now.
func lookup(pid int) (process, error) {
	boot, err := bootID()
	if err != nil {
		return process{}, err
	}
	st, err := readStat(pid)
	return process{Boot: boot, PID: pid, Start: st.start}, err
}

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	// The second field is the program's name in parentheses, which may hold anything.
	_, rest, _ := cutLast(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("/proc/%d/stat cannot be read", pid)
	}
	st := stat{pid: pid, dead: fields[0] == "Z" || fields[0] == "X"}
	st.parent, _ = strconv.Atoi(fields[1])
	st.session, _ = strconv.Atoi(fields[3])
	st.start, err = strconv.ParseUint(fields[19], 10, 64)
	return st, err
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// processes are all that live now.
func processes() ([]stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var list []stat
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil && !st.dead {
			list = append(list, st)
		}
	}
	return list, nil
}

// open is a handle that stays the process's own; nil when the process is no more. A corpse that waits for its parent has one.
func (p process) open() (*os.File, error) {
	boot, err := bootID()
	if err != nil || boot != p.Boot {
		return nil, err
	}
	fd, err := unix.PidfdOpen(p.PID, unix.PIDFD_NONBLOCK)
	if err == unix.ESRCH {
		return nil, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	handle := os.NewFile(uintptr(fd), "pidfd")
	// Only now is the handle known to be the process's: had the pid been used again before, the start would differ.
	if st, err := readStat(p.PID); err != nil || st.start != p.Start {
		return nil, handle.Close()
	}
	return handle, nil
}

// running says whether the process is there and no mere corpse.
func (p process) running() bool {
	boot, err := bootID()
	if err != nil || boot != p.Boot {
		return false
	}
	st, err := readStat(p.PID)
	return err == nil && st.start == p.Start && !st.dead
}

// signal sends a signal; a process that is no more is no error.
func (p process) signal(sig unix.Signal) error {
	handle, err := p.open()
	if err != nil || handle == nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	if err := unix.PidfdSendSignal(int(handle.Fd()), sig, nil, 0); err != nil && err != unix.ESRCH {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	return nil
}

// died waits, without holding a thread, until the process is no more, which it reports, or the context ends.
func (p process) died(ctx context.Context) (bool, error) {
	handle, err := p.open()
	if err != nil || handle == nil {
		return err == nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = handle.Close() })
	defer func() {
		if stop() {
			_ = handle.Close()
		}
	}()
	conn, err := handle.SyscallConn()
	if err != nil {
		return false, err
	}
	err = conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || (err != nil && err != unix.EINTR)
	})
	if ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}
