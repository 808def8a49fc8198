package graph

import "fmt"

// nearest finds what somebody who misspelt a name may have meant. Looking costs time for each name there is, so it is done
// for the first few only, and for names that a person can have typed.
type nearest struct{ asked int }

const (
	maxHints     = 20
	maxHintBytes = 64
	maxDistance  = 3
)

// hint is the end of a sentence: `: did you mean "train"?`, or nothing.
func (n *nearest) hint(name string, names map[string]bool) string {
	if len(name) > maxHintBytes || n.asked == maxHints {
		return ""
	}
	n.asked++
	best, found := min(maxDistance, len(name)/2)+1, ""
	for candidate := range names {
		if len(candidate) > maxHintBytes {
			continue
		}
		d := distance(name, candidate, best)
		if d < best || d == best && found != "" && candidate < found {
			best, found = d, candidate
		}
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", quote(found))
}

// distance is how many bytes must be changed, added or left out to make one name of the other; at most limit+1.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return limit + 1
		}
	}
	return min(row[len(b)], limit+1)
}
