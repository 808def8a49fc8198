package graph

import (
	"testing"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"
)

func TestGrownMemory(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		asked  string
		factor float64
		max    string
		want   string
	}{
		{"16Gi", 2, "", "32Gi"},
		{"16Gi", 2, "24Gi", "24Gi"},
		{"24Gi", 2, "24Gi", "24Gi"},
		{"1Gi", 1.5, "", "1536Mi"},
		{"50Mi", 1.1, "", "55Mi"},
		{"50Mi", 1.3, "", "65Mi"},
		{"100M", 1.01, "", "97Mi"}, // whole MiB
		{"1G", 2, "1500M", "1500M"},
		{"4Gi", 0, "", "4Gi"},
		{"4Gi", 1, "", "4Gi"},
		{"1Ei", 100, "", "1Ei"},
		{"900Pi", 100, "", "1Ei"},
	} {
		got := GrownMemory(test.asked, &dagbridgev1.Growth{Factor: test.factor, Max: test.max})
		want, err := Memory(test.want)
		require.NoError(t, err)
		bytes, err := Memory(got)
		require.NoError(t, err, got)
		require.Equal(t, want, bytes, "%v: %s", test, got)
	}
	require.Equal(t, "100M", GrownMemory("100M", &dagbridgev1.Growth{Factor: 1}), "what does not grow is left as it was written")
}

func TestGrownTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		asked  time.Duration
		factor float64
		max    string
		want   time.Duration
	}{
		{time.Hour, 2, "", 2 * time.Hour},
		{time.Hour, 2, "5400s", 90 * time.Minute},
		{time.Hour, 2, "1h", time.Hour},
		{10 * time.Second, 1.25, "", 13 * time.Second},
		{time.Minute, 0, "", time.Minute},
		{300 * 24 * time.Hour, 100, "", 366 * 24 * time.Hour},
	} {
		require.Equal(t, test.want, GrownTime(test.asked, &dagbridgev1.Growth{Factor: test.factor, Max: test.max}), test)
	}
}

// However often a request grows, it never shrinks, never passes its max, and stays an amount.
func TestARequestGrowsWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const most = 1 << 40
		start := rapid.Int64Range(1, most).Draw(t, "bytes")
		g := &dagbridgev1.Growth{Factor: float64(rapid.IntRange(100, 10_000).Draw(t, "percent")) / 100, Max: "1Ti"}
		asked := memoryText(start)
		for before := start; ; {
			asked = GrownMemory(asked, g)
			now, err := Memory(asked)
			require.NoError(t, err)
			require.GreaterOrEqual(t, now, before)
			require.LessOrEqual(t, now, int64(most))
			if now == before {
				require.True(t, now == most || g.GetFactor() == 1, "%s grows no more by %v", asked, g.GetFactor())
				return
			}
			before = now
		}
	})
}

func TestATaskIsAskedForOtherwiseWithoutAChange(t *testing.T) {
	t.Parallel()
	task := &dagbridgev1.Task{
		Key: &dagbridgev1.TaskKey{Task: "a"}, Script: &dagbridgev1.Script{Text: "true"},
		Resources: &dagbridgev1.Resources{Cpu: "2", Memory: "1Gi", TimeLimit: durationpb.New(time.Minute)},
	}
	before := proto.CloneOf(task)
	require.Same(t, task, AskingFor(task, "", nil))
	more := AskingFor(task, "2Gi", nil)
	require.Equal(t, "2Gi", more.GetResources().GetMemory())
	require.Equal(t, time.Minute, more.GetResources().GetTimeLimit().AsDuration())
	require.Equal(t, "2", more.GetResources().GetCpu())
	require.Same(t, task.Script, more.Script)
	longer := AskingFor(task, "", durationpb.New(time.Hour))
	require.Equal(t, "1Gi", longer.GetResources().GetMemory())
	require.Equal(t, time.Hour, longer.GetResources().GetTimeLimit().AsDuration())
	require.True(t, proto.Equal(before, task))
}
