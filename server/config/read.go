package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// lines says on which line the value of each path stands.
type lines map[string]int

// nearest is the line of a path, or of the innermost value around it that the file has.
func (l lines) nearest(path string) int {
	for {
		if line, ok := l[path]; ok {
			return line
		}
		end := strings.LastIndexAny(path, ".[")
		if end < 0 {
			return l[""]
		}
		path = path[:end]
	}
}

// reader puts a YAML tree into a struct. yaml's own decoder reports neither the path of a fault nor the place of a value
// that is well-formed and yet wrong, which is why it is not used.
type reader struct {
	faults *Faults
	lines  lines
}

func read(node *yaml.Node, into *Config, faults *Faults) lines {
	r := reader{faults: faults, lines: lines{}}
	r.value(node, reflect.ValueOf(into).Elem(), "")
	return r.lines
}

// defaulter is a part of the configuration with defaults of its own.
type defaulter interface{ setDefaults() }

func (r *reader) value(node *yaml.Node, v reflect.Value, path string) {
	r.lines[path] = node.Line
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		r.faults.add(node.Line, path, "anchors and aliases mean nothing here; write the value out")
		return
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if r.scalar(node, path, "a word") {
			if err := text.UnmarshalText([]byte(node.Value)); err != nil {
				r.faults.add(node.Line, path, "%s", err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if d, ok := v.Interface().(defaulter); ok {
			d.setDefaults()
		}
		if node.Tag != "!!null" { // "cli:" is as good as "cli: {}"
			r.value(node, v.Elem(), path)
		}
	case reflect.Struct:
		r.mapping(node, v, path)
	case reflect.Slice:
		r.sequence(node, v, path)
	default:
		r.plain(node, v, path)
	}
}

func (r *reader) mapping(node *yaml.Node, v reflect.Value, path string) {
	if node.Kind != yaml.MappingNode {
		r.faults.add(node.Line, path, "this is %s; a mapping with some of %s is wanted", kind(node), strings.Join(keys(v.Type()), ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field := join(path, key.Value)
		index, ok := fieldOf(v.Type(), key.Value)
		if !ok {
			r.faults.add(key.Line, field, "there is no such key; here are %s", strings.Join(keys(v.Type()), ", "))
			continue
		}
		if line, ok := seen[key.Value]; ok {
			r.faults.add(key.Line, field, "this key is on line %d already", line)
			continue
		}
		seen[key.Value] = key.Line
		r.value(value, v.Field(index), field)
	}
}

func (r *reader) sequence(node *yaml.Node, v reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		r.faults.add(node.Line, path, "this is %s; a list is wanted", kind(node))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
	for i, element := range node.Content {
		r.value(element, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (r *reader) plain(node *yaml.Node, v reflect.Value, path string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		if !r.scalar(node, path, "a duration") {
			return
		}
		d, err := time.ParseDuration(node.Value)
		if err != nil {
			r.faults.add(node.Line, path, "%q is not a duration; write it like 500ms, 5s, 10m or 2160h", node.Value)
		}
		v.SetInt(int64(d))
	case v.Kind() == reflect.Int:
		if !r.scalar(node, path, "a whole number") {
			return
		}
		n, err := strconv.Atoi(node.Value)
		if err != nil {
			r.faults.add(node.Line, path, "%q is not a whole number", node.Value)
		}
		v.SetInt(int64(n))
	case v.Kind() == reflect.Float64:
		if !r.scalar(node, path, "a number") {
			return
		}
		n, err := strconv.ParseFloat(node.Value, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			r.faults.add(node.Line, path, "%q is not a number", node.Value)
			return
		}
		v.SetFloat(n)
	case v.Kind() == reflect.Bool:
		if !r.scalar(node, path, "true or false") {
			return
		}
		if node.Tag != "!!bool" {
			r.faults.add(node.Line, path, "%q is neither true nor false", node.Value)
		}
		v.SetBool(strings.EqualFold(node.Value, "true"))
	default: // a string
		if r.scalar(node, path, "a word") {
			v.SetString(node.Value)
		}
	}
}

func (r *reader) scalar(node *yaml.Node, path, wanted string) bool {
	if node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
		return true
	}
	r.faults.add(node.Line, path, "this is %s; %s is wanted", kind(node), wanted)
	return false
}

func kind(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Tag == "!!null":
		return "empty"
	}
	return strconv.Quote(node.Value)
}

func keys(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("yaml")
	}
	return names
}

func fieldOf(t reflect.Type, key string) (int, bool) {
	for i, name := range keys(t) {
		if name == key {
			return i, true
		}
	}
	return 0, false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// within says whether a path is another one or leads into it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
