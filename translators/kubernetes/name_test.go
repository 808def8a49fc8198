package kubernetes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/kubernetes"
)

// anything is a part of a key: mostly what people write, sometimes what nobody does.
func anything() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z0-9_./:+ -]{0,80}`), rapid.StringN(0, -1, 1024),
		rapid.SampledFrom([]string{"", "-", "train", "manual__2026-01-01T00:00:00+00:00", "1st", "a/b/c", "größe", "..", "a-abcdefghijklmnop", "A", "a"}),
	)
}

func aToken(t *rapid.T, name string) string {
	return rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.[1-9][0-9]?`).Draw(t, name)
}

func TestNamesAreValidAndNeverMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, other := anything().Draw(t, "one task"), anything().Draw(t, "another task")
		token, another := aToken(t, "token"), aToken(t, "another token")
		name := kubernetes.Name(one, token)
		// What controllers make of it must be valid too: names of services, and of a JobSet's pods.
		require.Empty(t, validation.IsDNS1035Label(name), name)
		require.Empty(t, validation.IsDNS1123Label(name+"-node-0-99999-abcde"), name)
		require.Empty(t, validation.IsDNS1123Label(fmt.Sprintf("%s-%d", name, kubernetes.MaxArraySize)), name)
		require.Equal(t, name, kubernetes.Name(one, token))
		if token != another {
			require.NotEqual(t, name, kubernetes.Name(other, another))
		}
	})
}

func TestNamesAreReadable(t *testing.T) {
	t.Parallel()
	for task, want := range map[string]string{
		"train":                        "train",
		"group.Train_Model":            "group-train-model",
		"for-loop-1/for-loop-2/sim":    "sim",
		"1st":                          "task-1st",
		"":                             "task",
		"训练":                           "task",
		"--a--b--":                     "a-b",
		"preprocess_all_the_customers": "preprocess-all-the-cust",
		"1234567890123456789012345":    "task-123456789012345678",
	} {
		require.Equal(t, want, strings.TrimSuffix(kubernetes.Name(task, token), "-"+kubernetes.Name("", token)[len("task-"):]), task)
	}
}

func TestLabelsAreValidAndNeverMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, other := anything().Draw(t, "one"), anything().Draw(t, "other")
		value := kubernetes.LabelValue(one)
		require.Empty(t, validation.IsValidLabelValue(value), value)
		if one != other {
			require.NotEqual(t, value, kubernetes.LabelValue(other))
		}
		require.NotEqual(t, one+"\n", kubernetes.LabelValue(one+"\n"))
		// The value of one text, used as another, is not that text's value.
		if value != one {
			require.NotEqual(t, value, kubernetes.LabelValue(value))
		}
	})
	require.Equal(t, "train_2.v1", kubernetes.LabelValue("train_2.v1"), "what is valid stays")
}

func TestKeysWithoutMeetingLabels(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := func(which string) *dagbridgev1.TaskKey {
			part := func(name string) string { return anything().Draw(t, which+name) }
			return &dagbridgev1.TaskKey{Deployment: part("deployment"), Orchestrator: part("orchestrator"), Workflow: part("workflow"), Run: part("run"),
				Task: part("task"), MapIndex: rapid.SliceOfN(rapid.Int32Min(0), 0, 3).Draw(t, which+"index")}
		}
		one, other := key("one "), key("other ")
		token := aToken(t, "token")
		for name, value := range kubernetes.Labels(one, token) {
			require.Empty(t, validation.IsQualifiedName(name))
			require.Empty(t, validation.IsValidLabelValue(value), name)
		}
		if one.String() != other.String() {
			require.NotEqual(t, kubernetes.Labels(one, token), kubernetes.Labels(other, token))
		}
	})
}

func FuzzLabelValue(f *testing.F) {
	for _, seed := range []string{"", "train", "a-abcdefghijklmnop", "größe", "-a", strings.Repeat("x", 64)} {
		f.Add(seed, seed+"_")
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		require.Empty(t, validation.IsValidLabelValue(kubernetes.LabelValue(one)))
		require.Empty(t, validation.IsDNS1035Label(kubernetes.Name(one, other)))
		if one != other {
			require.NotEqual(t, kubernetes.LabelValue(one), kubernetes.LabelValue(other))
		}
	})
}
