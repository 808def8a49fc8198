package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/translators"
)

// Log opens a log at an offset; the number is the file's present size in bytes, at which reading ends.
func (b *Backend) Log(_ context.Context, ref backend.NativeRef, _ *dagbridgev1.Job, _ int, stream string, offset int64) (io.ReadCloser, int64, error) {
	f, ok := b.folder(ref.Token)
	if !ok {
		return nil, 0, backend.ErrNoFile
	}
	path := f.stdout()
	switch stream {
	case "stdout":
	case "stderr":
		path = f.stderr()
	default:
		return nil, 0, fmt.Errorf("there is no stream %q: ask for stdout or stderr", stream)
	}
	file, size, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, backend.ErrNoFile
	}
	if err != nil {
		return nil, 0, err
	}
	section := io.NewSectionReader(file, offset, max(0, size-offset))
	return struct {
		io.Reader
		io.Closer
	}{section, file}, size, nil
}

// Outputs reads them once the job has succeeded: what a program that failed or was killed had written is none.
func (b *Backend) Outputs(_ context.Context, ref backend.NativeRef, _ *dagbridgev1.Job, _ int) ([]byte, error) {
	f, ok := b.folder(ref.Token)
	if !ok {
		return nil, nil
	}
	var ending end
	if _, err := readMarker(f.end(), &ending); err != nil || ending.State != dagbridgev1.Job_SUCCEEDED {
		return nil, err
	}
	file, size, err := openRegular(f.output())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, errNotRegular), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ELOOP):
		return nil, &backend.OutputError{Sentence: fmt.Sprintf("the outputs cannot be read: %v", err)}
	case err != nil:
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if size > int64(b.options.OutputLimit) {
		return nil, &backend.OutputError{Sentence: translators.OutputsTooLarge(size, b.options.OutputLimit).Error()}
	}
	raw, err := io.ReadAll(io.LimitReader(file, size))
	if err != nil {
		return nil, err
	}
	object, err := translators.Outputs(raw, b.options.OutputLimit)
	if err != nil {
		return nil, &backend.OutputError{Sentence: err.Error()}
	}
	return object, nil
}

var errNotRegular = errors.New("not an ordinary file")

// openRegular opens a file that a program could have made something else: reading from a pipe would never end.
func openRegular(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}
