package store

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestIntersect compares it with a look into every set, whatever budget it is given at a time.
func TestIntersect(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfDistinct(rapid.Byte(), func(b byte) byte { return b })
		drawn := rapid.SliceOfN(set, 1, 4).Draw(t, "sets")
		budget := rapid.IntRange(1, 20).Draw(t, "budget")
		sets := make([]source, len(drawn))
		for i, s := range drawn {
			var positions [][]byte
			for _, b := range s {
				positions = append(positions, []byte{b})
			}
			sets[i] = union{newIDs(positions), newIDs(nil)}
		}
		in := func(at []byte) bool {
			return !slices.ContainsFunc(drawn, func(s []byte) bool { return !bytes.Contains(s, at) })
		}
		var want, got [][]byte
		for b := 255; b >= 0; b-- {
			if in([]byte{byte(b)}) {
				want = append(want, []byte{byte(b)})
			}
		}
		for bound, more := []byte{0xff}, true; more; {
			left := budget
			at := intersect(sets, bound, &left)
			if at == nil {
				break
			}
			if left > 0 {
				require.True(t, in(at), "%v is not in all of %v", at, drawn)
			}
			if in(at) {
				got = append(got, at)
			}
			bound, more = pred(at)
		}
		require.Equal(t, want, got)
	})
}
