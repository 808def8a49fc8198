package translators

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxOutputName is how long the name of an output may be, in bytes.
const maxOutputName = 1024

// blank is what a line may have and be empty all the same.
const blank = " \t\n\v\f\r"

// Outputs reads what a program wrote as its outputs: a JSON object, or lines "name=value" whose values are taken as
// strings. It returns the object's JSON text, each value as it was written; nil when there is nothing. What is more than
// limit bytes, as written or as JSON, or is anything else, is refused, not cut and not repaired. Its errors are sentences.
func Outputs(raw []byte, limit int) ([]byte, error) {
	if len(raw) > limit {
		return nil, OutputsTooLarge(int64(len(raw)), limit)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the outputs are not UTF-8 text: write a JSON object, or lines name=value")
	}
	text := bytes.Trim(raw, " \t\n\r") // what JSON allows around a value
	switch {
	case len(bytes.Trim(raw, blank)) == 0:
		return nil, nil
	case text[0] == '{':
		if err := checkObject(text); err != nil {
			return nil, err
		}
		return text, nil
	case text[0] == '[' || text[0] == '"':
		// JSON by its look; that some of it would pass as lines is an accident.
		return nil, errors.New("the outputs are neither a JSON object nor lines name=value")
	}
	object, err := linesObject(string(raw))
	if err == nil && len(object) > limit {
		return nil, OutputsTooLarge(int64(len(object)), limit)
	}
	return object, err
}

// OutputsTooLarge refuses outputs by their size, which a reader may know without having read them.
func OutputsTooLarge(size int64, limit int) error {
	return fmt.Errorf("the outputs are %d bytes, and %d are the limit: write large results to a file, and its path to the outputs", size, limit)
}

func checkObject(text []byte) error {
	if err := validJSON(text); err != nil {
		return fmt.Errorf("the outputs begin as a JSON object but are none: %w", err)
	}
	members := json.NewDecoder(bytes.NewReader(text))
	if _, err := members.Token(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for members.More() {
		name, err := members.Token()
		if err != nil {
			return err
		}
		if err := checkName(name.(string), seen); err != nil {
			return err
		}
		var value json.RawMessage
		if err := members.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

// validJSON is json.Valid with the reason.
func validJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var value json.RawMessage
	err := decoder.Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%w, at byte %d", err, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is cut off")
	case err != nil:
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows it, at byte %d", len(value))
	}
	return nil
}

func linesObject(text string) ([]byte, error) {
	var object bytes.Buffer
	seen := map[string]bool{}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if strings.Trim(line, blank) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("the outputs are no JSON object, and their line %d is not name=value", number)
		}
		if err := checkName(name, seen); err != nil {
			return nil, err
		}
		separator := byte(',')
		if object.Len() == 0 {
			separator = '{'
		}
		object.WriteByte(separator)
		object.Write(quoteJSON(name))
		object.WriteByte(':')
		object.Write(quoteJSON(value))
	}
	object.WriteByte('}')
	return object.Bytes(), nil
}

func checkName(name string, seen map[string]bool) error {
	switch {
	case name == "":
		return errors.New("an output has no name")
	case len(name) > maxOutputName:
		return fmt.Errorf("the name of an output is %d bytes long, and %d are the limit", len(name), maxOutputName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name of the output %q has a control character", name)
	case seen[name]:
		return fmt.Errorf("the output %q is there twice", name)
	}
	seen[name] = true
	return nil
}

// quoteJSON writes a string as JSON with no more escapes than it needs.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string always encodes, and a buffer takes it
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
