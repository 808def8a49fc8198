// Package jsoncodec is the JSON form of the protocol, and the YAML form of its files.
//
// It is proto3 JSON with lowerCamelCase names and these choices: unknown and doubled fields are refused; enums are words;
// scalars, lists and maps are written even when they are zero or empty, while messages and optional fields that are not set
// are left out; output is compact and the same every time. The one departure is dagbridge.v1.Json: it is written as the JSON
// value that it holds, byte for byte, in both directions and wherever it occurs, so that 64-bit integers and 3.0 survive.
// That is why protojson cannot be used for whole messages; it is used for the well-known types.
//
// Every fault of a document is reported at once, with the path to it: see Error. The package knows no message of the
// protocol but Json, and checks shape only: what values mean is checked elsewhere.
package jsoncodec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
)

// maxDepth is how deeply a document may be nested; real ones, serialized DAGs included, stay below 50.
const maxDepth = 1000

// MaxElements is how many list items and map entries a document may have altogether: each takes many times the memory that it
// takes in the text. A DAG in which a thousand tasks wait for a thousand others has a million edges.
const MaxElements = 2_000_000

// TooManyElements is what is said of a document that has more.
var TooManyElements = fmt.Sprintf("has more than %d list items and map entries altogether: send it in parts", MaxElements)

// Marshal writes a message. It fails when a Json in it holds no JSON, or a string is no UTF-8.
func Marshal(m proto.Message) ([]byte, error) {
	return appendMessage(nil, m.ProtoReflect())
}

// Unmarshal reads a message from a document; what the message held before is lost. Errors are *Error.
func Unmarshal(b []byte, m proto.Message) error {
	return unmarshal(b, m, false)
}

func unmarshal(b []byte, m proto.Message, looseScalars bool) error {
	proto.Reset(m)
	if err := checkSyntax(b); err != nil {
		return err
	}
	d := decoder{cursor: cursor{text: b}, looseScalars: looseScalars}
	d.message(m.ProtoReflect())
	return d.faults.orNil()
}

// checkSyntax says where and why a text is no JSON document; after it a cursor may walk the text without looking back.
func checkSyntax(b []byte) error {
	if !utf8.Valid(b) {
		at := 0
		for r, size := utf8.DecodeRune(b); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(b[at:]) {
			at += size
		}
		return notJSON(b, at, "a byte that is no UTF-8")
	}
	if json.Valid(b) {
		return nil
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return notJSON(b, 0, "there is nothing")
	}
	var raw json.RawMessage
	err := json.Unmarshal(b, &raw)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return notJSON(b, int(syntax.Offset)-1, syntax.Error())
	}
	return notJSON(b, 0, err.Error())
}

func notJSON(b []byte, at int, why string) error {
	before := b[:min(max(at, 0), len(b))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	var e Error
	e.add("", fmt.Sprintf("the document is not JSON: line %d, column %d: %s", line, column, why))
	return &e
}
