package launcher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// environment takes from a lightweight component's command the part that installs packages with pip, at each start, and puts a
// virtual environment in its place that is made once for each set of packages and each Python. Another command stays as it is.
func (l *launch) environment(ctx context.Context, argv []string) ([]string, error) {
	if len(argv) < 4 || argv[0] != "sh" || argv[1] != "-c" || !strings.Contains(argv[2], "pip install") || !strings.HasSuffix(strings.TrimSpace(argv[2]), `"$0" "$@"`) {
		return argv, nil
	}
	python, err := l.lookPath("python3")
	if err != nil {
		return nil, err
	}
	version, err := l.command(ctx, python, "-c", "import sys, sysconfig; print(sys.executable); print(sys.version); print(sysconfig.get_paths()['purelib'])").Output()
	if err != nil {
		return nil, fmt.Errorf("%s does not say which Python it is: %w", python, err)
	}
	sum := sha256.Sum256([]byte(argv[2] + "\x00" + string(version)))
	folder := filepath.Join(l.shared, "environments", hex.EncodeToString(sum[:8]))
	if err := l.make(ctx, folder, python, argv[2], string(version)); err != nil {
		return nil, err
	}
	l.env["PATH"] = filepath.Join(folder, "bin") + ":" + l.env["PATH"]
	return argv[3:], nil
}

// make makes an environment, once, whoever else wants it now; what was interrupted is made anew.
func (l *launch) make(ctx context.Context, folder, python, install, version string) error {
	complete := filepath.Join(folder, "complete")
	if _, err := os.Stat(complete); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(complete); err == nil {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	// pip is that of the Python it is made of, or else brought by the component's own command
	if text, err := l.command(ctx, python, "-m", "venv", "--without-pip", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("a virtual environment cannot be made with %s: %w: %s", python, err, tail(text))
	}
	if err := inherit(folder, version); err != nil {
		return err
	}
	pip := l.command(ctx, "/bin/sh", "-c", install, "true")
	pip.Env = append(pip.Env, "PATH="+filepath.Join(folder, "bin")+":"+l.env["PATH"], "PIP_DISABLE_PIP_VERSION_CHECK=1")
	if text, err := pip.CombinedOutput(); err != nil {
		return fmt.Errorf("the packages of the component cannot be installed: %w: %s", err, tail(text))
	}
	return writeSynced(complete, nil)
}

// inherit lets an environment see the packages of the one it was made with, so that what is there is not fetched.
func inherit(folder, version string) error {
	lines := strings.Split(strings.TrimSpace(version), "\n")
	sites, err := filepath.Glob(filepath.Join(folder, "lib", "python*", "site-packages"))
	if err != nil || len(sites) == 0 {
		return errors.Join(err, fmt.Errorf("the virtual environment %s has no site-packages", folder))
	}
	return os.WriteFile(filepath.Join(sites[0], "inherited.pth"), []byte(lines[len(lines)-1]+"\n"), 0o600)
}

func (l *launch) command(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Env = l.environ()
	return cmd
}

// tail is the end of what a program has written.
func tail(text []byte) string {
	const most = 2000
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
