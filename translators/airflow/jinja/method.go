package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// methodOf is a method of a value, nil if there is none of that name.
func methodOf(of Value, name string) Func {
	switch of := of.(type) {
	case string:
		return textMethod(of, name)
	case *Dict:
		return dictMethod(of, name)
	case Time:
		return timeMethod(of, name)
	}
	return nil
}

func textMethod(s, name string) Func {
	cases := func(f func(string) string) Func {
		return func(args Args) (Value, error) {
			return noArguments(args, func() (Value, error) { return recased(s, f) })
		}
	}
	strip := func(trimSpace func(string, func(rune) bool) string, trim func(string, string) string) Func {
		return func(args Args) (Value, error) {
			given, err := args.Take(0, "chars")
			if err != nil {
				return nil, err
			}
			if given[0] == nil {
				return trimSpace(s, isSpace), nil
			}
			chars, ok := given[0].(string)
			if !ok {
				return nil, errors.New("its argument is text")
			}
			return trim(s, chars), nil
		}
	}
	has := func(f func(string, string) bool) Func {
		return func(args Args) (Value, error) {
			given, err := args.Take(1, "what")
			if err != nil {
				return nil, err
			}
			what, ok := given[0].(string)
			if !ok {
				return nil, errors.New("its argument is text")
			}
			return f(s, what), nil
		}
	}
	switch name {
	case "lower":
		return cases(strings.ToLower)
	case "upper":
		return cases(strings.ToUpper)
	case "capitalize":
		return cases(capitalize)
	case "strip":
		return strip(strings.TrimFunc, strings.Trim)
	case "lstrip":
		return strip(strings.TrimLeftFunc, strings.TrimLeft)
	case "rstrip":
		return strip(strings.TrimRightFunc, strings.TrimRight)
	case "startswith":
		return has(strings.HasPrefix)
	case "endswith":
		return has(strings.HasSuffix)
	case "replace":
		return func(args Args) (Value, error) { return replace(s, args) }
	case "split":
		return func(args Args) (Value, error) { return split(s, args) }
	case "join":
		return func(args Args) (Value, error) {
			given, err := args.Take(1, "what")
			if err != nil {
				return nil, err
			}
			list, err := iterate(given[0])
			if err != nil {
				return nil, err
			}
			for _, each := range list {
				if _, ok := each.(string); !ok {
					return nil, fmt.Errorf("joins text, not %s", typeName(each))
				}
			}
			return join(list, Args{Positional: List{s}})
		}
	}
	return nil
}

func split(s string, args Args) (Value, error) {
	given, err := args.Take(0, "sep", "maxsplit")
	if err != nil {
		return nil, err
	}
	most := int64(-1)
	if given[1] != nil {
		n, ok := given[1].(int64)
		if !ok {
			return nil, errors.New("its maxsplit is a whole number")
		}
		most = n
	}
	var parts []string
	switch separator := given[0].(type) {
	case nil:
		if most >= 0 {
			return nil, errors.New("maxsplit without a separator is not supported")
		}
		parts = strings.FieldsFunc(s, isSpace)
	case string:
		if separator == "" {
			return nil, errors.New("its separator is empty")
		}
		if most < 0 || most >= maxTemplate {
			most = -2
		}
		parts = strings.SplitN(s, separator, int(most)+1)
	default:
		return nil, errors.New("its separator is text")
	}
	list := make(List, len(parts))
	for i, part := range parts {
		list[i] = part
	}
	return list, nil
}

func dictMethod(d *Dict, name string) Func {
	switch name {
	case "get":
		return func(args Args) (Value, error) {
			given, err := args.Take(1, "key", "default")
			if err != nil {
				return nil, err
			}
			key, ok := given[0].(string)
			if !ok {
				return nil, fmt.Errorf("a key is text, not %s", typeName(given[0]))
			}
			if v, there := d.Get(key); there {
				return v, nil
			}
			return given[1], nil
		}
	case "keys", "values", "items":
		return func(args Args) (Value, error) {
			return noArguments(args, func() (Value, error) {
				list := make(List, len(d.keys))
				for i, key := range d.keys {
					list[i] = map[string]Value{"keys": key, "values": d.values[key], "items": tuple{key, d.values[key]}}[name]
				}
				return list, nil
			})
		}
	}
	return nil
}

func timeMethod(t Time, name string) Func {
	switch name {
	case "strftime":
		return func(args Args) (Value, error) {
			given, err := args.Take(1, "format")
			if err != nil {
				return nil, err
			}
			format, ok := given[0].(string)
			if !ok {
				return nil, errors.New("its format is text")
			}
			return valueOf(t.strftime(format))
		}
	case "isoformat":
		return func(args Args) (Value, error) {
			return noArguments(args, func() (Value, error) { return t.isoformat(), nil })
		}
	case "to_date_string":
		return func(args Args) (Value, error) {
			return noArguments(args, func() (Value, error) { return valueOf(t.strftime("%Y-%m-%d")) })
		}
	case "to_datetime_string":
		return func(args Args) (Value, error) {
			return noArguments(args, func() (Value, error) { return valueOf(t.strftime("%Y-%m-%d %H:%M:%S")) })
		}
	case "add", "subtract":
		return func(args Args) (Value, error) {
			given, err := args.Take(0, "years", "months", "weeks", "days", "hours", "minutes", "seconds")
			if err != nil {
				return nil, err
			}
			var n [7]int64
			for i, v := range given {
				amount, ok := v.(int64)
				if v != nil && !ok || amount > maxAmount || amount < -maxAmount {
					return nil, errors.New("moves by whole numbers, and not by so many")
				}
				if n[i] = amount; name == "subtract" {
					n[i] = -amount
				}
			}
			return t.moved(n)
		}
	}
	return nil
}

func valueOf(text string, err error) (Value, error) { return text, err }
