package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// start is the marker that an attempt has begun, and who looks after it.
type start struct {
	Supervisor process
	Time       time.Time
}

// end is the marker that an attempt has ended, and how.
type end struct {
	State    dagbridgev1.Job_State
	Reason   string
	Message  string
	ExitCode *int32
	Signal   *int32
	// StartTime is zero of what never started.
	StartTime time.Time
	EndTime   time.Time
}

// writeOnce makes a file, whole or not at all, unless there is one: then it is fs.ErrExist.
func writeOnce(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }()
	_, err = part.Write(text)
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	if err := os.Link(part.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a folder survive a power cut.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readMarker reads what writeOnce made; ok is false when there is none.
func readMarker(path string, value any) (ok bool, err error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return false, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return true, nil
}

// exists says whether a file is there; an error other than its absence is told.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
