package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Memory is a number of bytes, written as in Kubernetes: "512Mi", "8Gi", "16G".
type Memory int64

// UnmarshalText reads a quantity; the error is a sentence.
func (m *Memory) UnmarshalText(text []byte) error {
	q, err := resource.ParseQuantity(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an amount of memory; write it like 512Mi, 8Gi or 16G", text)
	}
	bytes := q.Value()
	if bytes <= 0 {
		return fmt.Errorf("%q is not an amount of memory above zero", text)
	}
	*m = Memory(bytes)
	return nil
}
