package slurm

import (
	"fmt"
	"strconv"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// Native is what Slurm's words on a job's state mean.
type Native struct {
	State dagbridgev1.Job_State
	// Reason is one word, as in dagbridgev1.Job; "" where the state says it all.
	Reason string
	// Infrastructure: the end is not the program's doing.
	Infrastructure bool
}

const (
	submitted = dagbridgev1.Job_SUBMITTED
	running   = dagbridgev1.Job_RUNNING
	failed    = dagbridgev1.Job_FAILED
)

// states of Slurm's, base states and flags, in the order in which one beats another: a job that is COMPLETED and COMPLETING
// has not left its node yet, one that is CANCELLED and REQUEUED is going to run again.
var states = []struct {
	long, short string
	native      Native
}{
	{"REQUEUED", "RQ", Native{State: submitted, Reason: "REQUEUED"}},
	{"REQUEUE_FED", "RF", Native{State: submitted, Reason: "REQUEUED"}},
	{"REQUEUE_HOLD", "RH", Native{State: submitted, Reason: "REQUEUED"}},
	{"SPECIAL_EXIT", "SE", Native{State: submitted, Reason: "SPECIAL_EXIT"}},
	{"EXPEDITING", "", Native{State: submitted, Reason: "REQUEUED"}},
	{"COMPLETING", "CG", Native{State: running}},
	{"STAGE_OUT", "SO", Native{State: running}},

	// The terminal words beat the exit code and each other: the worst of them is the cause.
	{"OUT_OF_MEMORY", "OOM", Native{State: failed, Reason: "OUT_OF_MEMORY"}},
	{"TIMEOUT", "TO", Native{State: failed, Reason: "TIMEOUT"}},
	{"DEADLINE", "DL", Native{State: failed, Reason: "DEADLINE"}},
	{"NODE_FAIL", "NF", Native{State: failed, Reason: "NODE_FAIL", Infrastructure: true}},
	{"PREEMPTED", "PR", Native{State: failed, Reason: "PREEMPTED", Infrastructure: true}},
	{"BOOT_FAIL", "BF", Native{State: failed, Reason: "BOOT_FAIL", Infrastructure: true}},
	{"LAUNCH_FAILED", "", Native{State: failed, Reason: "LAUNCH_FAILED", Infrastructure: true}},
	{"RECONFIG_FAIL", "", Native{State: failed, Reason: "RECONFIG_FAIL", Infrastructure: true}},
	{"CANCELLED", "CA", Native{State: dagbridgev1.Job_CANCELLED}},
	// The job runs in another cluster of the federation, where the gateway does not look.
	{"REVOKED", "RV", Native{State: dagbridgev1.Job_CANCELLED, Reason: "REVOKED"}},
	{"FAILED", "F", Native{State: failed}},
	{"COMPLETED", "CD", Native{State: dagbridgev1.Job_SUCCEEDED}},

	{"RESV_DEL_HOLD", "RD", Native{State: submitted, Reason: "RESV_DEL_HOLD"}},
	{"PENDING", "PD", Native{State: submitted}},
	{"SUSPENDED", "S", Native{State: running, Reason: "SUSPENDED"}},
	{"STOPPED", "ST", Native{State: running, Reason: "STOPPED"}},
	{"SIGNALING", "SI", Native{State: running}},
	{"RESIZING", "RS", Native{State: running}},
	// The nodes boot; the program has not started.
	{"CONFIGURING", "CF", Native{State: submitted, Reason: "CONFIGURING"}},
	{"POWER_UP_NODE", "", Native{State: submitted, Reason: "CONFIGURING"}},
	{"RUNNING", "R", Native{State: running}},
	// Accounting has still to hear of it.
	{"UPDATE_DB", "", Native{State: submitted}},
}

// State is what a word of Slurm's and the flags beside it mean, in the long or the short form, as squeue, sacct or
// slurmrestd write them ("CANCELLED by 500"). A word that the table does not know is false: it is never an end.
func State(word string, flags ...string) (Native, bool) {
	best := len(states)
	for _, w := range append([]string{word}, flags...) {
		i := stateIndex(w)
		if i < 0 {
			return Native{}, false
		}
		best = min(best, i)
	}
	return states[best].native, true
}

// stateIndex is a word's place in states, -1 when it has none.
func stateIndex(word string) int {
	// sacct says who cancelled.
	if cut, _, found := strings.Cut(word, " by "); found && cut == "CANCELLED" {
		word = cut
	}
	for i, s := range states {
		if word == s.long || word != "" && word == s.short {
			return i
		}
	}
	return -1
}

// Exit reads "status:signal", as accounting writes how a job ended. A signal gives exit code 128 + signal, as a shell has it.
func Exit(status string) (exitCode, signal *int32, err error) {
	code, sig, found := strings.Cut(status, ":")
	c, errCode := strconv.ParseInt(code, 10, 32)
	s, errSignal := strconv.ParseInt(sig, 10, 32)
	if !found || errCode != nil || errSignal != nil || c < 0 || s < 0 || s > 1<<30 {
		return nil, nil, fmt.Errorf("%q is not an exit status as Slurm writes it (\"0:9\")", status)
	}
	number := int32(c)
	if s == 0 {
		return &number, nil, nil
	}
	number, which := 128+int32(s), int32(s)
	return &number, &which, nil
}
