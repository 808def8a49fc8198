package graph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dagbridge/dagbridge/translators"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What follows says once more, independently and without counting, what rules and schedulers do, so that Natives can be held
// against it: over all states of a few upstreams, and over whole DAGs that are played through.

// An instance is in one of these states; "retrying" has failed and gets another attempt.
var simulated = []string{"live", "retrying", "success", "failed", "skipped", "upstream_failed"}

type seen struct {
	states []string
	setup  bool
}

// ruleSays is a trigger rule in words.
func ruleSays(rule string, upstreams []seen) string {
	var all, setups []string
	for _, u := range upstreams {
		all = append(all, u.states...)
		if u.setup {
			setups = append(setups, u.states...)
		}
	}
	anyOf := func(states []string, words ...string) bool {
		return slices.ContainsFunc(states, func(s string) bool { return slices.Contains(words, s) })
	}
	onlyOf := func(states []string, words ...string) bool {
		return !slices.ContainsFunc(states, func(s string) bool { return !slices.Contains(words, s) })
	}
	done := !anyOf(all, "live", "retrying")
	bad := anyOf(all, "failed", "upstream_failed")
	pick := func(cases ...any) string {
		for i := 0; i < len(cases); i += 2 {
			if cases[i].(bool) {
				return cases[i+1].(string)
			}
		}
		return "wait"
	}
	switch {
	case len(all) == 0 || rule == "always":
		return "run"
	case rule == "all_success":
		return pick(bad, "upstream_failed", anyOf(all, "skipped"), "skip", done, "run")
	case rule == "all_failed":
		return pick(anyOf(all, "success", "skipped"), "skip", done, "run")
	case rule == "all_done":
		return pick(done, "run")
	case rule == "all_done_min_one_success":
		return pick(anyOf(all, "skipped"), "skip", done && !anyOf(all, "success"), "upstream_failed", done, "run")
	case rule == "all_done_setup_success":
		return pick(!done, "wait", len(setups) == 0 || anyOf(setups, "success"), "run", onlyOf(setups, "skipped"), "skip", true, "upstream_failed")
	case rule == "one_success":
		return pick(anyOf(all, "success"), "run", onlyOf(all, "skipped"), "skip", done, "upstream_failed")
	case rule == "one_failed":
		return pick(bad, "run", done, "skip")
	case rule == "one_done":
		return pick(anyOf(all, "success", "failed"), "run", done, "skip")
	case rule == "none_failed":
		return pick(bad, "upstream_failed", done, "run")
	case rule == "none_failed_min_one_success":
		return pick(bad, "upstream_failed", onlyOf(all, "skipped"), "skip", done, "run")
	case rule == "none_skipped":
		return pick(anyOf(all, "skipped"), "skip", done, "run")
	case rule == "all_skipped":
		return pick(anyOf(all, "success") || bad, "skip", done, "run")
	}
	panic(rule)
}

// slurmSays whether a dependency on one job or one array is satisfied.
func slurmSays(kind translators.DependencyType, states []string) bool {
	if slices.Contains(states, "live") {
		return false
	}
	ok := !slices.ContainsFunc(states, func(s string) bool { return s != "success" })
	switch kind {
	case translators.AfterOK:
		return ok
	case translators.AfterNotOK:
		return !ok
	case translators.AfterAny:
		return true
	}
	panic(kind)
}

// every calls f with each choice of one of the options for each of n places.
func every(n int, options func(int) []string, f func([]string)) {
	var choose func(chosen []string)
	choose = func(chosen []string) {
		if len(chosen) == n {
			f(chosen)
			return
		}
		for _, option := range options(len(chosen)) {
			choose(append(slices.Clip(chosen), option))
		}
	}
	choose(nil)
}

// Over tasks without upstreams of their own, an edge is native if and only if some dependency expression, be its types as
// mixed as they may, starts the task in exactly those states of the upstreams in which the rule does.
func TestNativesFindsWhateverThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "upstreams")
		var lines []string
		upstreams := ""
		for i := range n {
			marks := rapid.SampledFrom([]string{"", "?", "+", "!", "?+", "!?"}).Draw(t, "marks")
			if i == 0 && rapid.Bool().Draw(t, "array") {
				marks += "*"
			}
			lines = append(lines, fmt.Sprintf("u%d%s", i, marks))
			upstreams += fmt.Sprintf(" u%d", i)
		}
		rule := rapid.SampledFrom(Rules()).Draw(t, "rule")
		tasks := dag(append(lines, "x "+rule+" <"+upstreams)...)
		verdict := Natives(onSlurm(tasks))[n]
		t.Logf("%v: %s", lines, verdict.word())

		// The places are instances: two stand for an array's three.
		var owner []int
		for i := range n {
			owner = append(owner, i)
			if tasks[i].GetArray() != nil {
				owner = append(owner, i)
			}
		}
		options := func(place int) []string {
			task := tasks[owner[place]]
			return slices.DeleteFunc(slices.Clone(simulated), func(s string) bool {
				return s == "upstream_failed" || s == "skipped" && len(task.GetSkipExitCodes()) == 0 || s == "retrying" && task.GetRetry() == nil
			})
		}
		perUpstream := func(chosen []string) []seen {
			split := make([]seen, n)
			for place, state := range chosen {
				split[owner[place]].states = append(split[owner[place]].states, state)
				split[owner[place]].setup = tasks[owner[place]].GetSetup()
			}
			return split
		}
		agrees := func(types []translators.DependencyType, anyOf bool) bool {
			same := true
			every(len(owner), options, func(chosen []string) {
				ups := perUpstream(chosen)
				satisfied := 0
				for i, u := range ups {
					if slurmSays(types[i], u.states) {
						satisfied++
					}
				}
				starts := satisfied == n || anyOf && satisfied > 0
				same = same && starts == (ruleSays(rule, ups) == "run")
			})
			return same
		}

		if rule == "always" {
			require.Equal(t, "", verdict.word())
			return
		}
		if !verdict.Held {
			types := make([]translators.DependencyType, n)
			for i, e := range verdict.Edges {
				require.True(t, e.Native)
				types[i] = e.Type
			}
			require.True(t, agrees(types, verdict.Any))
			return
		}
		words := []string{string(translators.AfterOK), string(translators.AfterNotOK), string(translators.AfterAny)}
		every(n, func(int) []string { return words }, func(chosen []string) {
			types := make([]translators.DependencyType, n)
			for i, word := range chosen {
				types[i] = translators.DependencyType(word)
			}
			for _, anyOf := range []bool{false, true} {
				require.False(t, agrees(types, anyOf), "any=%v %v would have done", anyOf, types)
			}
		})
	})
}

// Random DAGs are played through in random order; at every step, for every task that has not started and goes natively, the
// simulated scheduler wants to start it if and only if its rule does.
func TestNativesInWholeDAGs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(t, "tasks")
		var lines []string
		for i := range n {
			marks := rapid.SampledFrom([]string{"", "", "", "?", "+", "!", "*"}).Draw(t, "marks")
			line := fmt.Sprintf("t%d%s %s <", i, marks, rapid.SampledFrom(Rules()).Draw(t, "rule"))
			for j := range i {
				if rapid.IntRange(0, 2).Draw(t, "edge") > 0 {
					line += fmt.Sprintf(" t%d", j)
				}
			}
			lines = append(lines, line)
		}
		tasks := dag(lines...)
		verdicts := Natives(onSlurm(tasks))
		for i := range lines {
			t.Logf("%-40s %s", lines[i], verdicts[i].word())
		}

		started := make([]bool, n)
		states := make([][]string, n)
		for i, task := range tasks {
			states[i] = slices.Repeat([]string{"live"}, max(1, len(task.GetArray().GetItems())))
		}
		for {
			for changed := true; changed; {
				changed = false
				for i, task := range tasks {
					if started[i] || states[i][0] != "live" {
						continue
					}
					var ups []seen
					all, anyOf, edges := true, false, 0
					for j := range task.GetUpstream() {
						e := verdicts[i].Edges[j]
						ups = append(ups, seen{states[e.Upstream], tasks[e.Upstream].GetSetup()})
						if e.Native {
							ok := slurmSays(e.Type, states[e.Upstream])
							all, anyOf, edges = all && ok, anyOf || ok, edges+1
						}
					}
					said := ruleSays(task.GetTriggerRule(), ups)
					if !verdicts[i].Held {
						starts := all
						if verdicts[i].Any {
							starts = anyOf
						}
						require.Equal(t, said == "run", starts, "t%d: the rule says %s over %v", i, said, ups)
					}
					switch said {
					case "run":
						started[i], changed = true, true
					case "skip":
						states[i], changed = slices.Repeat([]string{"skipped"}, len(states[i])), true
					case "upstream_failed":
						states[i], changed = slices.Repeat([]string{"upstream_failed"}, len(states[i])), true
					}
				}
			}
			// One more thing happens to something that runs.
			type place struct{ task, instance int }
			var open []place
			for i := range tasks {
				for k, state := range states[i] {
					if started[i] && (state == "live" || state == "retrying") {
						open = append(open, place{i, k})
					}
				}
			}
			if len(open) == 0 {
				break
			}
			p := rapid.SampledFrom(open).Draw(t, "next")
			ends := []string{"success", "failed"}
			if len(tasks[p.task].GetSkipExitCodes()) > 0 {
				ends = append(ends, "skipped")
			}
			switch {
			case states[p.task][p.instance] == "retrying":
				// The next attempt is the last.
				tasks[p.task].Retry = nil
				ends = []string{"live"}
			case tasks[p.task].GetRetry() != nil:
				ends = append(ends, "retrying")
			}
			states[p.task][p.instance] = rapid.SampledFrom(ends).Draw(t, "becomes")
		}
		for i := range tasks {
			require.False(t, slices.Contains(states[i], "live"), "t%d waits for ever", i)
		}
	})
}
