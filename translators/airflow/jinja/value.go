package jinja

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Value is what templates compute with; the package's doc comment lists the types.
type Value = any

// List is a list.
type List []Value

// tuple is what brackets or commas alone make. It can be looped over and looked into, no more.
type tuple []Value

// Dict is a mapping with text keys, in the order in which they came.
type Dict struct {
	keys   []string
	values map[string]Value
	// Missing answers for a key that is not there; nil: such a key is undefined.
	Missing func(key string) Value
}

// Set adds a member, or replaces it where it stands.
func (d *Dict) Set(key string, value Value) {
	if d.values == nil {
		d.values = map[string]Value{}
	}
	if _, there := d.values[key]; !there {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

// Get is a member.
func (d *Dict) Get(key string) (Value, bool) {
	if d == nil {
		return nil, false
	}
	value, ok := d.values[key]
	return value, ok
}

// Keys are those of all members, in order.
func (d *Dict) Keys() []string {
	if d == nil {
		return nil
	}
	return d.keys
}

// Object is something of Airflow's: it has attributes and no value of its own.
type Object struct {
	// Name is what it is called in a sentence.
	Name string
	Attr map[string]Value
	// Why an attribute that it has not is refused.
	Why string
}

// Args are the arguments of a call.
type Args struct {
	Positional List
	Named      map[string]Value
}

// Func is something that can be called. The name of a parameter that was given twice, or unknown, is its own business.
type Func func(Args) (Value, error)

// Take distributes arguments over parameters; a parameter that was not given is nil unless it is required. Names of required ones
// come first.
func (a Args) Take(required int, names ...string) ([]Value, error) {
	if len(a.Positional) > len(names) {
		return nil, fmt.Errorf("takes %d arguments at most", len(names))
	}
	values := make([]Value, len(names))
	given := make([]bool, len(names))
	for i, value := range a.Positional {
		values[i], given[i] = value, true
	}
	for name, value := range a.Named {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("has no argument %s", name)
		}
		if given[i] {
			return nil, fmt.Errorf("has its argument %s twice", name)
		}
		values[i], given[i] = value, true
	}
	for i, name := range names[:required] {
		if !given[i] {
			return nil, fmt.Errorf("needs its argument %s", name)
		}
	}
	return values, nil
}

// Refused is a variable, or an attribute, that exists in Airflow and cannot be known here: the reason, as the end of a sentence that
// begins with its name.
type Refused string

// Lazy is a variable, or an attribute, whose value is asked for when it is used.
type Lazy func() (Value, error)

// known is the value of a variable or an attribute.
func known(name string, v Value) (Value, error) {
	switch v := v.(type) {
	case Refused:
		return nil, fmt.Errorf("%s %s", name, v)
	case Lazy:
		value, err := v()
		if err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
		return value, nil
	}
	return v, nil
}

// Pull is the result of another task, which is known only when this one runs.
type Pull struct {
	// Task is its id.
	Task string
	// Path leads to a part of it: names and positions.
	Path List
	// JSON: written as JSON, not as text.
	JSON bool
}

// undefined is a name or a member that is not there.
type undefined struct{ what string }

func (u undefined) error() error { return fmt.Errorf("%s is undefined", u.what) }

// typeName is Python's word for a value's type.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "text"
	case List:
		return "a list"
	case tuple:
		return "a tuple"
	case *Dict:
		return "a dict"
	case Time:
		return "a date"
	case Delta:
		return "a timedelta"
	case *Object:
		return v.Name
	case Func:
		return "a function"
	}
	return "a value"
}

// usable is an error for what has no value to compute with.
func usable(v Value) error {
	switch v := v.(type) {
	case undefined:
		return v.error()
	case Pull:
		return fmt.Errorf("the result of task %s is known only when this task runs: it can stand by itself in {{ }}, "+
			"with [..] or | tojson after it, and nothing can be computed with it", v.Task)
	}
	return nil
}

// Truth is whether Python takes a value for true.
func truth(v Value) (bool, error) {
	if err := usable(v); err != nil {
		return false, err
	}
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case int64:
		return v != 0, nil
	case float64:
		return v != 0, nil
	case string:
		return v != "", nil
	case List:
		return len(v) > 0, nil
	case tuple:
		return len(v) > 0, nil
	case *Dict:
		return len(v.keys) > 0, nil
	case Delta:
		return v != 0, nil
	}
	return true, nil
}

// Str is a value as Python's str writes it. Errors are sentences.
func Str(v Value) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	return repr(v, 0)
}

// repr is a value as Python's repr writes it, but for dates and the like at the outermost level, where it is str's.
func repr(v Value, depth int) (string, error) {
	if depth > maxDepth {
		return "", errDepth
	}
	if err := usable(v); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case nil:
		return "None", nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return floatText(v), nil
	case string:
		return Quoted(v), nil
	case Time:
		if depth == 0 {
			return v.str(), nil
		}
	case Delta:
		if depth == 0 {
			return v.str(), nil
		}
	case List:
		parts := make([]string, len(v))
		for i, each := range v {
			part, err := repr(each, depth+1)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case *Dict:
		parts := make([]string, len(v.keys))
		for i, key := range v.keys {
			part, err := repr(v.values[key], depth+1)
			if err != nil {
				return "", err
			}
			parts[i] = Quoted(key) + ": " + part
		}
		return "{" + strings.Join(parts, ", ") + "}", nil
	}
	return "", fmt.Errorf("%s has no text of its own: name what is wanted of it", typeName(v))
}

// floatText is a float as Python writes it: as few digits as tell it apart.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// Quoted is a string as Python's repr writes it.
func Quoted(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || r > 0x7f && r < 0x100 && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// Time is a moment, in UTC.
type Time struct{ time.Time }

// Delta is a Python timedelta.
type Delta time.Duration
