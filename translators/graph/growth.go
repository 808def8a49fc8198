package graph

import (
	"errors"
	"fmt"
	"math"
	"time"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxTimeLimit is the longest that the protocol lets a task ask for.
const maxTimeLimit = 366 * 24 * time.Hour

// GrownMemory is what to ask for after an amount of memory, as the task writes it, that was too little: in whole MiB, and not
// beyond the growth's max, which Check has found to be an amount.
func GrownMemory(memory string, g *dagbridgev1.Growth) string {
	asked, err := Memory(memory)
	most, maxErr := memoryMax(g)
	if err != nil || maxErr != nil || g.GetFactor() <= 1 {
		return memory
	}
	const unit = 1 << 20
	next := min(most, ceilTo(grown(asked, most, g), unit))
	if next <= asked {
		return memory
	}
	return memoryText(next)
}

// memoryText writes bytes with the largest unit that does: "1536Mi".
func memoryText(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// GrownTime is what to ask for after a time limit that was too short: in whole seconds, and not beyond the growth's max.
func GrownTime(limit time.Duration, g *dagbridgev1.Growth) time.Duration {
	most, err := timeMax(g)
	if err != nil || g.GetFactor() <= 1 {
		return limit
	}
	next := ceilTo(grown(int64(limit), int64(most), g), int64(time.Second))
	return max(limit, min(most, time.Duration(next)))
}

// grown is asked times the factor, most at most; so it never overflows.
func grown(asked, most int64, g *dagbridgev1.Growth) int64 {
	next := float64(asked) * g.GetFactor()
	if next >= float64(most) {
		return most
	}
	return int64(math.Round(next)) // 50Mi by 1.1 is 55Mi, and not a bit more
}

// ceilTo rounds up to a multiple of unit.
func ceilTo(n, unit int64) int64 {
	if rest := n % unit; rest > 0 {
		n += unit - rest
	}
	return n
}

func memoryMax(g *dagbridgev1.Growth) (int64, error) {
	if g.GetMax() == "" {
		return mostMemory.Value(), nil
	}
	return Memory(g.GetMax())
}

func timeMax(g *dagbridgev1.Growth) (time.Duration, error) {
	if g.GetMax() == "" {
		return maxTimeLimit, nil
	}
	d, err := time.ParseDuration(g.GetMax())
	switch {
	case err != nil:
		return 0, errors.New(`is no duration: write "86400s" or "24h"`)
	case d > maxTimeLimit:
		return 0, fmt.Errorf("is more than a year, %.0fs", maxTimeLimit.Seconds())
	}
	return d, nil
}

// AskingFor is a task with other memory, or another time limit, where they are given. All else it shares with the task: both
// are to be left as they are.
func AskingFor(t *dagbridgev1.Task, memory string, limit *durationpb.Duration) *dagbridgev1.Task {
	if memory == "" && limit == nil {
		return t
	}
	asking := Shallow(t)
	asking.Resources = proto.CloneOf(t.GetResources())
	if asking.Resources == nil {
		asking.Resources = &dagbridgev1.Resources{}
	}
	setIf(&asking.Resources.Memory, memory)
	setIf(&asking.Resources.TimeLimit, limit)
	return asking
}

func setIf[T comparable](field *T, value T) {
	var unset T
	if value != unset {
		*field = value
	}
}
