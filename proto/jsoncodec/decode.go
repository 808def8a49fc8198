package jsoncodec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// decoder fills a message from a document, and goes on after a fault to find the others.
type decoder struct {
	cursor
	path   []byte
	faults Error
	// looseScalars: a number or a boolean is taken where a string is wanted, as written. So in YAML, where nobody quotes them.
	looseScalars bool
	elementsSeen int
}

// room counts an element of a list or a map, and says whether it is one of those that a document may have.
func (d *decoder) room() bool {
	if d.elementsSeen++; d.elementsSeen <= MaxElements {
		return true
	}
	if d.elementsSeen == MaxElements+1 {
		d.faults.add("", TooManyElements)
	}
	d.take()
	return false
}

func (d *decoder) fault(format string, args ...any) {
	d.faults.add(string(d.path), fmt.Sprintf(format, args...))
}

// refuse reports the next value and passes it.
func (d *decoder) refuse(format string, args ...any) {
	d.fault(format, args...)
	d.take()
}

// found names the kind of the next value.
func (d *decoder) found() string {
	switch d.peek() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (d *decoder) message(m protoreflect.Message) {
	md := m.Descriptor()
	switch {
	case md.FullName() == jsonFullName:
		d.json(m.Interface().(*dagbridgev1.Json))
		return
	case isWellKnown(md):
		d.wellKnown(m)
		return
	case d.peek() != '{':
		d.refuse("must be an object, not %s", d.found())
		return
	}
	seen := make([]bool, md.Fields().Len())
	parent := len(d.path)
	for name := range d.members() {
		d.path = AppendName(d.path, name)
		fd := md.Fields().ByJSONName(name)
		if fd == nil {
			fd = md.Fields().ByTextName(name)
		}
		switch {
		case fd == nil:
			d.refuse("unknown field; there are %s", fieldNames(md))
		case seen[fd.Index()]:
			d.refuse("is there twice")
		default:
			seen[fd.Index()] = true
			d.field(m, fd)
		}
		d.path = d.path[:parent]
	}
}

func fieldNames(md protoreflect.MessageDescriptor) string {
	if md.Fields().Len() == 0 {
		return "none here"
	}
	names := make([]string, md.Fields().Len())
	for i := range names {
		names[i] = md.Fields().Get(i).JSONName()
	}
	return strings.Join(names, ", ")
}

func (d *decoder) json(m *dagbridgev1.Json) {
	raw := d.take()
	if tooDeep(raw) {
		d.fault("is nested more than %d deep", maxDepth)
		return
	}
	m.Text = string(raw)
}

func (d *decoder) wellKnown(m protoreflect.Message) {
	raw := d.take()
	if protojson.Unmarshal(raw, m.Interface()) == nil {
		return
	}
	switch m.Descriptor().Name() {
	case "Duration":
		d.fault(`must be a duration in seconds such as "90s" or "0.5s", not %.100s`, raw)
	case "Timestamp":
		d.fault(`must be a time such as "2026-01-31T12:00:00Z", not %.100s`, raw)
	default:
		d.fault("must be a %s, not %.100s", m.Descriptor().FullName(), raw)
	}
}

// field takes the value of a field. Null means that the field is left out, unless it is Json, of which null is a value.
func (d *decoder) field(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	switch {
	case d.peek() == 'n' && (fd.IsList() || fd.IsMap() || !isJSON(fd)):
		d.take()
	case fd.IsList():
		d.list(fd, m.Mutable(fd).List())
	case fd.IsMap():
		d.entries(fd.MapValue(), m.Mutable(fd).Map())
	case fd.Kind() == protoreflect.MessageKind:
		d.message(m.Mutable(fd).Message())
	default:
		if v := d.scalar(fd); v.IsValid() {
			m.Set(fd, v)
		}
	}
}

func isJSON(fd protoreflect.FieldDescriptor) bool {
	return fd.Kind() == protoreflect.MessageKind && fd.Message().FullName() == jsonFullName
}

func (d *decoder) list(fd protoreflect.FieldDescriptor, list protoreflect.List) {
	if d.peek() != '[' {
		d.refuse("must be a list, not %s", d.found())
		return
	}
	parent := len(d.path)
	for i := range d.elements() {
		if !d.room() {
			continue
		}
		d.path = AppendIndex(d.path, i)
		if fd.Kind() == protoreflect.MessageKind {
			d.message(list.AppendMutable().Message())
		} else if v := d.scalar(fd); v.IsValid() {
			list.Append(v)
		}
		d.path = d.path[:parent]
	}
}

func (d *decoder) entries(value protoreflect.FieldDescriptor, entries protoreflect.Map) {
	if d.peek() != '{' {
		d.refuse("must be an object, not %s", d.found())
		return
	}
	parent := len(d.path)
	for name, ok := range d.members() {
		if !d.room() {
			continue
		}
		d.path = AppendName(d.path, name)
		key := protoreflect.ValueOfString(name).MapKey()
		switch {
		case !ok:
			d.refuse(`a key here has half of a surrogate pair (\ud800 to \udfff), which is no character`)
		case entries.Has(key):
			d.refuse("is there twice")
		case value.Kind() == protoreflect.MessageKind:
			d.message(entries.Mutable(key).Message())
		default:
			if v := d.scalar(value); v.IsValid() {
				entries.Set(key, v)
			}
		}
		d.path = d.path[:parent]
	}
}

// scalar takes a value; the result is invalid when it is refused.
func (d *decoder) scalar(fd protoreflect.FieldDescriptor) (v protoreflect.Value) {
	switch fd.Kind() {
	case protoreflect.StringKind:
		if s, ok := d.string("a string"); ok {
			v = protoreflect.ValueOfString(s)
		}
	case protoreflect.BoolKind:
		if c := d.peek(); c == 't' || c == 'f' {
			return protoreflect.ValueOfBool(d.take()[0] == 't')
		}
		d.refuse("must be true or false, not %s", d.found())
	case protoreflect.Int32Kind:
		if n, ok := d.integer(32); ok {
			v = protoreflect.ValueOfInt32(int32(n))
		}
	case protoreflect.Int64Kind:
		if n, ok := d.integer(64); ok {
			v = protoreflect.ValueOfInt64(n)
		}
	case protoreflect.DoubleKind:
		if f, ok := d.double(); ok {
			v = protoreflect.ValueOfFloat64(f)
		}
	case protoreflect.EnumKind:
		v = d.enum(fd.Enum())
	case protoreflect.BytesKind:
		if s, ok := d.string("a string in base64"); ok {
			b, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				d.fault("must be a string in base64: %v", err)
				return v
			}
			v = protoreflect.ValueOfBytes(b)
		}
	default:
		d.refuse("is of kind %s, which the protocol does not use", fd.Kind())
	}
	return v
}

func (d *decoder) string(want string) (string, bool) {
	switch c := d.peek(); {
	case c == '"':
		s, ok := unquote(d.take())
		if !ok {
			d.fault(`has half of a surrogate pair (\ud800 to \udfff), which is no character`)
		}
		return s, ok
	case d.looseScalars && c != '{' && c != '[' && c != 'n':
		return string(d.take()), true
	case c == '{' || c == '[' || c == 'n':
		d.refuse("must be %s, not %s", want, d.found())
		return "", false
	}
	found, raw := d.found(), d.take()
	d.fault(`must be %s, not %s: write "%s"`, want, found, raw)
	return "", false
}

// integer takes a number or, as 64-bit numbers are written, a string of one. 3.0 and 1e3 are integers too.
func (d *decoder) integer(bits int) (int64, bool) {
	found, raw := d.found(), d.take()
	text := string(raw)
	if raw[0] == '"' {
		text, _ = unquote(raw)
	}
	if n, err := strconv.ParseInt(text, 10, bits); err == nil && text[0] != '+' {
		return n, true
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.Trim(text, "0123456789+-.eE") == "" {
		const exact = 1 << 53 // Beyond it a float is no longer every integer.
		if n := int64(f); float64(n) == f && -exact <= f && f <= exact && (bits == 64 || int64(int32(n)) == n) {
			return n, true
		}
		d.fault("must be an integer of %d bits, not %.100s", bits, raw)
		return 0, false
	}
	if found == "a string" {
		found = fmt.Sprintf("%.100s", raw)
	}
	d.fault("must be an integer, not %s", found)
	return 0, false
}

// double takes a number, or a string of one.
func (d *decoder) double() (float64, bool) {
	found, raw := d.found(), d.take()
	text := string(raw)
	if raw[0] == '"' {
		text, _ = unquote(raw)
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case strings.Trim(text, "0123456789+-.eE") != "" || errors.Is(err, strconv.ErrSyntax):
		if found == "a string" {
			found = fmt.Sprintf("%.100s", raw)
		}
		d.fault("must be a number, not %s", found)
	case err != nil:
		d.fault("is larger than any number here can be: %.100s", raw)
	}
	return f, err == nil && strings.Trim(text, "0123456789+-.eE") == ""
}

func (d *decoder) enum(ed protoreflect.EnumDescriptor) (v protoreflect.Value) {
	if d.peek() == '"' {
		word, _ := unquote(d.take())
		if value := ed.Values().ByName(protoreflect.Name(word)); value != nil {
			return protoreflect.ValueOfEnum(value.Number())
		}
		d.fault("%.100q is none of %s", word, enumWords(ed))
		return v
	}
	if c := d.peek(); c == '-' || '0' <= c && c <= '9' {
		if n, ok := d.integer(32); ok {
			v = protoreflect.ValueOfEnum(protoreflect.EnumNumber(n))
		}
		return v
	}
	d.refuse("must be one of %s, not %s", enumWords(ed), d.found())
	return v
}

// enumWords leaves out the zero value, which stands for "left out".
func enumWords(ed protoreflect.EnumDescriptor) string {
	var words []string
	for i := 1; i < ed.Values().Len(); i++ {
		words = append(words, string(ed.Values().Get(i).Name()))
	}
	return strings.Join(words, ", ")
}
