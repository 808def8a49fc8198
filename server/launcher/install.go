package launcher

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Install puts a copy of this program where jobs find it, whole or not at all.
func Install(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(to.Name()) }() // it is not there any more when all has gone well
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Chmod(0o755), to.Sync(), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), path)
}
