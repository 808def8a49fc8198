package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	k8syaml "sigs.k8s.io/yaml"
)

// Text is the manifests as YAML, as a person would hand them to kubectl create -f. It is not made by way of JSON, as
// Kubernetes' own tools do it: they cannot write every character.
func (w *Workload) Text() string {
	var b strings.Builder
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	for _, o := range w.Objects {
		if err := encoder.Encode(node(o)); err != nil {
			panic(fmt.Sprintf("an API object has no YAML form: %v", err)) // JSON always has one
		}
	}
	return b.String()
}

// node is a JSON value as YAML.
func node(value any) *yaml.Node {
	n := &yaml.Node{}
	switch v := value.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		for _, name := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, node(name), node(v[name]))
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, element := range v {
			n.Content = append(n.Content, node(element))
		}
	case string:
		n.SetString(v)
		n.Style = style(v)
	default:
		if err := n.Encode(v); err != nil {
			panic(fmt.Sprintf("%T has no YAML form: %v", v, err)) // numbers, true, false and null have one
		}
	}
	return n
}

// style is how a string is written: as the lines that it has where YAML has no doubts about them, else in quotes, with escapes
// for all that is not seen.
func style(s string) yaml.Style {
	odd := strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == '\u00a0' || r == '\ufeff'
	})
	switch {
	case odd, strings.Contains(s, "\n") && strings.ContainsAny(s[:1], " \t\n"), strings.Contains(s, "\t") && !strings.Contains(s, "\n"):
		return yaml.DoubleQuotedStyle
	case strings.Contains(s, "\n"):
		return yaml.LiteralStyle
	}
	// "yes" and its like are something else to the older reader that Kubernetes has.
	var taken any
	if err := k8syaml.Unmarshal([]byte(s), &taken); err != nil || taken != s {
		return yaml.DoubleQuotedStyle
	}
	return 0
}
