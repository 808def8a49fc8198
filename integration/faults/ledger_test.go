package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// ledger is the file to which every program appends a line when it runs.
type ledger struct{ path string }

func newLedger(t *testing.T, c *slurmtest.Cluster) ledger {
	t.Helper()
	l := ledger{filepath.Join(c.WorkDir(t), "ledger")}
	require.NoError(t, os.WriteFile(l.path, nil, 0o600))
	require.NoError(t, os.Chmod(l.path, 0o666)) // the jobs are another user's
	return l
}

// entry is one line: a program that ran.
type entry struct {
	// what ran: the token, and "_" and the position in the array.
	what string
	// native id of the job that ran it; of an array the base id.
	native string
	// restarts of that job by Slurm itself.
	restarts string
}

// program appends a line and then does something, in shell. The attempt it is of is in the path of its outputs.
func (l ledger) program(then string) *dagbridgev1.Command {
	return &dagbridgev1.Command{Argv: []string{"sh", "-c", l.line() + "; " + then}}
}

// line appends one, in shell.
func (l ledger) line() string {
	const line = `o=${DAGBRIDGE_OUTPUT%.output}; d=${o%/*}; echo "${d##*/}.${o##*/} ${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} ${SLURM_RESTART_COUNT:-0}" >>`
	return line + l.path
}

// entries are what has run, in order. A line without its end is being written.
func (l ledger) entries(t *testing.T) []entry {
	t.Helper()
	text, err := os.ReadFile(l.path)
	require.NoError(t, err)
	var all []entry
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		fields := strings.Fields(line)
		require.Len(t, fields, 3, "a line of the ledger: %q", line)
		all = append(all, entry{fields[0], fields[1], fields[2]})
	}
	return all
}

// runs is what a job's attempts are called in the ledger and in the accounting, in order: by their token, and, of what went in
// as one of an array, by its position in that.
func runs(job *dagbridgev1.Job) []string {
	var all []string
	for _, at := range job.GetAttempts() {
		what := at.GetToken()
		if _, position, isElement := strings.Cut(at.GetNativeId(), "_"); isElement { // of an array, or of tasks that went in together
			what += "_" + position
		} else if index := job.GetKey().GetMapIndex(); len(index) > 0 {
			what += fmt.Sprintf("_%d", index[len(index)-1])
		}
		all = append(all, what)
	}
	return all
}
