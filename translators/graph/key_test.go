package graph

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

func drawKey(t *rapid.T, name string) *dagbridgev1.TaskKey {
	part := rapid.OneOf(
		rapid.StringMatching(`[a-c/%:\[0-9. +?#é]{1,4}`),
		rapid.StringOfN(rapid.Rune(), 1, 8, maxPartBytes).Filter(func(s string) bool {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
		}),
	)
	return &dagbridgev1.TaskKey{
		Deployment:   part.Draw(t, name+" deployment"),
		Orchestrator: part.Draw(t, name+" orchestrator"),
		Workflow:     part.Draw(t, name+" workflow"),
		Run:          part.Draw(t, name+" run"),
		Task:         part.Draw(t, name+" task"),
		MapIndex:     rapid.SliceOfN(rapid.Int32Min(0), 0, 3).Draw(t, name+" index"),
	}
}

func TestKeyStringTellsKeysApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKey(t, "a"), drawKey(t, "b")
		require.Equal(t, proto.Equal(a, b), KeyString(a) == KeyString(b))
		require.Equal(t, KeyString(a), KeyString(proto.CloneOf(a)))
	})
	split := &dagbridgev1.TaskKey{Run: "ab", Task: "c"}
	require.NotEqual(t, KeyString(split), KeyString(&dagbridgev1.TaskKey{Run: "a", Task: "bc"}))
	require.NotEqual(t, KeyString(&dagbridgev1.TaskKey{Task: "a", MapIndex: []int32{12}}),
		KeyString(&dagbridgev1.TaskKey{Task: "a", MapIndex: []int32{1, 2}}))
}

func TestFormatKeyRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := drawKey(t, "key")
		text := FormatKey(key)
		require.Len(t, strings.Split(text, "/"), 4+len(key.GetMapIndex()))
		parsed, err := ParseKey(text)
		require.NoError(t, err)
		key.Deployment = ""
		require.True(t, proto.Equal(key, parsed), "%v became %v", key, parsed)
	})
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"airflow/risk/manual__2026-01-01T00:00:00+00:00/train", ""},
		{"airflow/risk/r%2F1/train/3", ""},
		{"kfp/p/r/for-loop-1%2Fsim/3/0", ""},
		{"", `key "" is not of the form orchestrator/workflow/run/task[/index]: a slash inside a part is written %2F`},
		{"a/b/c", `key "a/b/c" is not of the form`},
		{"a/b//d", `the run is empty`},
		{"a/b/c/100%", `the task is not percent-encoded: a percent sign is written %25`},
		{"a/b/c/%00", `the task has a control character`},
		{"a/b/c/%ff", `the task is not UTF-8`},
		{"a/b/c/" + strings.Repeat("x", 1025), `the task has 1025 bytes, at most 1024 are allowed`},
		{"a/b/c/d/x", `the index "x" is not a number from 0 on`},
		{"a/b/c/d/-1", `the index "-1" is not a number from 0 on`},
		{"a/b/c/d/2147483648", `is not a number from 0 on`},
		{"a/b/c/d" + strings.Repeat("/1", 17), `is not of the form`},
	} {
		key, err := ParseKey(test.in)
		if test.want == "" {
			require.NoError(t, err, test.in)
			require.Equal(t, test.in, FormatKey(key))
			continue
		}
		require.ErrorContains(t, err, test.want)
		require.Nil(t, key)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"a/b/c/d", "a/b/c/d/1/2", "%2F/%25/:/..", "a/b/c/%", "////", "a/b/c/\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := ParseKey(s)
		if err != nil {
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		again, err := ParseKey(FormatKey(key))
		require.NoError(t, err)
		require.True(t, proto.Equal(key, again))
	})
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	own := &dagbridgev1.TaskKey{Deployment: "d", Orchestrator: "o", Workflow: "w", Run: "r", Task: "t", MapIndex: []int32{2}}
	other := &dagbridgev1.TaskKey{Deployment: "d2", Orchestrator: "o2", Workflow: "w2", Run: "r2", Task: "u", MapIndex: []int32{5}}
	task := &dagbridgev1.Task{Key: own}
	for _, test := range []struct {
		name string
		edge *dagbridgev1.Edge
		want *dagbridgev1.TaskKey
	}{
		{"a name", &dagbridgev1.Edge{Task: "u"}, &dagbridgev1.TaskKey{Deployment: "d", Orchestrator: "o", Workflow: "w", Run: "r", Task: "u"}},
		{"a name, same index", &dagbridgev1.Edge{Task: "u", Instances: dagbridgev1.Edge_SAME_INDEX},
			&dagbridgev1.TaskKey{Deployment: "d", Orchestrator: "o", Workflow: "w", Run: "r", Task: "u", MapIndex: []int32{2}}},
		{"a key", &dagbridgev1.Edge{Key: other}, other},
		{"a native job", &dagbridgev1.Edge{Native: &dagbridgev1.NativeJob{Cluster: "c", Id: "1"}}, nil},
	} {
		got := Upstream(task, test.edge)
		require.True(t, proto.Equal(test.want, got), "%s: %v", test.name, got)
	}
	require.Equal(t, []int32{5}, other.GetMapIndex(), "the edge's own key is left alone")
}
