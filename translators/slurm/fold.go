package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// Tasks whose job descriptions are equal go in as one array even when their programs differ. What is each element's own is
// then in a file of the job's folder, chosen by the index: in the script, of which Slurm keeps one for all and takes 4 MiB,
// it would have no room.

// isFolded says whether the instances have programs of their own.
func (t *translation) isFolded() bool {
	return t.isArray() && t.submission.Instances[0].Task != nil
}

// programs writes the files of the elements' own, and what reads them.
func (t *translation) programs(b *strings.Builder) {
	b.WriteString(readProgram)
	if t.submission.Task.GetWorkingDirectory() == "" {
		b.WriteString(ownFolder)
	}
	t.job.Files = make(map[string]string, len(t.submission.Instances))
	for _, i := range t.submission.Instances {
		own := *t
		own.submission.Task, own.submission.Instances = i.Task, nil
		own.script = own.userScript()
		own.container()
		var text strings.Builder
		fmt.Fprintf(&text, "# dagbridge job %s: %s\n", i.JobID, oneLine(i.Task.GetKey().GetTask()))
		own.own(&text, i.JobID, i.Task.GetKey(), i.Task.GetTryNumber())
		t.faults = own.faults
		t.job.Files["program_"+strconv.Itoa(i.Position)] = text.String()
	}
}

// readProgram waits for the file: another node may see it a little late.
const readProgram = `
# The program of each element is in a file of its own.
program_file=$dir/program_$SLURM_ARRAY_TASK_ID
for patience in 1 2 3 4 5 6 7 8 9 10 ''; do
  [ ! -r "$program_file" ] || break
  if [ -z "$patience" ]; then
    printf 'dagbridge: the file %s cannot be read on %s\n' "$program_file" "${SLURMD_NODENAME-}" >&2
    exit 122
  fi
  sleep 1
done
. "$program_file"
`

// ownFolder keeps the elements' files apart: each is a task that knows nothing of the others.
const ownFolder = `
workdir=$dir/$SLURM_ARRAY_TASK_ID
mkdir -p -- "$workdir"
`
