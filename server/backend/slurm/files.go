package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// outputsLimit is what the wrapper takes from a program, in bytes.
const outputsLimit = 48 << 10

// makeFolder makes a job's own folder. It belongs to the job's user and to the gateway's group, which its files inherit: the
// gateway reads what the job writes, and nobody else does. The folder above is the gateway's, so that no user can put
// another in its place.
func (b *Backend) makeFolder(ctx context.Context, job *dagbridgev1.Job) error {
	dir := slurm.Dir(b.siteOf(job), job.GetId())
	err := makeDir(dir, 0o700)
	home := b.home(job)
	if errors.Is(err, fs.ErrNotExist) {
		// workDir itself is not made: on a file system that is not mounted the jobs would never find it
		if err = b.unmounted(); err == nil {
			err = makeDir(home, 0o755)
		}
		if err == nil {
			err = makeDir(dir, 0o700)
		}
	}
	if err == nil {
		err = b.giveAway(ctx, dir, b.userOf(job))
	}
	if err != nil {
		return fmt.Errorf("the job's folder cannot be made: %w", err)
	}
	b.used.Store(&home)
	return nil
}

// home is the folder in which a job's folder is made.
func (b *Backend) home(job *dagbridgev1.Job) string {
	return filepath.Dir(slurm.Dir(b.siteOf(job), job.GetId()))
}

// unmounted is a sentence when the home that was used last is not there any more: a mount point without its
// file system looks like a workDir that is new.
func (b *Backend) unmounted() error {
	if home := b.used.Load(); home != nil && isMissing(*home) {
		return errNotThere(*home)
	}
	return nil
}

func errNotThere(home string) error {
	return fmt.Errorf("the folder %s is not there any more: mount its file system, or make the folder again", home)
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// makeDir makes a folder, which an earlier attempt may have made.
func makeDir(dir string, mode os.FileMode) error {
	if err := os.Mkdir(dir, mode); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// giveAway makes a folder the user's, unless an earlier attempt has. A gateway that is not root can open a folder to its own
// group only, and must be in the one that the user writes by; but where jobs are their submitters', it has to be able to.
func (b *Backend) giveAway(ctx context.Context, dir, user string) error {
	const mode = os.ModeSetgid | 0o770
	mine := os.Getuid() != 0 && user == b.site.User
	owner := account{uid: os.Getuid()}
	var err error
	if !mine {
		if owner, err = b.accounts.of(ctx, user); err != nil {
			return err
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if have := info.Sys().(*syscall.Stat_t); int(have.Uid) == owner.uid && info.Mode() == os.ModeDir|mode {
		return nil
	}
	// the mode first: whoever has given a folder away may not be able to change it
	if err := os.Chmod(dir, mode); err != nil || mine {
		return err
	}
	if err := os.Chown(dir, owner.uid, os.Getgid()); err != nil {
		return fmt.Errorf("%w; to give folders to other users the gateway must be root, or have the capability CAP_CHOWN", err)
	}
	return nil
}

// open opens a file of a job's, which may not be there yet. The folder is the user's, who may put links and pipes there: a
// link that leads out of the folder is refused, and what is no plain file is not waited for.
func (b *Backend) open(job *dagbridgev1.Job, path string) (*os.File, int64, error) {
	root, err := os.OpenRoot(slurm.Dir(b.siteOf(job), job.GetId()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, backend.ErrNoFile
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = root.Close() }()
	file, err := root.OpenFile(filepath.Base(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, backend.ErrNoFile
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// leaveMarks keeps a job's token, or some positions of it, from starting.
func (b *Backend) leaveMarks(k backend.Known) error {
	root, err := os.OpenRoot(slurm.Dir(b.siteOf(k.Job), k.Job.GetId()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // without its folder no script of it runs
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	positions := k.Positions
	if len(positions) == 0 {
		positions = []int{-1}
	}
	for _, position := range positions {
		mark := slurm.CancelMark(b.siteOf(k.Job), k.Job.GetId(), k.Ref.Token, position)
		file, err := root.OpenFile(filepath.Base(mark), os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o660)
		if err != nil {
			return fmt.Errorf("the mark of a cancel cannot be left: %w", err)
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a small file of a job's; nil when there is none, one byte more than the limit when there is more.
func (b *Backend) readFile(job *dagbridgev1.Job, path string, limit int64) ([]byte, error) {
	file, _, err := b.open(job, path)
	if errors.Is(err, backend.ErrNoFile) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, limit+1))
}

// Log opens what the job wrote.
func (b *Backend) Log(_ context.Context, ref backend.NativeRef, job *dagbridgev1.Job, position int, stream string, offset int64) (io.ReadCloser, int64, error) {
	logs := b.Logs(job, ref.Token, position)
	path := logs.Stdout
	if stream == "stderr" {
		path = logs.Stderr
	}
	file, size, err := b.open(job, path)
	if err != nil {
		return nil, 0, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, size, nil
}

// Logs are the files that Slurm writes the output to.
func (b *Backend) Logs(job *dagbridgev1.Job, token string, position int) *dagbridgev1.Logs {
	return &dagbridgev1.Logs{
		Stdout: slurm.StdoutPath(b.siteOf(job), job.GetId(), token, position),
		Stderr: slurm.StderrPath(b.siteOf(job), job.GetId(), token, position),
	}
}

// Outputs reads what the wrapper has published.
func (b *Backend) Outputs(_ context.Context, ref backend.NativeRef, job *dagbridgev1.Job, position int) ([]byte, error) {
	m := b.markers(job, ref.Token, position)
	if m.err != nil {
		return nil, m.err
	}
	if m.refusedOutputs() {
		return nil, &backend.OutputError{Sentence: m.end.Sentence}
	}
	raw, err := b.readFile(job, slurm.OutputsPath(b.site, b.userOf(job), job.GetId(), position), outputsLimit)
	if err != nil || raw == nil {
		return nil, err
	}
	outputs, err := translators.Outputs(raw, outputsLimit)
	if err != nil {
		return nil, &backend.OutputError{Sentence: err.Error()}
	}
	return outputs, nil
}
