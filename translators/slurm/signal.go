package slurm

import (
	"strings"
)

// signalNames are those that sbatch knows, as a regular expression; it takes numbers too.
const signalNames = `(?:SIG)?(?:HUP|INT|QUIT|ABRT|KILL|ALRM|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU|XCPU)|[1-9][0-9]?`

// warning is a signal for the program, so many seconds after the job's start.
type warning struct {
	signal string
	after  int64
}

// signal takes the option of that name apart. With "B:" Slurm would send the signal to the job script, which is the wrapper,
// and slurmrestd 22.05 cannot say so at all: the wrapper sends it to the program itself, counting from the job's start.
func (t *translation) signal() {
	value, ok := t.job.Options["signal"]
	if !ok {
		return
	}
	field := `slurm.options["signal"]`
	rest, forProgram := strings.CutPrefix(value, "B:")
	if !forProgram {
		if !t.perTask() {
			t.notice(`%s: Slurm sends it to what srun has started, not to the job script's own program; say "B:%s", or use launch PER_TASK`, field, value)
		}
		return
	}
	delete(t.job.Options, "signal")
	name, seconds, timed := strings.Cut(rest, "@")
	before := integer(seconds)
	if !timed {
		before = 60 // as sbatch has it
	}
	limit := 60 * t.job.TimeLimitMinutes
	switch {
	case limit == 0:
		t.fault(field, "with \"B:\" it needs resources.timeLimit, from which the moment is counted")
	case before >= limit:
		t.fault(field, "%d s before the end of %d s the job has not started; say less", before, limit)
	default:
		t.warning = &warning{signal: name, after: limit - before}
		t.notice("%s: the program has it %d s after the start, also where somebody has changed the time limit since", field, limit-before)
	}
}
