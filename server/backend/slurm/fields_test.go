package slurm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files were printed with this word in the place of one that cannot be guessed.
const printed = "UNGUESSABLE"

func TestWhatSqueuePrintsIsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/squeue.txt")
	require.NoError(t, err)
	records := queueLayout{printed + fieldEnd}.parse(string(text))
	golden(t, "testdata/squeue.golden", describeAll(records))
	for _, r := range records {
		require.NotEqual(t, "99", r.id, "a line that a stranger's comment forges")
	}
}

func TestWhatSacctPrintsIsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/sacct.txt")
	require.NoError(t, err)
	golden(t, "testdata/sacct.golden", describeAll(parseAccounting(string(text), fieldEnd+printed+fieldEnd)))
}

func queueLine(fields ...string) string {
	return fields[0] + fieldEnd + printed + fieldEnd + strings.Join(fields[1:], fieldEnd) + fieldEnd + "\n"
}

// queued is a line of squeue's about a job in a state, whatever the rest.
func queued(id, state string) string {
	return queueLine(id, state, "None", "0", "(null)", "1796047082", "N/A", "Unknown", "", "5", "svc", "(null)", "x")
}

func TestArrayIDsComeInManySpellings(t *testing.T) {
	t.Parallel()
	text := queued("77_[2,5-6%4]", "PENDING") + queued("77_1", "RUNNING") + queued("77_0", "COMPLETED") + queued("80", "RUNNING")
	records := queueLayout{printed + fieldEnd}.parse(text)
	require.Len(t, records, 4)
	require.Equal(t, []int{2, 5, 6}, records[0].positions)
	require.Equal(t, []int{1}, records[1].positions)
	require.Equal(t, []int{0}, records[2].positions)
	require.Nil(t, records[3].positions)
	require.Equal(t, "80", records[3].id)
}

func TestALineThatCannotBeReadSpoilsNoOther(t *testing.T) {
	t.Parallel()
	text := queued("77_[2,5", "PENDING") + queueLine("78", "RUNNING", "too", "few") + "no line at all\n\n" + queued("what", "RUNNING") + queued("80", "RUNNING")
	records := queueLayout{printed + fieldEnd}.parse(text)
	require.Equal(t, []record{{id: "77", unread: true}, {id: "78", unread: true}, {id: "what", unread: true}},
		[]record{{id: records[0].id, unread: records[0].unread}, {id: records[1].id, unread: records[1].unread}, {id: records[2].id, unread: records[2].unread}})
	require.Len(t, records, 4)
	require.Equal(t, "80", records[3].id)
	require.False(t, records[3].unread)
}

func TestTimesThatAreNotSetAreZero(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "N/A", "Unknown", "None", "0", "-1", "2026-11-30T10:00:00", "99999999999999999999"} {
		require.True(t, epoch(text).IsZero(), text)
	}
	require.Equal(t, int64(1796047082), epoch("1796047082").Unix())
}

func TestExitCodesComeInTheReleasesShapes(t *testing.T) {
	t.Parallel()
	number := func(n int32) *int32 { return &n }
	for text, want := range map[string]struct{ exit, signal *int32 }{
		"0": {exit: number(0)}, "768": {exit: number(3)}, "9": {number(137), number(9)}, // 22.05
		"0:0": {exit: number(0)}, "3:0": {exit: number(3)}, "0:9": {number(137), number(9)}, // later
		"": {}, "N/A": {}, "3:": {}, ":9": {}, "-1:0": {},
	} {
		exit, signal := queueExit(text)
		require.Equal(t, want.exit, exit, text)
		require.Equal(t, want.signal, signal, text)
	}
}

func TestDependenciesAreTheIDsThatAreWaitedFor(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]struct{ ids, failed []string }{
		"": {},
		"afterok:1_*(unfulfilled),afterany:1_3(unfulfilled)": {ids: []string{"1", "1_3"}},
		"afterok:5(failed)":                                  {[]string{"5"}, []string{"5"}},
		"afterok:5_*(failed),afterok:6(unfulfilled)":         {[]string{"5", "6"}, []string{"5"}},
		"afterok:5(unfulfilled)?afterok:6:7":                 {ids: []string{"5", "6", "7"}},
		"after:8+1(unfulfilled),after:9+2(failed),singleton": {[]string{"8", "9"}, []string{"9"}},
		"afterok:9(unfulfilled),afterany:9(done)":            {ids: []string{"9"}},
		"afterok:1(unfulfilled),singleton(unfulfilled)":      {ids: []string{"1"}},
	} {
		r := record{dependency: expression}
		ids, failed := r.dependencies()
		require.Equal(t, want.ids, ids, expression)
		require.Equal(t, want.failed, failed, expression)
	}
}

func FuzzQueueLayout(f *testing.F) {
	text, err := os.ReadFile("testdata/squeue.txt")
	require.NoError(f, err)
	f.Add(string(text))
	f.Add(queued("77_[2,5-6%4]", "PENDING"))
	f.Fuzz(func(_ *testing.T, text string) {
		for _, r := range (queueLayout{printed + fieldEnd}).parse(text) {
			_, _ = r.native()
			_ = describe(r)
		}
		_ = fmt.Sprint(parseAccounting(text, fieldEnd+printed+fieldEnd))
	})
}
