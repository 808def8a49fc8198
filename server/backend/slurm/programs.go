package slurm

import (
	"fmt"
	"os"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/slurm"
)

// writeFiles writes the files that a job's script reads into the job's folder, each whole or not at all: an element of an
// earlier request for the same job may be reading them. The folder is the user's, who may put links there: os.Root follows none
// out of it.
func (b *Backend) writeFiles(job *dagbridgev1.Job, files map[string]string) (err error) {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(slurm.Dir(b.siteOf(job), job.GetId()))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for name, text := range files {
		// Read by the jobs' user, whom the folder lets in and nobody else.
		if err = root.WriteFile(name+".new", []byte(text), 0o644); err == nil {
			err = root.Chmod(name+".new", 0o644)
		}
		if err == nil {
			err = root.Rename(name+".new", name)
		}
		if err != nil {
			return fmt.Errorf("the job's programs cannot be written: %w", err)
		}
	}
	return nil
}
