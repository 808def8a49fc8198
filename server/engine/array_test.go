package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/store"
)

// An array of thousands is taken whole: each instance is listed, page by page, and found by its index.
func TestAnArrayOfThousands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := train(1, "u1", "simulate")
	task.Array = &dagbridgev1.Array{}
	const count = 5000
	for i := range count {
		task.Array.Items = append(task.Array.Items, &dagbridgev1.Array_Item{Argv: []string{fmt.Sprintf("%04d", i) + strings.Repeat("x", 196)}})
	}
	parent := b.submit(&dagbridgev1.SubmitTaskRequest{Task: task})
	require.Equal(t, map[string]int32{"ACCEPTED": count}, parent.GetCounts())

	seen := map[int32]string{}
	for token := ""; ; {
		jobs, next, _, err := b.store.List(&dagbridgev1.JobFilter{Parent: parent.GetId()}, store.MaxPageSize, token)
		require.NoError(t, err)
		for _, job := range jobs {
			seen[job.GetKey().GetMapIndex()[0]] = job.GetId()
		}
		if token = next; token == "" {
			break
		}
	}
	require.Len(t, seen, count)
	for _, index := range []int32{0, 2500, count - 1} {
		key := proto.CloneOf(parent.GetKey())
		key.MapIndex = []int32{index}
		job, err := b.store.Lookup(key, 0)
		require.NoError(t, err)
		require.Equal(t, seen[index], job.GetId())
	}
}
