package store

import (
	"bytes"
	"encoding/binary"

	"github.com/google/uuid"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// idLen is the length of an id in a key. The 16 bytes sort as their text does.
const idLen = 16

// parseID is the key form of an id. Only the form that ids are given out in is one.
func parseID(id string) ([]byte, bool) {
	u, err := uuid.Parse(id)
	if err != nil || u.String() != id {
		return nil, false
	}
	return u[:], true
}

// formatID is the inverse of parseID.
func formatID(key []byte) string { return uuid.UUID(key).String() }

// appendPart appends a text so that keys sort as the texts do and no part is a prefix of another: the byte 0 ends it, and 0
// and 1 within it are written as 1 1 and 1 2.
func appendPart(key []byte, part string) []byte {
	for i := range len(part) {
		if c := part[i]; c <= 1 {
			key = append(key, 1, c+1)
		} else {
			key = append(key, c)
		}
	}
	return append(key, 0)
}

// appendTaskKey appends a task key, the parts that lists filter by first.
func appendTaskKey(key []byte, k *dagbridgev1.TaskKey) []byte {
	for _, part := range []string{k.GetWorkflow(), k.GetRun(), k.GetTask(), k.GetDeployment(), k.GetOrchestrator()} {
		key = appendPart(key, part)
	}
	for _, i := range k.GetMapIndex() {
		key = appendInt32(append(key, 1), i)
	}
	return append(key, 0)
}

// appendInt32 appends a number in four bytes that sort as the numbers do.
func appendInt32(key []byte, n int32) []byte {
	return binary.BigEndian.AppendUint32(key, uint32(n)^1<<31)
}

// sortedInt32 is the inverse of appendInt32.
func sortedInt32(b []byte) int32 { return int32(binary.BigEndian.Uint32(b) ^ 1<<31) }

// pred makes a position the one just before it; false when there is none.
func pred(position []byte) ([]byte, bool) {
	p := bytes.Clone(position)
	for i := len(p) - 1; i >= 0; i-- {
		p[i]--
		if p[i] != 0xff {
			return p, true
		}
	}
	return nil, false
}
