package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/server/store"
)

// TestDiskFull fills a small file system, in a process with a mount table of its own, so that nothing is left behind.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	cmd := child(t, "full")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestFileSizeLimit reaches the limit that a process has for its files, which no look at the disk foretells.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	out, err := child(t, "limit").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func child(t *testing.T, what string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], t.TempDir())
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	return cmd
}

func fillDisk(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 12<<20), 0o600); err != nil {
		return err
	}
	return fill(dir, syscall.ENOSPC, func() error { return os.Remove(ballast) })
}

func fillLimit(dir string) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = 24 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	return fill(dir, syscall.EFBIG, func() error {
		limit.Cur = limit.Max
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	})
}

// fill puts jobs until there is no room, wants what was acknowledged to be readable all the time, makes room and goes on.
func fill(dir string, want syscall.Errno, makeRoom func() error) error {
	path := filepath.Join(dir, "dagbridge.db")
	s, err := store.Open(path, store.Options{})
	if err != nil {
		return err
	}
	var kept []string
	add := func() error {
		rec := newRecord(fmt.Sprint("task", len(kept)), 1, "")
		rec.Job.Message = strings.Repeat("x", 100_000)
		err := s.Update(context.Background(), func(tx *store.Tx) error { tx.Put(rec); return nil })
		if err == nil {
			kept = append(kept, rec.GetJob().GetId())
		}
		return err
	}
	check := func() error {
		for _, id := range kept {
			if _, err := s.Job(id); err != nil {
				return err
			}
		}
		if jobs, _, _, err := s.List(nil, 1000, ""); err != nil || len(jobs) != len(kept) || int(s.Seq()) != len(kept) {
			return fmt.Errorf("listed %d of %d jobs, change %d (%w)", len(jobs), len(kept), s.Seq(), err)
		}
		return nil
	}
	for err == nil {
		err = add()
	}
	for range 3 {
		if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), want.Error()) || !strings.Contains(err.Error(), path) {
			return fmt.Errorf("after %d jobs: %w", len(kept), err)
		}
		if err := check(); err != nil {
			return err
		}
		err = add()
	}
	full := len(kept)
	if err := makeRoom(); err != nil {
		return err
	}
	for range 20 {
		if err := add(); err != nil {
			return fmt.Errorf("with room again: %w", err)
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = store.Open(path, store.Options{}); err != nil {
		return err
	}
	if full == 0 || len(kept) != full+20 {
		return fmt.Errorf("%d jobs when full, %d after", full, len(kept))
	}
	return errors.Join(check(), s.Close())
}
