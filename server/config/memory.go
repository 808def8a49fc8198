package config

import (
	"fmt"

	"github.com/dagbridge/dagbridge/translators/graph"
)

// Memory is a number of bytes, written as in Kubernetes: "512Mi", "8Gi", "16G".
type Memory int64

// UnmarshalText reads a quantity; the error is a sentence.
func (m *Memory) UnmarshalText(text []byte) error {
	bytes, err := graph.Memory(string(text))
	if err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	if bytes == 0 {
		return fmt.Errorf("%q is no memory at all; leave it out to share all of the machine's", text)
	}
	*m = Memory(bytes)
	return nil
}
