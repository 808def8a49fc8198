package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxPosition is the greatest array index that any Slurm takes (MaxArraySize is 4,000,001 at most).
const maxPosition = 4_000_000

// ParseIDs reads a job id as squeue and sacct write it: "77", "77_3", "77_[2,5-6%4]", "77_[0-9:2]". Positions ascend.
func ParseIDs(s string) (base string, positions []int, isArray bool, err error) {
	base, rest, isArray := strings.Cut(s, "_")
	if n, err := strconv.ParseUint(base, 10, 32); err != nil || n == 0 || base[0] == '+' {
		return "", nil, false, fmt.Errorf("%q is no job id of Slurm's", s)
	}
	if !isArray {
		return base, nil, false, nil
	}
	list, bracketed := strings.CutPrefix(rest, "[")
	if bracketed {
		if list, bracketed = strings.CutSuffix(list, "]"); !bracketed {
			return "", nil, false, fmt.Errorf("%q is no job id of Slurm's: the bracket is not closed", s)
		}
		// How many may run at once says nothing about which there are.
		list, _, _ = strings.Cut(list, "%")
	} else if strings.Trim(rest, "0123456789") != "" {
		return "", nil, false, fmt.Errorf("%q is no job id of Slurm's", s)
	}
	positions, err = ParsePositions(list)
	if err != nil {
		return "", nil, false, fmt.Errorf("%q: %w", s, err)
	}
	return base, positions, true, nil
}

// ParsePositions reads array indices as Slurm writes them: "0-3,7", "0-9:2". They come back in ascending order, each once.
func ParsePositions(s string) ([]int, error) {
	var positions []int
	size := 0
	for term := range strings.SplitSeq(s, ",") {
		if term == "..." {
			return nil, errors.New("the list of array indices is cut short (set SLURM_BITSTR_LEN=0)")
		}
		span, by, stepped := strings.Cut(term, ":")
		low, high, ranged := strings.Cut(span, "-")
		if !ranged {
			high = low
		}
		step := 1
		from, ok := position(low)
		to, okTo := position(high)
		if stepped {
			var okStep bool
			step, okStep = position(by)
			ok = ok && okStep && ranged && step > 0
		}
		if !ok || !okTo || from > to {
			return nil, fmt.Errorf("%q is no list of array indices as Slurm writes them (\"0-3,7\")", s)
		}
		if size += (to-from)/step + 1; size > maxPosition+1 {
			return nil, errors.New("the list names more array indices than there can be")
		}
		for i := from; i <= to; i += step {
			positions = append(positions, i)
		}
	}
	slices.Sort(positions)
	return slices.Compact(positions), nil
}

func position(s string) (int, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= maxPosition
}

// FormatPositions writes ascending array indices as Slurm does: "0-3,7".
func FormatPositions(positions []int) string {
	var terms []string
	for i := 0; i < len(positions); {
		end := i
		for end+1 < len(positions) && positions[end+1] == positions[end]+1 {
			end++
		}
		term := strconv.Itoa(positions[i])
		if end > i {
			term += "-" + strconv.Itoa(positions[end])
		}
		terms = append(terms, term)
		i = end + 1
	}
	return strings.Join(terms, ",")
}
