package translators_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/translators"
)

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	var faults translators.Faults
	for range translators.MaxFaults + 10 {
		faults.Add("tasks[0]", "is %s", "wrong")
	}
	require.Len(t, faults, translators.MaxFaults)
	require.Equal(t, translators.Fault{Field: "tasks[0]", Description: "is wrong"}, faults[0])
}
