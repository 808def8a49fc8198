// Package backendtest is the conformance suite of backend.Backend: the rules that every cluster must keep, checked against
// the real scheduler.
//
// Each rule is one test whose name says it. Tests submit small programs of sh, awk and coreutils, and wait on conditions
// that a Watcher sees through Observe; what a program did is read from files in a folder that tests and jobs share. The
// suite knows no scheduler: what differs is in the Fixture and in the backend's Capabilities.
package backendtest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
)

// Fixture is one cluster under test. Its nodes are this machine: tests look at files and processes that jobs leave.
type Fixture struct {
	// Backend under test; the suite closes it.
	Backend backend.Backend
	// Restart makes a new Backend over the same cluster after the suite has closed the last one, as when a gateway restarts.
	Restart func(t *testing.T) backend.Backend
	// FailNode takes the node away under the job that runs on it, and brings it back at the test's end. Nil: the cluster's only
	// node is the gateway's own machine, so that a node cannot fail alone.
	FailNode func(t *testing.T, node string)
	// Dir is a folder for the tests' own files, that jobs see and may write to.
	Dir string
	// TimeLimit is the shortest that the scheduler keeps.
	TimeLimit time.Duration
	// Patience is how long any one condition is waited for; more than the scheduler needs to kill a program that has reached
	// TimeLimit, or that ignores SIGTERM.
	Patience time.Duration
	// OutputBytes is what outputs may have; 0: 48 KiB.
	OutputBytes int
	// LogsByCommand: the cluster keeps what a job wrote, both streams in one, and Logs tells by which command a person reads it,
	// not a file. Nor has a job a folder that could vanish.
	LogsByCommand bool
	// MakesFolders: a working directory that is not there is made, as container runtimes do.
	MakesFolders bool
	// Resources of test jobs that name none: so small that a dozen run side by side.
	Resources *dagbridgev1.Resources
}

// rules are checked side by side; those that wait longest come first.
var rules = []rule{
	{"a program over its time limit is FAILED with reason TIMEOUT", timeLimit},
	{"a cancelled program that ignores SIGTERM is killed with all it started", cancelStubborn},
	{"many jobs at once each run once", many},
	{"exit 0 is SUCCEEDED", exitZero},
	{"exit 3 is FAILED with exit code 3", exitCode(3)},
	{"exit 255 is FAILED with exit code 255", exitCode(255)},
	{"a program killed by SIGSEGV is FAILED with exit code 139", signalled},
	{"a missing program is FAILED with exit code 127", missingProgram},
	{"a missing working directory is FAILED and nothing ran, or is made", missingWorkingDirectory},

	{"a second submission of a token never runs the program twice", submitTwice},
	{"a job is found by its token while held, running and ended", findAlways},
	{"a token that was never submitted is absent, with proof", findAbsent},

	{"a held job does not start until it is released", holdRelease},
	{"altering a job that is gone or has ended is no error", alterGone},
	{"a held job that is cancelled never starts", cancelHeld},
	{"a running job that is cancelled is CANCELLED", cancelRunning},
	{"cancelling what has ended, is unknown or empty is no error", cancelEnded},
	{"an id that is another token's job is not cancelled", cancelOther},

	{"logs are read while running and after, from any offset", logs},
	{"stderr is apart from stdout, or in it", stderrApart},
	{"a log of a job that has not started is ErrNoFile", logsBefore},
	{"a line of 40 MB is read in pieces, and its tail alone", logsHuge},

	{"outputs: a JSON object is kept byte for byte", outputsJSON},
	{"outputs: key=value lines are strings", outputsLines},
	{"outputs: none is nil", outputsNone},
	{"outputs: a job killed half-way leaves none", outputsKilled},
	{"outputs: what is no JSON object and no lines is refused", outputsRefused("[1, 2")},
	{"outputs: a JSON list is refused", outputsRefused("[1, 2]")},
	{"outputs: more than the limit is refused, not cut", outputsTooLarge},
	{"inputs reach the program byte for byte", inputs},

	{"arguments reach the program byte for byte", arguments},
	{"five thousand arguments reach the program", manyArguments},
	{"the environment reaches the program byte for byte", environment},
	{"nothing of the gateway's environment reaches the program", environmentClean},
	{"the program knows its job", identity},
	{"the prologue runs before the program, in its environment", prologue},
	{"a script without #! is bash's", scriptBash},
	{"a script's #! names its interpreter", scriptInterpreter},
	{"blank lines before a script's #! are dropped", scriptBlankLines},
	{"a byte order mark before a script's #! is dropped", scriptBOM},
	{"a script's #! line that ends in CRLF is refused before it is submitted", scriptCRLF},
}

// arrayRules hold where the cluster has native arrays, refusedArray where it has none.
var arrayRules = []rule{
	{"each instance of an array has its own end, log, outputs and environment", arrayInstances},
	{"one instance of an array is cancelled alone", arrayCancelOne},
	{"an array of some positions runs these alone", arrayPositions},
}

// folderRules hold where a job has a folder of its own.
var folderRules = []rule{
	{"a job whose folder has vanished is a success only if its program ran", missingJobFolder},
	{"Logs tells the files that stdout and stderr are in", logFiles},
}

// dependencyRules hold where the scheduler keeps dependencies, refusedDependencies where it does not.
var dependencyRules = []rule{
	{"afterok starts the job once its upstream has succeeded", afterOK},
	{"afterok withholds the job when its upstream has failed", afterOKFailed},
	{"afterany starts the job when its upstream has failed", afterAny},
	{"a dependency that can never hold is rewritten", rewriteDependency},
}

type rule struct {
	name string
	test func(*testing.T, *suite)
}

// suite is a running Fixture.
type suite struct {
	Fixture
	watcher *Watcher
}

// Run checks every rule.
func Run(t *testing.T, f Fixture) {
	// A job that inherits the gateway's environment would show it; see environmentClean.
	require.NoError(t, os.Setenv("DAGBRIDGE_GATEWAY_SECRET", "must not be seen"))
	s := &suite{Fixture: f, watcher: Watch(t, f.Backend)}
	sideBySide := append([]rule(nil), rules...)
	if f.Backend.Capabilities().MaxArraySize > 0 {
		sideBySide = append(sideBySide, arrayRules...)
	} else {
		sideBySide = append(sideBySide, rule{"a cluster without arrays refuses instances", refusedArray})
	}
	if f.Backend.Capabilities().Dependencies {
		sideBySide = append(sideBySide, dependencyRules...)
	} else {
		sideBySide = append(sideBySide, rule{"a cluster without dependencies refuses them", refusedDependencies})
	}
	if !f.LogsByCommand {
		sideBySide = append(sideBySide, folderRules...)
	}
	t.Run("side by side", func(t *testing.T) {
		for _, r := range sideBySide {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.test(t, s)
			})
		}
	})
	if f.FailNode != nil {
		t.Run("a job whose node fails is requeued, or FAILED as the infrastructure's doing", func(t *testing.T) { nodeFailure(t, s) })
	}
	t.Run("a gateway that stops and starts again ends no job and misses none", func(t *testing.T) { restart(t, s) })
}

// context of one call: no backend may take longer than the fixture's patience.
func (s *suite) context(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	t.Cleanup(cancel)
	return ctx
}
