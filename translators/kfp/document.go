package kfp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxText is how much of a pipeline is read. KFP's own API takes less.
	maxText = 4 << 20
	// maxNodes is how many values a pipeline may have once its aliases are written out.
	maxNodes = 400_000
	// maxDepth is how deep they may be nested.
	maxDepth = 200
)

// documents are those of a pipeline's text, each as JSON. YAML is read as KFP's own reader does: what is no number, bool or null
// by its look is text.
func documents(text string) ([]json.RawMessage, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the pipeline has %d bytes, and %d are taken at most", len(text), maxText)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var all []json.RawMessage
	w := writer{}
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		w.out.Reset()
		if err := w.write(&document, 0); err != nil {
			return nil, err
		}
		if text := bytes.Clone(w.out.Bytes()); !bytes.Equal(text, []byte("null")) {
			all = append(all, text)
		}
		if len(all) > 2 {
			return nil, errors.New("has more than two documents: a pipeline, and what it asks of its platform")
		}
	}
	if len(all) == 0 {
		return nil, errors.New("is empty")
	}
	return all, nil
}

// writer turns YAML into JSON.
type writer struct {
	out   bytes.Buffer
	nodes int
}

func (w *writer) write(n *yaml.Node, depth int) error {
	if w.nodes++; w.nodes > maxNodes {
		return fmt.Errorf("has more than %d values, its aliases written out", maxNodes)
	}
	if depth > maxDepth {
		return fmt.Errorf("line %d: is nested deeper than %d", n.Line, maxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.write(n.Content[0], depth)
	case yaml.AliasNode:
		return w.write(n.Alias, depth+1)
	case yaml.SequenceNode:
		return w.list(n, depth)
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.ScalarNode:
		return w.scalar(n)
	}
	w.out.WriteString("null") // an empty document
	return nil
}

func (w *writer) list(n *yaml.Node, depth int) error {
	w.out.WriteByte('[')
	for i, each := range n.Content {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.write(each, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	seen := make(map[string]bool, len(n.Content)/2)
	w.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a name is wanted", key.Line)
		}
		if seen[key.Value] {
			return fmt.Errorf("line %d: %s is there twice", key.Line, brief(key.Value))
		}
		seen[key.Value] = true
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.text(key.Value)
		w.out.WriteByte(':')
		if err := w.write(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

func (w *writer) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		var value bool
		if err := n.Decode(&value); err != nil {
			return fmt.Errorf("line %d: %s", n.Line, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		w.out.WriteString(strconv.FormatBool(value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			w.out.WriteString(n.Value) // as it was written: 64-bit integers survive
			return nil
		}
		var value float64
		if err := n.Decode(&value); err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
			return fmt.Errorf("line %d: %s is no number that JSON has", n.Line, brief(n.Value))
		}
		w.out.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	default:
		w.text(n.Value)
	}
	return nil
}

func (w *writer) text(value string) {
	quoted, _ := json.Marshal(value) // a string always has a JSON form
	w.out.Write(quoted)
}

// brief is a word of the input's in quotes, short enough for a sentence.
func brief(word string) string {
	const most = 100
	if len(word) > most {
		word = strings.ToValidUTF8(word[:most], "") + "..."
	}
	return strconv.Quote(word)
}
