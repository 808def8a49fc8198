// Package jinja renders the templates of Airflow's DAGs: the part of Jinja that people use in them, exactly as Jinja does it,
// and nothing else. What it does not know it refuses by name and line; it never renders something that Jinja would render
// differently.
//
// Values are Go's nil, bool, int64, float64 and string, and the types List, *Dict, Time, Delta, *Object, Func and Pull. A Pull is
// what only the running task will know, the result of another one: it can stand by itself in an expression, and then is a
// part of the rendered Text; nothing can be computed with it. Undefined names are errors, as in Airflow.
//
// The package is pure and bounded: a Renderer takes so many steps and no more, whatever a template says.
package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// Part is a piece of a rendered template: text, or what Pull stands for.
type Part struct {
	Text string
	Pull *Pull
}

// Text is a rendered template. Neighbouring pieces of text are one, none is empty.
type Text []Part

// String is the text, when all of it is known.
func (t Text) String() (text string, known bool) {
	switch {
	case len(t) == 0:
		return "", true
	case len(t) == 1 && t[0].Pull == nil:
		return t[0].Text, true
	}
	return "", false
}

// Add appends a piece.
func (t *Text) Add(p Part) {
	last := len(*t) - 1
	switch {
	case p.Pull == nil && p.Text == "":
	case p.Pull == nil && last >= 0 && (*t)[last].Pull == nil:
		(*t)[last].Text += p.Text
	default:
		*t = append(*t, p)
	}
}

// Literal is a text that is known.
func Literal(text string) Text {
	if text == "" {
		return nil
	}
	return Text{{Text: text}}
}

// maxSteps is what one Renderer may do; a step is an evaluated expression, or 64 bytes that one makes.
const maxSteps = 1_000_000

// maxTemplate is the size of a template, and of what it renders to.
const maxTemplate = 1 << 20

// maxDepth is how deep expressions and blocks may be nested.
const maxDepth = 100

var (
	errSteps = errors.New("the templates take too long to render")
	errLarge = fmt.Errorf("a template makes more than %d bytes", maxTemplate)
	errDepth = fmt.Errorf("is nested deeper than %d", maxDepth)
)

// Renderer renders templates with some variables.
type Renderer struct {
	vars   map[string]Value
	parent *Renderer
	steps  *int
}

// NewRenderer makes one. A variable of type Refused is an error with that reason wherever it is used, and one of type Lazy is asked.
func NewRenderer(vars map[string]Value) *Renderer { return &Renderer{vars: vars, steps: new(int)} }

// With is a renderer with more variables, or others. It takes its steps from the same number.
func (r *Renderer) With(vars map[string]Value) *Renderer {
	return &Renderer{vars: vars, parent: r, steps: r.steps}
}

func (r *Renderer) variable(name string) (Value, bool) {
	for ; r != nil; r = r.parent {
		if v, there := r.vars[name]; there {
			return v, true
		}
	}
	return nil, false
}

// Plain says of a template that it is its own text: it has nothing for a renderer to do.
func Plain(source string) bool {
	return !strings.ContainsAny(source, "{\r") || !strings.Contains(source, "{{") && !strings.Contains(source, "{%") && !strings.Contains(source, "{#") && !strings.Contains(source, "\r")
}

// Render renders a template. Errors are sentences; they name the line of a template that has several.
func (r *Renderer) Render(source string) (Text, error) {
	if len(source) > maxTemplate {
		return nil, errLarge
	}
	if Plain(source) {
		return Literal(strings.TrimSuffix(source, "\n")), nil
	}
	body, err := parseTemplate(source)
	if err != nil {
		return nil, err
	}
	s := &state{renderer: r, locals: map[string]Value{}}
	if err := body.run(s); err != nil {
		return nil, err
	}
	// Pieces were gathered apart, so that many small ones cost no more than one large one.
	return s.out.text(), nil
}

// Eval evaluates one expression. Literals of Python are literals of Jinja.
func (r *Renderer) Eval(expression string) (Value, error) {
	if len(expression) > maxTemplate {
		return nil, errLarge
	}
	p, err := newParser("{{" + expression + "}}")
	if err != nil {
		return nil, err
	}
	p.at++
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenVariableEnd {
		return nil, p.unexpected()
	}
	return (&state{renderer: r, locals: map[string]Value{}}).eval(e)
}

// output gathers what a template writes.
type output struct {
	parts   Text
	pending strings.Builder
	size    int
}

func (o *output) write(text string) error {
	if o.size += len(text); o.size > maxTemplate {
		return errLarge
	}
	o.pending.WriteString(text)
	return nil
}

func (o *output) pull(p Pull) {
	o.flush()
	o.parts.Add(Part{Pull: &p})
}

func (o *output) flush() {
	o.parts.Add(Part{Text: o.pending.String()})
	o.pending.Reset()
}

func (o *output) text() Text {
	o.flush()
	return o.parts
}

// lineError puts the line before a sentence, unless it has one.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

func atLine(line int, err error) error {
	var placed *lineError
	if err == nil || line == 0 || errors.As(err, &placed) {
		return err
	}
	return &lineError{line, err}
}
