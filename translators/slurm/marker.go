package slurm

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Ending is what an exit marker says: how the wrapper saw the program end. It is evidence, for when the scheduler has
// forgotten the job, or its end; where the scheduler tells of the program, its word stands.
type Ending struct {
	// NativeID of the job that wrote it ("1234", "1234_7").
	NativeID string
	// Restarts is how often the job had been requeued.
	Restarts int
	// ExitCode of the job script; of a program that a signal ended, 128 + signal.
	ExitCode int32
	// Signalled: the wrapper was sent a signal before the program ended.
	Signalled bool
	EndTime   time.Time
	// Sentence is the wrapper's own word; "" when the program ended by itself.
	Sentence string
}

var errMarker = errors.New("the exit marker is damaged")

// ParseExitMarker reads the file at ExitMarker.
func ParseExitMarker(text []byte) (Ending, error) {
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !found {
			return Ending{}, errMarker
		}
		values[name] = value
	}
	code, errCode := strconv.ParseInt(values["exit"], 10, 32)
	end, errEnd := strconv.ParseInt(values["end"], 10, 64)
	restarts, errRestarts := strconv.Atoi(values["restart"])
	if errors.Join(errCode, errEnd, errRestarts) != nil || values["id"] == "" {
		return Ending{}, errMarker
	}
	return Ending{
		NativeID: values["id"], Restarts: restarts, ExitCode: int32(code), Signalled: values["signalled"] != "no", EndTime: time.Unix(end, 0).UTC(),
		Sentence: values["sentence"],
	}, nil
}
