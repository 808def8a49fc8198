package kubernetes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dagbridge/dagbridge/translators"
)

// formatPositions writes an array's positions for PositionsAnnotation.
func formatPositions(instances []translators.Instance) string {
	words := make([]string, len(instances))
	for i, instance := range instances {
		words[i] = strconv.Itoa(instance.Position)
	}
	return strings.Join(words, ",")
}

// ParsePositions reads a PositionsAnnotation: the array position of each index; nil of "", which is no array's.
func ParsePositions(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var positions []int
	for word := range strings.SplitSeq(s, ",") {
		position, err := strconv.Atoi(word)
		if err != nil || position < 0 {
			return nil, fmt.Errorf("%q are no array positions", s)
		}
		positions = append(positions, position)
	}
	return positions, nil
}
