package airflow

import (
	_ "embed" // the fixed parts of the scripts
	"fmt"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

//go:embed pull.sh
var pullFunction string

//go:embed capture.sh
var capturing string

// program is what one instance runs: shell variables that are put together on the node, and an environment. All instances of a task have the
// same variables.
type program struct {
	variables []variable
	env       []variable
}

// variable has a value that may need other tasks' results. Several words are those of the positional parameters.
type variable struct {
	name  string
	words []jinja.Text
}

// positional is the name of the positional parameters.
const positional = "--"

// script is a job script that puts the programs' variables together, each instance its own, and goes on with the text after it.
func (x *translating) script(programs []program, then string) *dagbridgev1.Script {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n# %s %s of DAG %s.\n", x.operator.kind, oneLine(x.operator.id), oneLine(x.dag.id))
	if len(x.pulled) > 0 || x.from != nil {
		b.WriteString(pullFunction)
	}
	switch {
	case !x.isArray() || x.from != nil:
		programs[0].write(&b, "")
	default:
		b.WriteString("case $DAGBRIDGE_MAP_INDEX in\n")
		for i, p := range programs {
			fmt.Fprintf(&b, "%d)\n", i)
			p.write(&b, "  ")
			b.WriteString("  ;;\n")
		}
		b.WriteString("esac\n")
	}
	b.WriteString(then)
	return &dagbridgev1.Script{Text: b.String()}
}

func (p program) write(b *strings.Builder, indent string) {
	for _, v := range p.variables {
		if v.name == positional {
			fmt.Fprintf(b, "%sset --\n", indent)
		}
		for _, word := range v.words {
			v.write(b, indent, word, v.name == positional)
		}
	}
	for _, v := range p.env {
		for _, word := range v.words {
			v.write(b, indent, word, false)
		}
		fmt.Fprintf(b, "%sexport %s\n", indent, v.name)
	}
}

// write assigns a text to a variable, or adds it to the positional parameters.
func (v variable) write(b *strings.Builder, indent string, text jinja.Text, add bool) {
	name := v.name
	if add {
		name = "word"
	}
	if known, ok := text.String(); ok {
		if add {
			fmt.Fprintf(b, "%sset -- \"$@\" %s\n", indent, quote(known))
		} else {
			fmt.Fprintf(b, "%s%s=%s\n", indent, name, quote(known))
		}
		return
	}
	fmt.Fprintf(b, "%s%s=\n", indent, name)
	for _, part := range text {
		if part.Pull == nil {
			fmt.Fprintf(b, "%s%s+=%s\n", indent, name, quote(part.Text))
			continue
		}
		fmt.Fprintf(b, "%spull %s\n%s%s+=$pulled\n", indent, steps(*part.Pull), indent, name)
	}
	if add {
		fmt.Fprintf(b, "%sset -- \"$@\" \"$word\"\n", indent)
	}
}

// steps are pull's arguments.
func steps(p jinja.Pull) string {
	words := []string{"text", quote(p.Task)}
	if p.JSON {
		words[0] = "json"
	}
	for i, step := range p.Path {
		switch step := step.(type) {
		case ownIndex:
			if i == 0 { // of a mapped task
				words = append(words, `"@$DAGBRIDGE_MAP_INDEX"`)
			} else {
				words = append(words, `"$DAGBRIDGE_MAP_INDEX"`)
			}
		case int64:
			words = append(words, fmt.Sprint(step))
		case string:
			words = append(words, quote(step))
		}
	}
	return strings.Join(words, " ")
}

// quote is one word of a shell, byte for byte.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// allKnown: the texts need no other task's result.
func allKnown(vars ...variable) bool {
	for _, v := range vars {
		for _, word := range v.words {
			if _, known := word.String(); !known {
				return false
			}
		}
	}
	return true
}
