package jinja

import (
	"fmt"
	"maps"
)

// state is the rendering of one template.
type state struct {
	renderer *Renderer
	// locals are set by the template; a loop's body has its own.
	locals map[string]Value
	out    output
	depth  int
}

// spend counts steps.
func (s *state) spend(n int) error {
	if *s.renderer.steps += n; *s.renderer.steps > maxSteps {
		return errSteps
	}
	return nil
}

type statement interface{ run(s *state) error }

type block []statement

func (b block) run(s *state) error {
	for _, each := range b {
		if err := each.run(s); err != nil {
			return err
		}
	}
	return nil
}

type data struct{ text string }

func (d *data) run(s *state) error {
	if err := s.spend(1 + len(d.text)/64); err != nil {
		return err
	}
	return s.out.write(d.text)
}

type print struct {
	value expression
	line  int
}

func (p *print) run(s *state) error {
	value, err := s.eval(p.value)
	if err != nil {
		return atLine(p.line, err)
	}
	if pull, ok := value.(Pull); ok {
		s.out.pull(pull)
		return nil
	}
	text, err := Str(value)
	if err != nil {
		return atLine(p.line, err)
	}
	if err := s.spend(1 + len(text)/64); err != nil {
		return err
	}
	return s.out.write(text)
}

type branch struct {
	condition expression
	body      block
}

type ifStatement struct {
	branches  []branch
	otherwise block
}

func (i *ifStatement) run(s *state) error {
	for _, b := range i.branches {
		holds, err := s.holds(b.condition)
		if err != nil {
			return err
		}
		if holds {
			return b.body.run(s)
		}
	}
	return i.otherwise.run(s)
}

func (s *state) holds(e expression) (bool, error) {
	value, err := s.eval(e)
	if err != nil {
		return false, err
	}
	return truth(value)
}

type setStatement struct {
	name  string
	value expression
	line  int
}

func (t *setStatement) run(s *state) error {
	value, err := s.eval(t.value)
	if err != nil {
		return atLine(t.line, err)
	}
	s.locals[t.name] = value
	return nil
}

type forStatement struct {
	names           []string
	over, condition expression
	body, otherwise block
	line            int
}

func (f *forStatement) run(s *state) error {
	value, err := s.eval(f.over)
	if err != nil {
		return atLine(f.line, err)
	}
	items, err := iterate(value)
	if err != nil {
		return atLine(f.line, err)
	}
	outer := s.locals
	defer func() { s.locals = outer }()
	// What is looped over is chosen first: loop.index counts what passes the condition.
	var chosen []map[string]Value
	for _, each := range items {
		if err := s.spend(1); err != nil {
			return err
		}
		s.locals = maps.Clone(outer)
		if err := f.bind(s.locals, each); err != nil {
			return atLine(f.line, err)
		}
		if f.condition != nil {
			if holds, err := s.holds(f.condition); err != nil || !holds {
				if err != nil {
					return atLine(f.line, err)
				}
				continue
			}
		}
		chosen = append(chosen, s.locals)
	}
	if len(chosen) == 0 {
		s.locals = maps.Clone(outer)
		return f.otherwise.run(s)
	}
	n := int64(len(chosen))
	for i, locals := range chosen {
		at := int64(i)
		locals["loop"] = &Object{Name: "loop", Why: "is not supported", Attr: map[string]Value{
			"index": at + 1, "index0": at, "revindex": n - at, "revindex0": n - at - 1, "first": at == 0, "last": at == n-1, "length": n,
		}}
		s.locals = locals
		if err := f.body.run(s); err != nil {
			return err
		}
	}
	return nil
}

// bind gives a loop's variables their values.
func (f *forStatement) bind(locals map[string]Value, value Value) error {
	if len(f.names) == 1 {
		locals[f.names[0]] = value
		return nil
	}
	parts, err := iterate(value)
	if err != nil {
		return err
	}
	if len(parts) != len(f.names) {
		return fmt.Errorf("a loop has %d variables for %d values", len(f.names), len(parts))
	}
	for i, name := range f.names {
		locals[name] = parts[i]
	}
	return nil
}

// iterate is what a loop over a value goes through.
func iterate(v Value) (List, error) {
	if err := usable(v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case List:
		return v, nil
	case tuple:
		return List(v), nil
	case *Dict:
		keys := make(List, len(v.keys))
		for i, key := range v.keys {
			keys[i] = key
		}
		return keys, nil
	case string:
		var letters List
		for _, r := range v {
			letters = append(letters, string(r))
		}
		return letters, nil
	}
	return nil, fmt.Errorf("%s cannot be looped over", typeName(v))
}
