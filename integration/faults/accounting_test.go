package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// native is a native job, or an array's element, as the accounting has it.
type native struct {
	id, state, exit string
}

// exits of jobs whose wrapper ran no program: a duplicate's, one's whose folder cannot be written to, a premature one's, a
// cancelled one's; and of one that slurmd could not start.
var exitsWithoutProgram = []string{"120:0", "122:0", "123:0", "124:0", "0:53"}

func (n native) ended() bool {
	return n.state != "PENDING" && n.state != "RUNNING" && n.state != "REQUEUED"
}

// ran says whether the program was run, as far as the accounting can tell.
func (n native) ran() bool {
	return n.state == "COMPLETED" || n.state == "FAILED" && !slices.Contains(exitsWithoutProgram, n.exit)
}

// accounted are the native jobs of some tokens, by what they run, once all of them have ended. wanted are those that must
// be among them: the accounting lags behind.
func accounted(t *testing.T, c *slurmtest.Cluster, tokens map[string]bool, wanted []string) map[string][]native {
	t.Helper()
	var all map[string][]native
	complete := func() bool {
		all = map[string][]native{}
		output := c.Run(t, "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "1970-01-02", "-E", "now+300", "-o", "JobID,State,ExitCode,JobName")
		for line := range strings.Lines(output) {
			fields := strings.SplitN(strings.TrimSpace(line), "|", 4)
			require.Len(t, fields, 4, line)
			_, token, found := strings.Cut(fields[3], ".")
			if !found || !tokens[token] {
				continue
			}
			id, position, isArray := strings.Cut(fields[0], "_")
			if isArray {
				token += "_" + position
			}
			state, _, _ := strings.Cut(fields[1], " ") // CANCELLED by 0
			all[token] = append(all[token], native{id, state, fields[2]})
		}
		for _, natives := range all {
			if slices.ContainsFunc(natives, func(n native) bool { return !n.ended() && n.state != "REQUEUED" }) {
				return false
			}
		}
		return !slices.ContainsFunc(wanted, func(what string) bool { return len(all[what]) == 0 })
	}
	require.Eventually(t, complete, patience, 500*time.Millisecond, "the accounting is never complete")
	return all
}
