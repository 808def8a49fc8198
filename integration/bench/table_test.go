package bench

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
)

// line is one comparison.
type line struct {
	what string
	// than is what the gateway is measured against; empty: nothing, the aim is a figure.
	than       string
	ours, bare string
	ratio      float64
	aim        aim
}

// aim is what a ratio, or a figure without one, should be; the zero aim is none.
type aim struct {
	atMost, atLeast float64
}

func (a aim) String() string {
	switch {
	case a.atMost > 0:
		return "at most " + number(a.atMost)
	case a.atLeast > 0:
		return "at least " + number(a.atLeast)
	}
	return ""
}

// met answers in a word.
func (a aim) met(ratio float64) string {
	switch {
	case a == aim{}:
		return ""
	case a.atMost > 0 && ratio > a.atMost, a.atLeast > 0 && ratio < a.atLeast:
		return "missed"
	}
	return "met"
}

var table []line

// compare adds a line: rounds' figures of both, and the median of their ratios, the gateway's over the other's.
func compare(what, than, unit string, ours, bare []float64, aim aim) {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / bare[i]
	}
	table = append(table, line{what, than, number(median(ours)) + " " + unit, number(median(bare)) + " " + unit, median(ratios), aim})
}

// times adds a line on how many times less time, or other cost, the gateway takes.
func times(what, than, unit string, ours, bare []float64, aim aim) {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = bare[i] / ours[i]
	}
	table = append(table, line{what, than, number(median(ours)) + " " + unit, number(median(bare)) + " " + unit, median(ratios), aim})
}

// figure adds a line on a figure that is compared with nothing but its aim.
func figure(what, unit string, ours []float64, aim aim) {
	table = append(table, line{what: what, ours: number(median(ours)) + " " + unit, ratio: median(ours), aim: aim})
}

func median(some []float64) float64 {
	sorted := slices.Sorted(slices.Values(some))
	return sorted[len(sorted)/2]
}

// number keeps three digits.
func number(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// printTable prints nothing where no benchmark has run.
func printTable() {
	if len(table) == 0 {
		return
	}
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "what\tgateway\tmeasured against\t\tratio\taim\t")
	for _, l := range table {
		ratio := number(l.ratio)
		if l.than == "" {
			ratio = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.what, l.ours, cmp.Or(l.than, "-"), l.bare, ratio, l.aim, l.aim.met(l.ratio))
	}
	_ = w.Flush() // it is the standard output
}
