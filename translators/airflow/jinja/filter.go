package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type filter func(Value, Args) (Value, error)

// filters are those that are supported. But for default and tojson they get usable values.
var filters map[string]filter

var tests map[string]func(Value) (bool, error)

// globals are the functions that Jinja itself has, as far as templates of DAGs use them.
var globals map[string]Value

func init() { // a table of these names would refer to itself
	filters = map[string]filter{
		"capitalize": caseFilter(capitalize),
		"count":      length,
		"d":          defaultFilter,
		"default":    defaultFilter,
		"ds":         dateFilter("%Y-%m-%d"),
		"ds_nodash":  dateFilter("%Y%m%d"),
		"first":      end(0),
		"float":      toFloat,
		"int":        toInt,
		"join":       join,
		"last":       end(-1),
		"length":     length,
		"list": func(v Value, args Args) (Value, error) {
			return noArguments(args, func() (Value, error) { return iterate(v) })
		},
		"lower":   caseFilter(strings.ToLower),
		"replace": replaceFilter,
		"string": func(v Value, args Args) (Value, error) {
			return noArguments(args, func() (Value, error) { return Str(v) })
		},
		"tojson":            toJSON,
		"trim":              trim,
		"ts":                timeFilter(Time.isoformat),
		"ts_nodash":         dateFilter("%Y%m%dT%H%M%S"),
		"ts_nodash_with_tz": timeFilter(Time.Compact),
		"upper":             caseFilter(strings.ToUpper),
	}
	is := func(holds func(Value) bool) func(Value) (bool, error) {
		return func(v Value) (bool, error) { return holds(v), usable(v) }
	}
	tests = map[string]func(Value) (bool, error){
		"defined":   defined,
		"undefined": func(v Value) (bool, error) { d, err := defined(v); return !d, err },
		"none":      is(func(v Value) bool { return v == nil }),
		"string":    is(func(v Value) bool { _, ok := v.(string); return ok }),
		"number":    is(func(v Value) bool { return number(v) != nil }),
		"mapping":   is(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"true":      is(func(v Value) bool { return v == true }),
		"false":     is(func(v Value) bool { return v == false }),
	}
	globals = map[string]Value{"range": Func(rangeOf)}
}

func noArguments(args Args, f func() (Value, error)) (Value, error) {
	if _, err := args.Take(0); err != nil {
		return nil, err
	}
	return f()
}

func defined(v Value) (bool, error) {
	if _, no := v.(undefined); no {
		return false, nil
	}
	return true, usable(v)
}

func caseFilter(f func(string) string) filter {
	return func(v Value, args Args) (Value, error) {
		return noArguments(args, func() (Value, error) {
			text, err := Str(v)
			if err != nil {
				return nil, err
			}
			return recased(text, f)
		})
	}
}

// recased changes between capital and small letters. Beyond ASCII Python has rules of its own (ß becomes SS).
func recased(text string, f func(string) string) (Value, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil, errors.New("letters beyond ASCII are not supported")
	}
	return f(text), nil
}

func capitalize(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.ToLower(s[1:])
}

func timeFilter(f func(Time) string) filter {
	return func(v Value, args Args) (Value, error) {
		return noArguments(args, func() (Value, error) {
			switch v := v.(type) {
			case nil:
				return nil, nil
			case Time:
				return f(v), nil
			}
			return nil, fmt.Errorf("is for dates, not for %s", typeName(v))
		})
	}
}

func dateFilter(format string) filter {
	return timeFilter(func(t Time) string {
		text, _ := t.strftime(format) // the format is one that it knows
		return text
	})
}

func defaultFilter(v Value, args Args) (Value, error) {
	given, err := args.Take(0, "default_value", "boolean")
	if err != nil {
		return nil, err
	}
	if given[0] == nil && len(args.Positional) == 0 {
		if _, named := args.Named["default_value"]; !named {
			given[0] = ""
		}
	}
	if _, no := v.(undefined); no {
		return given[0], nil
	}
	falsy, err := truth(given[1])
	if err != nil || !falsy {
		return v, err
	}
	holds, err := truth(v)
	if err != nil || holds {
		return v, err
	}
	return given[0], nil
}

func length(v Value, args Args) (Value, error) {
	return noArguments(args, func() (Value, error) {
		switch v := v.(type) {
		case string:
			return int64(utf8.RuneCountInString(v)), nil
		case List:
			return int64(len(v)), nil
		case tuple:
			return int64(len(v)), nil
		case *Dict:
			return int64(len(v.keys)), nil
		}
		return nil, fmt.Errorf("%s has no length", typeName(v))
	})
}

func end(at int64) filter {
	return func(v Value, args Args) (Value, error) {
		return noArguments(args, func() (Value, error) {
			list, err := iterate(v)
			if err != nil {
				return nil, err
			}
			if i := position(at, len(list)); i >= 0 {
				return list[i], nil
			}
			return undefined{"an element of something empty"}, nil
		})
	}
}

func join(v Value, args Args) (Value, error) {
	given, err := args.Take(0, "d")
	if err != nil {
		return nil, err
	}
	separator := ""
	if given[0] != nil {
		if separator, err = Str(given[0]); err != nil {
			return nil, err
		}
	}
	list, err := iterate(v)
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(list))
	size := 0
	for i, each := range list {
		if parts[i], err = Str(each); err != nil {
			return nil, err
		}
		if size += len(parts[i]) + len(separator); size > maxTemplate {
			return nil, errLarge
		}
	}
	return strings.Join(parts, separator), nil
}

func trim(v Value, args Args) (Value, error) {
	given, err := args.Take(0, "chars")
	if err != nil {
		return nil, err
	}
	text, err := Str(v)
	if err != nil {
		return nil, err
	}
	if given[0] == nil {
		return strings.TrimFunc(text, isSpace), nil
	}
	chars, ok := given[0].(string)
	if !ok {
		return nil, errors.New("its argument is text")
	}
	return strings.Trim(text, chars), nil
}

// isSpace is what Python's strip takes for white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func replaceFilter(v Value, args Args) (Value, error) {
	text, err := Str(v)
	if err != nil {
		return nil, err
	}
	return replace(text, args)
}

// replace is Python's str.replace.
func replace(text string, args Args) (Value, error) {
	given, err := args.Take(2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	from, ok := given[0].(string)
	to, ok2 := given[1].(string)
	if !ok || !ok2 {
		return nil, errors.New("replaces text by text")
	}
	count := -1
	if n, ok := given[2].(int64); ok {
		count = int(min(max(n, -1), maxTemplate))
	} else if given[2] != nil {
		return nil, errors.New("its count is a whole number")
	}
	if found := strings.Count(text, from); found > 0 && len(to) > 0 && found > maxTemplate/len(to) {
		return nil, errLarge
	}
	return strings.Replace(text, from, to, count), nil
}

func toInt(v Value, args Args) (Value, error) {
	return noArguments(args, func() (Value, error) {
		switch v := v.(type) {
		case int64:
			return v, nil
		case bool:
			if v {
				return int64(1), nil
			}
			return int64(0), nil
		case float64:
			if math.Abs(v) < 1<<62 {
				return int64(v), nil
			}
		case string:
			if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
				return n, nil
			}
		}
		return nil, fmt.Errorf("cannot make a whole number of %s", brief(v))
	})
}

func toFloat(v Value, args Args) (Value, error) {
	return noArguments(args, func() (Value, error) {
		switch v := v.(type) {
		case int64:
			return float64(v), nil
		case float64:
			return v, nil
		case string:
			if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && !strings.ContainsAny(v, "xXpP_") {
				return f, nil
			}
		}
		return nil, fmt.Errorf("cannot make a number of %s", brief(v))
	})
}

func brief(v Value) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%.40q", text)
	}
	return typeName(v)
}

// toJSON is Jinja's: keys in order, and what HTML would take for its own as escapes.
func toJSON(v Value, args Args) (Value, error) {
	return noArguments(args, func() (Value, error) {
		if pull, ok := v.(Pull); ok {
			pull.JSON = true
			return pull, nil
		}
		var b strings.Builder
		if err := writeJSON(&b, v, true, 0); err != nil {
			return nil, err
		}
		return b.String(), nil
	})
}

// JSON is a value as Python's json.dumps writes it, with keys in order.
func JSON(v Value) (string, error) {
	var b strings.Builder
	err := writeJSON(&b, v, false, 0)
	return b.String(), err
}

// writeJSON writes a value; for HTML with what that would take for its own as escapes.
func writeJSON(b *strings.Builder, v Value, html bool, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	if err := usable(v); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool, int64:
		fmt.Fprint(b, v)
	case float64:
		b.WriteString(floatText(v))
	case string:
		writeJSONText(b, v, html)
	case List:
		b.WriteByte('[')
		for i, each := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeJSON(b, each, html, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case *Dict:
		b.WriteByte('{')
		for i, key := range slices.Sorted(slices.Values(v.keys)) {
			if i > 0 {
				b.WriteString(", ")
			}
			writeJSONText(b, key, html)
			b.WriteString(": ")
			if err := writeJSON(b, v.values[key], html, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		return fmt.Errorf("%s is no JSON", typeName(v))
	}
	return nil
}

// writeJSONText writes ASCII alone, as Python does.
func writeJSONText(b *strings.Builder, s string, html bool) {
	b.WriteByte('"')
	for _, r := range s {
		short := strings.IndexRune("\"\\\b\f\n\r\t", r)
		switch {
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\bfnrt`[short])
		case r < ' ' || r > 0x7f && r < 0x10000 || html && strings.ContainsRune("<>&'", r):
			fmt.Fprintf(b, `\u%04x`, r)
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// maxRange is the longest range that Airflow's sandbox allows.
const maxRange = 100_000

func rangeOf(args Args) (Value, error) {
	given, err := args.Take(1, "start", "stop", "step")
	if err != nil {
		return nil, err
	}
	bounds := [3]int64{0, 0, 1}
	for i, v := range given {
		n, ok := v.(int64)
		if v != nil && !ok {
			return nil, fmt.Errorf("wants whole numbers, not %s", typeName(v))
		}
		if v != nil {
			bounds[i] = n
		}
	}
	if given[1] == nil {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return nil, errors.New("has the step 0")
	}
	list := List{}
	for at := start; step > 0 && at < stop || step < 0 && at > stop; at += step {
		if len(list) >= maxRange {
			return nil, fmt.Errorf("has more than %d elements", maxRange)
		}
		list = append(list, at)
	}
	return list, nil
}
