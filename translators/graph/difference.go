package graph

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// FirstDifference compares what is asked for now with what was submitted, both normalised, in all that matters to
// execution: not the key, the try and uid, how often the caller may try again, and the labels. It is empty when they are
// equal, and else names the first field that differs, with both values: `command.argv[1]: "a" was submitted, "b" is asked
// for now`. Values of the environment are not shown: they may be secrets, and the reader another person.
func FirstDifference(submitted, asked *dagbridgev1.Task) string {
	a, b := executed(submitted), executed(asked)
	if proto.Equal(a, b) {
		return ""
	}
	return messageDifference("", a.ProtoReflect(), b.ProtoReflect())
}

// executed is a task without what does not matter to its execution. It shares the rest.
func executed(t *dagbridgev1.Task) *dagbridgev1.Task {
	left := &dagbridgev1.Task{}
	t.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch field.Name() {
		case "key", "try_number", "uid", "max_tries", "retry_window", "labels":
		default:
			left.ProtoReflect().Set(field, value)
		}
		return true
	})
	if array := t.GetArray(); array.GetFrom() != nil { // its items are what has become of it
		left.Array = Shallow(array)
		left.Array.Items = nil
	}
	return left
}

func messageDifference(path string, a, b protoreflect.Message) string {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		at := field.JSONName()
		if path != "" {
			at = path + "." + at
		}
		difference := ""
		switch {
		case field.IsMap():
			difference = mapDifference(at, field, a.Get(field).Map(), b.Get(field).Map())
		case field.IsList():
			difference = listDifference(at, field, a.Get(field).List(), b.Get(field).List())
		case field.HasPresence() && a.Has(field) != b.Has(field):
			difference = said(at, field, presentOrNothing(a, field), presentOrNothing(b, field))
		default:
			difference = valueDifference(at, field, a.Get(field), b.Get(field))
		}
		if difference != "" {
			return difference
		}
	}
	return ""
}

func listDifference(at string, field protoreflect.FieldDescriptor, a, b protoreflect.List) string {
	for i := range max(a.Len(), b.Len()) {
		at := fmt.Sprintf("%s[%d]", at, i)
		var difference string
		switch {
		case i >= a.Len():
			difference = said(at, field, protoreflect.Value{}, b.Get(i))
		case i >= b.Len():
			difference = said(at, field, a.Get(i), protoreflect.Value{})
		default:
			difference = valueDifference(at, field, a.Get(i), b.Get(i))
		}
		if difference != "" {
			return difference
		}
	}
	return ""
}

func mapDifference(at string, field protoreflect.FieldDescriptor, a, b protoreflect.Map) string {
	var keys []string
	for _, m := range []protoreflect.Map{a, b} {
		m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
			keys = append(keys, key.String())
			return true
		})
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		at := fmt.Sprintf("%s[%s]", at, quote(key))
		k := protoreflect.ValueOfString(key).MapKey()
		old, asked := a.Get(k), b.Get(k)
		switch {
		case old.IsValid() && asked.IsValid() && old.Equal(asked):
		case field.Name() == "env":
			return at + ": another value was submitted than is asked for now"
		default:
			return said(at, field.MapValue(), old, asked)
		}
	}
	return ""
}

func valueDifference(at string, field protoreflect.FieldDescriptor, a, b protoreflect.Value) string {
	switch {
	case a.Equal(b):
		return ""
	case field.Message() != nil && !isDuration(field):
		return messageDifference(at, a.Message(), b.Message())
	}
	return said(at, field, a, b)
}

func said(at string, field protoreflect.FieldDescriptor, a, b protoreflect.Value) string {
	from := 0
	if field.Kind() == protoreflect.StringKind && a.IsValid() && b.IsValid() {
		from = commonPrefix(a.String(), b.String())
	}
	return fmt.Sprintf("%s: %s was submitted, %s is asked for now", at, show(field, a, from), show(field, b, from))
}

func presentOrNothing(m protoreflect.Message, field protoreflect.FieldDescriptor) protoreflect.Value {
	if !m.Has(field) {
		return protoreflect.Value{}
	}
	return m.Get(field)
}

func isDuration(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && field.Message().FullName() == "google.protobuf.Duration"
}

// show is a value for a sentence; of a long string the part in which it differs, from there on.
func show(field protoreflect.FieldDescriptor, v protoreflect.Value, from int) string {
	switch {
	case !v.IsValid():
		return "nothing"
	case isDuration(field):
		return v.Message().Interface().(*durationpb.Duration).AsDuration().String()
	case field.Message() != nil:
		return "something"
	case field.Enum() != nil:
		if value := field.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
	case field.Kind() == protoreflect.StringKind:
		const before, limit = 16, 60
		s := v.String()
		if len(s) <= limit {
			return strconv.Quote(s)
		}
		start := max(0, min(from-before, len(s)-limit))
		return strconv.Quote(cut(s, start, start+limit))
	}
	return v.String()
}

// cut is part of a string, at whole runes, with what is left out marked.
func cut(s string, start, end int) string {
	prefix, suffix := "…", "…"
	for start > 0 && !utf8.RuneStart(s[start]) {
		start--
	}
	if start == 0 {
		prefix = ""
	}
	if end >= len(s) {
		end, suffix = len(s), ""
	}
	for end < len(s) && end > start && !utf8.RuneStart(s[end]) {
		end--
	}
	return prefix + s[start:end] + suffix
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
