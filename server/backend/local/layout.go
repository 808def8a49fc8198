package local

import (
	"path/filepath"
	"regexp"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// tokenForm is "<job id>.<attempt number>", of characters that are safe in a file's name.
var tokenForm = regexp.MustCompile(`^([0-9A-Za-z][0-9A-Za-z-]{0,63})\.([0-9]{1,9})$`)

// folder of one attempt.
type folder string

func (f folder) spec() string       { return filepath.Join(string(f), "spec") }
func (f folder) release() string    { return filepath.Join(string(f), "release") }
func (f folder) cancel() string     { return filepath.Join(string(f), "cancel") }
func (f folder) start() string      { return filepath.Join(string(f), "start") }
func (f folder) end() string        { return filepath.Join(string(f), "end") }
func (f folder) stdout() string     { return filepath.Join(string(f), "stdout") }
func (f folder) stderr() string     { return filepath.Join(string(f), "stderr") }
func (f folder) output() string     { return filepath.Join(string(f), "output") }
func (f folder) inputs() string     { return filepath.Join(string(f), "inputs") }
func (f folder) script() string     { return filepath.Join(string(f), "script") }
func (f folder) prologue() string   { return filepath.Join(string(f), "prologue") }
func (f folder) supervisor() string { return filepath.Join(string(f), "supervisor") }

func (b *Backend) queueDir() string { return filepath.Join(b.options.Dir, "queue") }

func (b *Backend) queueFile(token string) string { return filepath.Join(b.queueDir(), token) }

// jobDir is the job's own folder, in which its program runs.
func (b *Backend) jobDir(job string) string { return filepath.Join(b.options.Dir, b.user, job) }

// folder of a token's attempt; none of what is no token.
func (b *Backend) folder(token string) (f folder, ok bool) {
	parts := tokenForm.FindStringSubmatch(token)
	if parts == nil {
		return "", false
	}
	return folder(filepath.Join(b.jobDir(parts[1]), "attempt-"+parts[2])), true
}

// nativeID is short enough for tables, and the token's alone: of a UUID its last twelve digits are random.
func nativeID(token string) string {
	parts := tokenForm.FindStringSubmatch(token)
	if parts == nil {
		return ""
	}
	job := parts[1]
	return "local-" + job[max(0, len(job)-12):] + "." + parts[2]
}

// own says whether a reference is consistent: its id is the one that its token has.
func own(ref backend.NativeRef) bool {
	id := nativeID(ref.Token)
	return id != "" && id == ref.ID
}

// Logs says where the output is.
func (b *Backend) Logs(_ *dagbridgev1.Job, token string, _ int) *dagbridgev1.Logs {
	f, ok := b.folder(token)
	if !ok {
		return nil
	}
	return &dagbridgev1.Logs{Stdout: f.stdout(), Stderr: f.stderr()}
}
