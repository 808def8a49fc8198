package slurm

import (
	"maps"
	"slices"
)

// OptionNames are the options that a task may set.
func OptionNames() []string { return slices.Sorted(maps.Keys(options)) }
