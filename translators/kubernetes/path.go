package kubernetes

import (
	"fmt"
	"slices"
	"strings"
)

// A path leads into an object: names with dots between them; "*" is every member of an object, or element of a list, and
// "[name=value]" behind a name those elements of its list that say so.

// step is one part of a path.
type step struct {
	// name of a member; "*": all.
	name string
	// field and value that an element of a list must have; field "": no list is meant, or every element.
	field, value string
}

// parsePath reads a path. Its error is the rest of a sentence that begins with it.
func parsePath(s string) ([]step, error) {
	var steps []step
	for s != "" {
		end := strings.IndexAny(s, ".[")
		if end < 0 {
			end = len(s)
		}
		one := step{name: s[:end]}
		if one.name == "" {
			return nil, fmt.Errorf("is not a path: write names with dots between them, as in spec.template")
		}
		s = s[end:]
		if strings.HasPrefix(s, "[") {
			inside, rest, closed := strings.Cut(s[1:], "]")
			field, value, equal := strings.Cut(inside, "=")
			if !closed || !equal && inside != "*" || field == "" {
				return nil, fmt.Errorf(`is not a path: between the brackets is a field and its value, as in conditions[type=Complete], or "*"`)
			}
			if one.field, one.value, s = field, value, rest; !equal {
				one.field = ""
			}
			if rest != "" && rest[0] != '.' {
				return nil, fmt.Errorf("is not a path: behind a bracket comes a dot")
			}
		}
		steps = append(steps, one)
		if s != "" {
			if s = s[1:]; s == "" {
				return nil, fmt.Errorf("is not a path: it ends with a dot")
			}
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("is empty")
	}
	return steps, nil
}

// place is where a path has led: a member of an object.
type place struct {
	in   map[string]any
	name string
}

func (p place) value() any { return p.in[p.name] }

// walk finds the places that a path leads to. Of its last member only the object that would have it must be there.
func walk(o map[string]any, steps []step) []place {
	here := []place{{map[string]any{"": o}, ""}}
	for i, s := range steps {
		var next []place
		for _, p := range here {
			for _, holder := range holders(p.value()) {
				for _, name := range names(holder, s.name) {
					at := place{holder, name}
					switch list, isList := at.value().([]any); {
					case isList && (s.field != "" || i+1 < len(steps)):
						for _, element := range list {
							if m, ok := element.(map[string]any); ok && (s.field == "" || fmt.Sprint(m[s.field]) == s.value) {
								next = append(next, place{map[string]any{"": m}, ""})
							}
						}
					case s.field == "":
						next = append(next, at)
					}
				}
			}
		}
		here = next
	}
	return here
}

// holders are the objects in a value: itself.
func holders(value any) []map[string]any {
	if m, ok := value.(map[string]any); ok {
		return []map[string]any{m}
	}
	return nil
}

// names are the members that a step means, in order.
func names(in map[string]any, name string) []string {
	if name != "*" {
		return []string{name}
	}
	var all []string
	for name := range in {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// condition holds when a path leads to a value.
type condition struct {
	path  []step
	value string
}

// parseCondition reads "path=value". Its error is the rest of a sentence that begins with it.
func parseCondition(s string) (condition, error) {
	end := strings.LastIndexByte(s, ']') + 1
	equal := strings.IndexByte(s[end:], '=')
	if equal < 0 {
		return condition{}, fmt.Errorf("is not a condition: write a path and the value there, as in status.phase=Succeeded")
	}
	path, err := parsePath(s[:end+equal])
	return condition{path: path, value: s[end+equal+1:]}, err
}

// where is the object whose member has the condition's value; false when there is none.
func (c condition) where(o map[string]any) (map[string]any, bool) {
	for _, at := range walk(o, c.path) {
		if value, ok := at.in[at.name]; ok && fmt.Sprint(value) == c.value {
			return at.in, true
		}
	}
	return nil, false
}
