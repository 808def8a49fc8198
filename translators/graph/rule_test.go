package graph

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// testdata/golden.json is what Airflow 3.3.2's own TriggerRuleDep decided for every rule and every multiset of one to three
// upstream states; "setup" lists the upstreams that are set-ups.
func TestDecideIsAirflows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var rows []struct {
		Rule     string
		Upstream []string
		Setup    []int
		Result   string
	}
	require.NoError(t, json.Unmarshal(text, &rows))
	require.Len(t, rows, 1106)

	states := map[string]dagbridgev1.Job_State{
		"success": succeeded, "failed": failed, "upstream_failed": upstreamFailed, "skipped": skipped, "running": running,
	}
	decisions := map[string]Decision{"run": Run, "wait": Wait, "skipped": Skip, "upstream_failed": UpstreamFail}
	rules := map[string]bool{}
	for _, row := range rows {
		var c Counts
		for i, word := range row.Upstream {
			state, ok := states[word]
			require.True(t, ok || word == "removed", word)
			c.Add(state, slices.Contains(row.Setup, i))
			if word == "removed" {
				c.Removed++
			}
		}
		want, ok := decisions[row.Result]
		require.True(t, ok, row.Result)
		require.Equal(t, want, Decide(row.Rule, c), "%s over %s, set-ups %v", row.Rule, strings.Join(row.Upstream, ", "), row.Setup)
		rules[row.Rule] = true
	}
	require.Len(t, rules, len(Rules()))
	for _, rule := range Rules() {
		require.True(t, rules[rule], rule)
	}
}

func TestDecideWithoutUpstream(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules() {
		require.Equal(t, Run, Decide(rule, Counts{}), rule)
	}
}

func TestDecideKnowsNoOtherRule(t *testing.T) {
	t.Parallel()
	require.Equal(t, Wait, Decide("dummy", Counts{Success: 1, Total: 1}))
}

func TestCancelledAndLostCountAsFailed(t *testing.T) {
	t.Parallel()
	for _, state := range []dagbridgev1.Job_State{failed, cancelled, lost} {
		var c Counts
		c.Add(state, true)
		require.Equal(t, Counts{Failed: 1, Total: 1, SetupTotal: 1}, c, state)
	}
}

func TestDecideIgnoresOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type upstream struct {
			state dagbridgev1.Job_State
			setup bool
		}
		ups := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) upstream {
			return upstream{rapid.SampledFrom(allStates()).Draw(t, "state"), rapid.Bool().Draw(t, "setup")}
		}), 0, 8).Draw(t, "upstreams")
		rule := rapid.SampledFrom(Rules()).Draw(t, "rule")
		decide := func(ups []upstream) Decision {
			var c Counts
			for _, u := range ups {
				c.Add(u.state, u.setup)
			}
			return Decide(rule, c)
		}
		require.Equal(t, decide(ups), decide(rapid.Permutation(ups).Draw(t, "permuted")))
		// Nor how many there are of a kind: natives relies on it.
		require.Equal(t, decide(ups), decide(append(ups, ups...)))
	})
}

// A rule that has decided does not change its mind when more upstreams end: decisions are acted upon at once. Airflow's
// early decisions have one exception, between its own two words for "it does not run".
func TestDecideIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(Rules()).Draw(t, "rule")
		ended := rapid.SliceOfN(rapid.SampledFrom(allStates()[4:]), 1, 6).Draw(t, "ends")
		some := rapid.IntRange(0, len(ended)).Draw(t, "ended so far")
		var early, late Counts
		for i, state := range ended {
			late.Add(state, false)
			if i >= some {
				state = running
			}
			early.Add(state, false)
		}
		before, after := Decide(rule, early), Decide(rule, late)
		if before != Wait {
			require.Equal(t, before == Run, after == Run, "%s: %v, then %v", rule, before, after)
		}
	})
}
