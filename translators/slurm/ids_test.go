package slurm_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dagbridge/dagbridge/translators/slurm"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseIDs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][]int{
		"77_3":                     {3},
		"77_0":                     {0},
		"77_[2,5-6%4]":             {2, 5, 6},
		"77_[0-9:2]":               {0, 2, 4, 6, 8},
		"77_[0-9:3,10%1]":          {0, 3, 6, 9, 10},
		"77_[7]":                   {7},
		"77_[60-61,91,94-95,61]":   {60, 61, 91, 94, 95},
		"77_[3999999-4000000,1%1]": {1, 3999999, 4000000},
	} {
		base, positions, isArray, err := slurm.ParseIDs(s)
		require.NoError(t, err, s)
		require.Equal(t, "77", base, s)
		require.True(t, isArray, s)
		require.Equal(t, want, positions, s)
	}
	base, positions, isArray, err := slurm.ParseIDs("80")
	require.NoError(t, err)
	require.Equal(t, "80", base)
	require.Nil(t, positions)
	require.False(t, isArray)

	for _, s := range []string{
		"", "0", "x", "-1", "+7", "77.batch", "77+1", "77_", "77_x", "77_-1", "77_+1", "77_[", "77_[]", "77_[1", "77_1]", "77_[1-]",
		"77_[2-1]", "77_[1:2]", "77_[1-9:0]", "77_[1-5000000]", "77_[1,2,...]", "77_3_4", "99999999999", "77_99999999999999999999",
		"77_[0-4000000,0-4000000]", "77_[%4]", "77_[1-2-3]",
	} {
		_, _, _, err := slurm.ParseIDs(s)
		require.Error(t, err, s)
	}
	_, _, _, err = slurm.ParseIDs("77_[1,2,...]")
	require.ErrorContains(t, err, "cut short")
}

func TestPositionsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0-3,7", slurm.FormatPositions([]int{0, 1, 2, 3, 7}))
	rapid.Check(t, func(t *rapid.T) {
		positions := rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 1, 40, rapid.ID).Draw(t, "positions")
		slices.Sort(positions)
		_, got, _, err := slurm.ParseIDs("5_[" + slurm.FormatPositions(positions) + "%3]")
		require.NoError(t, err)
		require.Equal(t, positions, got)
	})
}

func FuzzParseIDs(f *testing.F) {
	for _, s := range []string{"77", "77_3", "77_[2,5-6%4]", "77_[0-9:2]", "77_[1,...]", "77_[0-4000000,0-4000000]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		base, positions, isArray, err := slurm.ParseIDs(s)
		if err != nil {
			return
		}
		_, err = strconv.ParseUint(base, 10, 32)
		require.NoError(t, err)
		require.Equal(t, isArray, strings.Contains(s, "_"))
		require.True(t, slices.IsSorted(positions))
	})
}
