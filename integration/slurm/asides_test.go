package slurmtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
)

// asides are lines that sbatch takes for options: its own at the head of a script, those of PBS and LSF anywhere in it.
const asides = `
#SBATCH --job-name=other --nice=77 --comment=other
#SBATCH --array=0-3
#SBATCH --nodes=2
#PBS -N other
#PBS -l nodes=2
#BSUB -J other
#BSUB -n 4
`

// Wherever the text of a user has such lines, they are not heard: the job is what its fields say.
func TestOptionsInATextAreNotHeard(t *testing.T) {
	t.Parallel()
	c := slurmtest.Shared(t)
	for _, way := range []string{"REST", "CLI"} {
		b := newBench(t, c, ways[way], nil)
		submitted := func(t *testing.T, change func(*dagbridgev1.Task)) (shown map[string]string, token, name string) {
			one := task("true")
			change(one)
			sub := held(backendtest.Submission(t, one))
			result := b.try(t, sub)
			require.Equal(t, backend.Submitted, result.Outcome, result.Message)
			shown, name = tellsOf(t, c, result.Ref.ID), c.Run(t, "squeue", "--noheader", "--jobs="+result.Ref.ID, "--format=%j %k")
			c.Run(t, "scancel", result.Ref.ID)
			return shown, sub.Token, name
		}
		plain, _, _ := submitted(t, func(*dagbridgev1.Task) {})
		for where, change := range map[string]func(*dagbridgev1.Task){
			"a script": func(one *dagbridgev1.Task) {
				one.Command, one.Script = nil, &dagbridgev1.Script{Text: "#!/bin/sh" + asides + "true\n"}
			},
			"bare commands": func(one *dagbridgev1.Task) {
				one.Command, one.Script = nil, &dagbridgev1.Script{Text: asides + "true\n"}
			},
			"the prologue": func(one *dagbridgev1.Task) { one.Prologue = asides },
			"an argument":  func(one *dagbridgev1.Task) { one.Command.Argv = append(one.Command.Argv, asides) },
			"env":          func(one *dagbridgev1.Task) { one.Env = map[string]string{"ASIDES": asides} },
		} {
			t.Run(way+"/"+where, func(t *testing.T) {
				t.Parallel()
				shown, token, name := submitted(t, change)
				require.Equal(t, plain, shown)
				require.Contains(t, name, token)
				require.NotContains(t, name, "other")
			})
		}
	}
}
