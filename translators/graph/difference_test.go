package graph

import (
	"strings"
	"testing"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestFirstDifference(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	for _, test := range []struct {
		name   string
		change func(a, b *dagbridgev1.Task)
		want   string
	}{
		{"none", func(_, _ *dagbridgev1.Task) {}, ""},
		{"what execution does not see", func(_, b *dagbridgev1.Task) {
			b.Key.Run, b.TryNumber, b.Uid, b.MaxTries = "r2", 2, "u2", 5
			b.RetryWindow, b.Labels = durationpb.New(time.Second), map[string]string{"team": "y"}
		}, ""},
		{"an argument", func(a, b *dagbridgev1.Task) {
			a.Command.Argv, b.Command.Argv = []string{"x", "a"}, []string{"x", "b"}
		}, `command.argv[1]: "a" was submitted, "b" is asked for now`},
		{"an argument more", func(_, b *dagbridgev1.Task) { b.Command.Argv = append(b.Command.Argv, "--force") },
			`command.argv[1]: nothing was submitted, "--force" is asked for now`},
		{"an argument less", func(a, _ *dagbridgev1.Task) { a.Command.Argv = append(a.Command.Argv, "--force") },
			`command.argv[1]: "--force" was submitted, nothing is asked for now`},
		{"another program", func(_, b *dagbridgev1.Task) {
			b.Command, b.Script = nil, &dagbridgev1.Script{Text: "echo"}
		}, `command: something was submitted, nothing is asked for now`},
		{"far inside a long text", func(a, b *dagbridgev1.Task) {
			a.Script, b.Script = &dagbridgev1.Script{Text: long + "1" + long}, &dagbridgev1.Script{Text: long + "2" + long}
		}, `script.text: "…xxxxxxxxxxxxxxxx1` + strings.Repeat("x", 43) + `…" was submitted, "…xxxxxxxxxxxxxxxx2` + strings.Repeat("x", 43) + `…" is asked for now`},
		{"a secret", func(a, b *dagbridgev1.Task) {
			a.Env, b.Env = map[string]string{"A": "1", "TOKEN": "hush"}, map[string]string{"A": "1", "TOKEN": "tush"}
		}, `env["TOKEN"]: another value was submitted than is asked for now`},
		{"a secret of an instance", func(a, b *dagbridgev1.Task) {
			a.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{Env: map[string]string{"TOKEN": "hush"}}}}
			b.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}}}
		}, `array.items[0].env["TOKEN"]: another value was submitted than is asked for now`},
		{"an option", func(_, b *dagbridgev1.Task) {
			b.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{"constraint": "ib"}}
		}, `slurm: nothing was submitted, something is asked for now`},
		{"another option", func(a, b *dagbridgev1.Task) {
			a.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{"constraint": "ib"}}
			b.Slurm = &dagbridgev1.SlurmOptions{Options: map[string]string{"exclusive": ""}}
		}, `slurm.options["constraint"]: "ib" was submitted, nothing is asked for now`},
		{"a time", func(a, b *dagbridgev1.Task) {
			a.Resources = &dagbridgev1.Resources{TimeLimit: durationpb.New(time.Hour)}
			b.Resources = &dagbridgev1.Resources{TimeLimit: durationpb.New(time.Minute)}
		}, `resources.timeLimit: 1h0m0s was submitted, 1m0s is asked for now`},
		{"a number", func(_, b *dagbridgev1.Task) { b.SkipExitCodes = []int32{99} },
			`skipExitCodes[0]: nothing was submitted, 99 is asked for now`},
		{"a word", func(_, b *dagbridgev1.Task) { b.Launch = dagbridgev1.Task_PER_TASK },
			`launch: LAUNCH_UNSPECIFIED was submitted, PER_TASK is asked for now`},
		{"a truth", func(_, b *dagbridgev1.Task) { b.AtMostOnce = new(false) },
			`atMostOnce: true was submitted, false is asked for now`},
		{"a word nobody knows", func(_, b *dagbridgev1.Task) { b.Launch = 77 },
			`launch: LAUNCH_UNSPECIFIED was submitted, 77 is asked for now`},
		{"an edge", func(a, b *dagbridgev1.Task) {
			a.Upstream, b.Upstream = []*dagbridgev1.Edge{{Task: "a"}}, []*dagbridgev1.Edge{{Task: "b"}}
		}, `upstream[0].task: "a" was submitted, "b" is asked for now`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := dag("x")[0], dag("x")[0]
			test.change(a, b)
			beforeA, beforeB := proto.CloneOf(a), proto.CloneOf(b)
			require.Equal(t, test.want, FirstDifference(a, b))
			require.Equal(t, test.want == "", FirstDifference(b, a) == "")
			require.True(t, proto.Equal(beforeA, a) && proto.Equal(beforeB, b))
		})
	}
}
