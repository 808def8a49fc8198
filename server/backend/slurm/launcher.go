package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/launcher"
)

// The steps of pipelines are started by this program, which they find in workDir: a copy under a name of its own for each build,
// so that a gateway of another one changes nothing under a job that runs.

// launcherIn is the path of this program's copy in a workDir.
func launcherIn(workDir string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("this program's own file, that starts the steps of pipelines, is not known: %w", err)
	}
	info, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	name := strconv.FormatInt(info.ModTime().UnixNano(), 36) + "-" + strconv.FormatInt(info.Size(), 36)
	return filepath.Join(workDir, "bin", "dagbridge-"+name), nil
}

// bringLauncher puts the copy there, and makes the folder that the steps of the job's user share.
func (b *Backend) bringLauncher(ctx context.Context, job *dagbridgev1.Job) error {
	site := b.siteOf(job)
	if b.site.Pipelines == "" {
		if err := makeDir(site.Pipelines, 0o700); err != nil {
			return err
		}
		if err := b.giveAway(ctx, site.Pipelines, site.User); err != nil {
			return err
		}
	}
	if _, err := os.Stat(site.Launcher); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDir(filepath.Dir(site.Launcher), 0o755); err != nil {
		return err
	}
	if err := launcher.Install(site.Launcher); err != nil {
		return fmt.Errorf("the program that starts the steps of pipelines cannot be put into %s: %w", site.WorkDir, err)
	}
	return nil
}
