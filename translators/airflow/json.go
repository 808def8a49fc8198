package airflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// maxDocument is the size of a serialized DAG; ten thousand tasks have a fifth of it.
const maxDocument = 32 << 20

// maxNesting is how deep its values may be nested.
const maxNesting = 200

// parseJSON reads one JSON value with the members of objects in their order, in which Airflow expands mapped tasks.
func parseJSON(text string) (jinja.Value, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("has %d bytes, and %d are taken at most", len(text), maxDocument)
	}
	if !json.Valid([]byte(text)) {
		return nil, errors.New("is not JSON")
	}
	r := &reader{text: text}
	return r.value(0)
}

// reader reads text that is known to be JSON.
type reader struct {
	text string
	at   int
}

func (r *reader) peek() byte {
	for {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r', ',', ':': // where the text is JSON, these two need no eye
			r.at++
		default:
			return c
		}
	}
}

func (r *reader) value(depth int) (jinja.Value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("is nested deeper than %d", maxNesting)
	}
	switch r.peek() {
	case '{':
		r.at++
		dict := &jinja.Dict{}
		for r.peek() != '}' {
			key, err := r.string()
			if err != nil {
				return nil, err
			}
			if _, twice := dict.Get(key); twice {
				return nil, fmt.Errorf("has the member %s twice", brief(key))
			}
			value, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			dict.Set(key, value)
		}
		r.at++
		return dict, nil
	case '[':
		r.at++
		list := jinja.List{}
		for r.peek() != ']' {
			value, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		r.at++
		return list, nil
	case '"':
		return r.string()
	}
	start := r.at
	for r.at < len(r.text) && !strings.ContainsRune(" \t\r\n,]}", rune(r.text[r.at])) {
		r.at++
	}
	switch word := r.text[start:r.at]; word {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return number(word)
	}
}

func number(word string) (jinja.Value, error) {
	if !strings.ContainsAny(word, ".eE") {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return n, nil
		}
		return nil, fmt.Errorf("has the number %s, which is too large", brief(word))
	}
	f, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return nil, fmt.Errorf("has the number %s, which is too large", brief(word))
	}
	return f, nil
}

func (r *reader) string() (string, error) {
	start := r.at
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	quoted := r.text[start:r.at]
	if !strings.Contains(quoted, `\`) && utf8.ValidString(quoted) {
		return quoted[1 : len(quoted)-1], nil
	}
	var text string
	err := json.Unmarshal([]byte(quoted), &text)
	return text, err
}

// brief is a text in quotes, cut where it is long.
func brief(text string) string {
	const most = 80
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
