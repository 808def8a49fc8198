package jsoncodec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
)

// How large a document may become when its aliases and merges are written out; this stops the "billion laughs".
const (
	maxBytes = 64 << 20
	maxNodes = 5_000_000
)

// UnmarshalYAML reads a message from a file, YAML or JSON. Where a string is wanted a number or a boolean is taken as it is
// written (cpu: 4, version: 1.10), because nobody quotes them; all else is as strict as in JSON. Anchors, aliases and merge
// keys are understood. Numbers that YAML readers disagree on (010, 1_000, 0x1F) are refused. Errors are *Error, and
// say the line.
func UnmarshalYAML(b []byte, m proto.Message) error {
	if json.Valid(b) {
		return unmarshal(b, m, true)
	}
	root, err := parseYAML(b)
	if err != nil {
		return err
	}
	c := converter{lines: make(map[string]int)}
	c.value(root, 0)
	if err := c.faults.orNil(); err != nil {
		return err
	}
	err = unmarshal(c.out, m, true)
	var faults *Error
	if errors.As(err, &faults) {
		for _, v := range faults.Violations {
			v.Description = fmt.Sprintf("line %d: %s", c.lines[v.GetField()], v.GetDescription())
		}
	}
	return err
}

func parseYAML(b []byte) (*yaml.Node, error) {
	refuse := func(format string, args ...any) (*yaml.Node, error) {
		var e Error
		e.add("", fmt.Sprintf(format, args...))
		return nil, &e
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return refuse("the document is empty")
	} else if err != nil {
		return refuse("the document is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return refuse("there is more than one document: put each into a file of its own")
	}
	return doc.Content[0], nil
}

// converter writes a YAML tree as JSON, and remembers the line of everything by its path.
type converter struct {
	out    []byte
	path   []byte
	lines  map[string]int
	faults Error
	nodes  int
	full   bool
}

func (c *converter) fault(n *yaml.Node, format string, args ...any) {
	c.faults.add(string(c.path), fmt.Sprintf("line %d: ", n.Line)+fmt.Sprintf(format, args...))
}

// enter is asked before each node, and is false when there is too much of them.
func (c *converter) enter(n *yaml.Node, depth int) bool {
	c.nodes++
	switch {
	case c.full:
		return false
	case c.nodes > maxNodes || len(c.out) > maxBytes:
		c.full = true
		c.fault(n, "the document is larger than %d MiB or %d values with its aliases written out", maxBytes>>20, maxNodes)
		return false
	case depth > maxDepth:
		c.fault(n, "is nested more than %d deep", maxDepth)
		return false
	}
	return true
}

func (c *converter) value(n *yaml.Node, depth int) {
	if !c.enter(n, depth) {
		return
	}
	if _, seen := c.lines[string(c.path)]; !seen {
		c.lines[string(c.path)] = n.Line
	}
	switch n.Kind {
	case yaml.AliasNode:
		c.value(n.Alias, depth+1)
	case yaml.MappingNode:
		c.mapping(n, depth)
	case yaml.SequenceNode:
		c.out = append(c.out, '[')
		parent := len(c.path)
		for i, element := range n.Content {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			c.path = AppendIndex(c.path, i)
			c.value(element, depth+1)
			c.path = c.path[:parent]
		}
		c.out = append(c.out, ']')
	default:
		c.scalar(n)
	}
}

func (c *converter) mapping(n *yaml.Node, depth int) {
	c.out = append(c.out, '{')
	written := make(map[string]bool)
	c.members(n, written, depth, false)
	c.out = append(c.out, '}')
}

// members writes the members of a mapping and then those of the mappings it merges, as far as they are not there yet.
func (c *converter) members(n *yaml.Node, written map[string]bool, depth int, merged bool) {
	if !c.enter(n, depth) {
		return
	}
	parent := len(c.path)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			c.fault(key, "a key must be a word, not a list or a mapping")
			continue
		}
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		c.path = AppendName(c.path, key.Value)
		switch {
		case written[key.Value] && !merged:
			c.fault(key, "is there twice")
		case !written[key.Value]:
			if len(written) > 0 {
				c.out = append(c.out, ',')
			}
			written[key.Value] = true
			c.out = append(appendString(c.out, key.Value), ':')
			c.lines[string(c.path)] = key.Line
			c.value(value, depth+1)
		}
		c.path = c.path[:parent]
	}
	for _, m := range merges {
		c.merge(m, written, depth+1)
	}
}

func (c *converter) merge(n *yaml.Node, written map[string]bool, depth int) {
	if !c.enter(n, depth) {
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		c.members(n, written, depth, true)
	case yaml.SequenceNode:
		for _, element := range n.Content {
			c.merge(element, written, depth+1)
		}
	default:
		c.fault(n, "only mappings can be merged with <<")
	}
}

func (c *converter) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		c.out = append(c.out, "null"...)
	case "!!bool":
		c.out = append(c.out, strings.ToLower(n.Value)...)
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			c.fault(n, "%s is no plain decimal number, and readers of YAML differ on it: write one (0.5, -3, 1e6), or put it in quotes", n.Value)
			return
		}
		c.out = append(c.out, n.Value...)
	case "!!str", "!!timestamp":
		c.out = appendString(c.out, n.Value)
	default:
		c.fault(n, "%s is not understood: write it as a string", n.Tag)
	}
}
