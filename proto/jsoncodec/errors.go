package jsoncodec

import (
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// maxViolations bounds what a hostile document can make us say.
const maxViolations = 100

// Error is all that is wrong with a document, up to a hundred faults, in the order in which they are met. A violation's
// field is the path to it ("tasks[2].env[\"A=B\"]"), empty when the document as a whole is meant.
type Error struct {
	Violations []*errdetails.BadRequest_FieldViolation
}

type violation = *errdetails.BadRequest_FieldViolation

// Error lists all faults, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = v.GetDescription()
		if v.GetField() != "" {
			lines[i] = v.GetField() + ": " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

func (e *Error) add(field, description string) {
	if len(e.Violations) < maxViolations {
		e.Violations = append(e.Violations, &errdetails.BadRequest_FieldViolation{Field: field, Description: description})
	}
}

func (e *Error) orNil() error {
	if len(e.Violations) == 0 {
		return nil
	}
	return e
}

// AppendName appends the name of a field, or the key of a map, to a path: ".name" where it looks like a name, else
// ["any text"] in JSON's own quoting.
func AppendName(path []byte, name string) []byte {
	if !isName(name) {
		path = append(path, '[')
		path = appendString(path, name)
		return append(path, ']')
	}
	if len(path) > 0 {
		path = append(path, '.')
	}
	return append(path, name...)
}

// AppendIndex appends a position in a list to a path.
func AppendIndex(path []byte, i int) []byte {
	path = append(path, '[')
	path = strconv.AppendInt(path, int64(i), 10)
	return append(path, ']')
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
