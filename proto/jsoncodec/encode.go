package jsoncodec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

var jsonFullName = (*dagbridgev1.Json)(nil).ProtoReflect().Descriptor().FullName()

// isWellKnown: the messages that proto3 JSON writes in a way of their own.
func isWellKnown(md protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(string(md.FullName()), "google.protobuf.")
}

func appendMessage(b []byte, m protoreflect.Message) ([]byte, error) {
	md := m.Descriptor()
	if md.FullName() == jsonFullName {
		return appendJSON(b, m.Interface().(*dagbridgev1.Json).GetText())
	}
	if isWellKnown(md) {
		return appendWellKnown(b, m)
	}
	b = append(b, '{')
	fields := md.Fields()
	first := true
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.HasPresence() && !m.Has(fd) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, '"')
		b = append(b, fd.JSONName()...)
		b = append(b, '"', ':')
		var err error
		if b, err = appendField(b, fd, m.Get(fd)); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendJSON(b []byte, text string) ([]byte, error) {
	if text == "" {
		return append(b, "null"...), nil
	}
	start := len(b)
	b = append(b, text...)
	if !utf8.Valid(b[start:]) || !json.Valid(b[start:]) {
		return nil, fmt.Errorf("a value that should be JSON is not: %.100q", text)
	}
	return b, nil
}

func appendWellKnown(b []byte, m protoreflect.Message) ([]byte, error) {
	raw, err := protojson.Marshal(m.Interface())
	if err != nil {
		return nil, err
	}
	// protojson scatters spaces at random, lest anyone rely on its output.
	out := bytes.NewBuffer(b)
	if err := json.Compact(out, raw); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func appendField(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value) ([]byte, error) {
	switch {
	case fd.IsMap():
		return appendMap(b, fd.MapValue(), v.Map())
	case fd.IsList():
		return appendList(b, fd, v.List())
	}
	return appendValue(b, fd, v)
}

func appendList(b []byte, fd protoreflect.FieldDescriptor, list protoreflect.List) ([]byte, error) {
	b = append(b, '[')
	for i := range list.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, fd, list.Get(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, value protoreflect.FieldDescriptor, entries protoreflect.Map) ([]byte, error) {
	keys := make([]string, 0, entries.Len())
	entries.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		if !utf8.ValidString(key) {
			return nil, fmt.Errorf("a key of a map is no UTF-8: %q", key)
		}
		b = append(appendString(b, key), ':')
		var err error
		if b, err = appendValue(b, value, entries.Get(protoreflect.ValueOfString(key).MapKey())); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendValue(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value) ([]byte, error) {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return appendMessage(b, v.Message())
	case protoreflect.StringKind:
		if !utf8.ValidString(v.String()) {
			return nil, fmt.Errorf("%s is no UTF-8: %.100q", fd.FullName(), v.String())
		}
		return appendString(b, v.String()), nil
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, v.Bool()), nil
	case protoreflect.EnumKind:
		if word := fd.Enum().Values().ByNumber(v.Enum()); word != nil {
			return appendString(b, string(word.Name())), nil
		}
		return strconv.AppendInt(b, int64(v.Enum()), 10), nil
	case protoreflect.Int32Kind:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case protoreflect.Int64Kind:
		// A string, because JavaScript's numbers end at 2^53.
		b = append(b, '"')
		b = strconv.AppendInt(b, v.Int(), 10)
		return append(b, '"'), nil
	case protoreflect.DoubleKind:
		text, err := json.Marshal(v.Float()) // what is not finite has no JSON
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fd.FullName(), err)
		}
		return append(b, text...), nil
	case protoreflect.BytesKind:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, v.Bytes())
		return append(b, '"'), nil
	}
	return nil, fmt.Errorf("%s is of kind %s, which the protocol does not use", fd.FullName(), fd.Kind())
}

// appendString quotes UTF-8 and escapes what JSON demands, no more.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = fmt.Appendf(b, `\u%04x`, c)
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
