package config

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	// Line in the file, from 1; 0 when the configuration has none.
	Line int
	// Path of the value: "clusters[1].slurm.workDir".
	Path string
	// Text is a sentence: what is wrong and what to do.
	Text string
}

// Faults is all that is wrong with a configuration.
type Faults struct {
	// File the configuration was read from; empty when it was not.
	File string
	List []Fault
}

// Error lists the faults, one a line, in the order of the file.
func (f *Faults) Error() string {
	var b strings.Builder
	for i, fault := range f.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		if f.File != "" {
			b.WriteString(f.File + ":")
			if fault.Line > 0 {
				fmt.Fprintf(&b, "%d:", fault.Line)
			}
			b.WriteByte(' ')
		}
		if fault.Path != "" {
			b.WriteString(fault.Path + ": ")
		}
		b.WriteString(fault.Text)
	}
	return b.String()
}

func (f *Faults) add(line int, path, format string, args ...any) {
	f.List = append(f.List, Fault{Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}

// orNil is the faults in the order of the file, nil when there are none.
func (f *Faults) orNil() error {
	if len(f.List) == 0 {
		return nil
	}
	slices.SortStableFunc(f.List, func(a, b Fault) int { return a.Line - b.Line })
	return f
}
