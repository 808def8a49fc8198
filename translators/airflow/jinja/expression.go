package jinja

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

type expression interface{ value(s *state) (Value, error) }

// eval evaluates an expression. Undefined is a value: only its use is an error.
func (s *state) eval(e expression) (Value, error) {
	if err := s.spend(1); err != nil {
		return nil, err
	}
	if s.depth++; s.depth > 4*maxDepth {
		return nil, errDepth
	}
	defer func() { s.depth-- }()
	v, err := e.value(s)
	if text, ok := v.(string); ok && len(text) > 64 && err == nil {
		if len(text) > maxTemplate {
			return nil, errLarge
		}
		err = s.spend(len(text) / 64)
	}
	return v, err
}

// used evaluates an expression with whose value something is done.
func (s *state) used(e expression) (Value, error) {
	v, err := s.eval(e)
	if err == nil {
		err = usable(v)
	}
	return v, err
}

type constant struct{ v Value }

func (c *constant) value(*state) (Value, error) { return c.v, nil }

type name struct {
	name string
	line int
}

func (n *name) value(s *state) (Value, error) {
	v, there := s.locals[n.name]
	if !there {
		if v, there = s.renderer.variable(n.name); !there {
			if v, there = globals[n.name]; !there {
				return undefined{n.name}, nil
			}
		}
	}
	v, err := known(n.name, v)
	return v, atLine(n.line, err)
}

type listExpression struct {
	items []expression
	tuple bool
}

func (l *listExpression) value(s *state) (Value, error) {
	list := make(List, len(l.items))
	for i, each := range l.items {
		v, err := s.eval(each)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	if l.tuple {
		return tuple(list), nil
	}
	return list, nil
}

type dictExpression struct {
	keys, values []expression
	line         int
}

func (d *dictExpression) value(s *state) (Value, error) {
	dict := &Dict{}
	for i, each := range d.keys {
		key, err := s.used(each)
		if err != nil {
			return nil, err
		}
		text, ok := key.(string)
		if !ok {
			return nil, atLine(d.line, fmt.Errorf("a dict's key is %s: only text is supported", typeName(key)))
		}
		v, err := s.eval(d.values[i])
		if err != nil {
			return nil, err
		}
		dict.Set(text, v)
	}
	return dict, nil
}

type conditional struct {
	condition, then, otherwise expression
	line                       int
}

func (c *conditional) value(s *state) (Value, error) {
	holds, err := s.holds(c.condition)
	switch {
	case err != nil:
		return nil, atLine(c.line, err)
	case holds:
		return s.eval(c.then)
	case c.otherwise == nil:
		return undefined{"the value of an if without else"}, nil
	}
	return s.eval(c.otherwise)
}

type logical struct {
	a, b expression
	or   bool
}

func (l *logical) value(s *state) (Value, error) {
	a, err := s.eval(l.a)
	if err != nil {
		return nil, err
	}
	holds, err := truth(a)
	if err != nil {
		return nil, err
	}
	if holds == l.or {
		return a, nil
	}
	return s.eval(l.b)
}

type negation struct{ e expression }

func (n *negation) value(s *state) (Value, error) {
	holds, err := s.holds(n.e)
	return !holds, err
}

type sign struct {
	e        expression
	negative bool
	line     int
}

func (g *sign) value(s *state) (Value, error) {
	v, err := s.used(g.e)
	if err != nil {
		return nil, err
	}
	if !g.negative {
		return calculate("+", int64(0), v)
	}
	if f, ok := v.(float64); ok {
		return -f, nil
	}
	v, err = calculate("*", v, int64(-1))
	return v, atLine(g.line, err)
}

type arithmetic struct {
	op   string
	a, b expression
	line int
}

func (o *arithmetic) value(s *state) (Value, error) {
	a, err := s.used(o.a)
	if err != nil {
		return nil, err
	}
	b, err := s.used(o.b)
	if err != nil {
		return nil, err
	}
	v, err := calculate(o.op, a, b)
	return v, atLine(o.line, err)
}

type comparison struct {
	operands []expression
	ops      []string
	line     int
}

func (c *comparison) value(s *state) (Value, error) {
	left, err := s.used(c.operands[0])
	if err != nil {
		return nil, err
	}
	for i, op := range c.ops {
		right, err := s.used(c.operands[i+1])
		if err != nil {
			return nil, err
		}
		holds, err := compare(op, left, right)
		if err != nil || !holds {
			return false, atLine(c.line, err)
		}
		left = right
	}
	return true, nil
}

type member struct {
	of   expression
	name string
	line int
}

func (m *member) value(s *state) (Value, error) {
	of, err := s.eval(m.of)
	if err != nil {
		return nil, err
	}
	v, err := attribute(of, m.name)
	return v, atLine(m.line, err)
}

// attribute is of.name: of a dict its member, where the dict has no method of that name.
func attribute(of Value, name string) (Value, error) {
	switch of := of.(type) {
	case Pull:
		of.Path = append(slices.Clone(of.Path), name)
		return of, nil
	case *Object:
		v, there := of.Attr[name]
		if !there {
			return nil, fmt.Errorf("%s.%s %s", of.Name, name, of.Why)
		}
		return known(of.Name+"."+name, v)
	}
	if err := usable(of); err != nil {
		return nil, err
	}
	if method := methodOf(of, name); method != nil {
		return method, nil
	}
	switch of := of.(type) {
	case *Dict:
		return dictMember(of, name)
	case Time:
		if v, ok := of.part(name); ok {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%s of %s is not supported", name, typeName(of))
}

func dictMember(d *Dict, key string) (Value, error) {
	if v, there := d.Get(key); there {
		return known(key, v)
	}
	if d.Missing != nil {
		return d.Missing(key), nil
	}
	return undefined{fmt.Sprintf("%q", key)}, nil
}

type item struct {
	of, at expression
	line   int
}

func (i *item) value(s *state) (Value, error) {
	of, err := s.eval(i.of)
	if err != nil {
		return nil, err
	}
	at, err := s.used(i.at)
	if err != nil {
		return nil, err
	}
	v, err := element(of, at)
	return v, atLine(i.line, err)
}

func element(of, at Value) (Value, error) {
	if pull, ok := of.(Pull); ok {
		switch at.(type) {
		case string, int64:
			pull.Path = append(slices.Clone(pull.Path), at)
			return pull, nil
		}
		return nil, fmt.Errorf("%s is no position in a task's result", typeName(at))
	}
	if err := usable(of); err != nil {
		return nil, err
	}
	switch at := at.(type) {
	case string:
		switch of := of.(type) {
		case *Dict:
			return dictMember(of, at)
		case *Object:
			return attribute(of, at)
		}
	case int64:
		switch of := of.(type) {
		case List:
			if i := position(at, len(of)); i >= 0 {
				return of[i], nil
			}
			return undefined{fmt.Sprintf("position %d of a list of %d", at, len(of))}, nil
		case string:
			runes := []rune(of)
			if i := position(at, len(runes)); i >= 0 {
				return string(runes[i]), nil
			}
			return undefined{fmt.Sprintf("position %d of a text of %d", at, len(runes))}, nil
		}
	}
	return nil, fmt.Errorf("%s has no element named by %s", typeName(of), typeName(at))
}

// position is an index in a sequence of n, from its end where negative; -1: outside.
func position(at int64, n int) int {
	if at < 0 {
		at += int64(n)
	}
	if at < 0 || at >= int64(n) {
		return -1
	}
	return int(at)
}

type slice struct {
	of, from, to expression
	line         int
}

func (c *slice) value(s *state) (Value, error) {
	of, err := s.used(c.of)
	if err != nil {
		return nil, err
	}
	n := 0
	switch of := of.(type) {
	case string:
		n = utf8.RuneCountInString(of)
	case List:
		n = len(of)
	default:
		return nil, atLine(c.line, fmt.Errorf("%s has no slices", typeName(of)))
	}
	bounds := [2]int{0, n}
	for i, e := range []expression{c.from, c.to} {
		if e == nil {
			continue
		}
		v, err := s.used(e)
		if err != nil {
			return nil, err
		}
		at, ok := v.(int64)
		if !ok && v != nil {
			return nil, atLine(c.line, fmt.Errorf("a slice ends at a whole number, not at %s", typeName(v)))
		}
		if v == nil {
			continue
		}
		if at < 0 {
			at += int64(n)
		}
		bounds[i] = int(min(max(at, 0), int64(n)))
	}
	from, to := bounds[0], max(bounds[0], bounds[1])
	if text, ok := of.(string); ok {
		return string([]rune(text)[from:to]), nil
	}
	return slices.Clone(of.(List)[from:to]), nil
}

type argument struct {
	name  string
	value expression
}

type call struct {
	function   expression
	positional []expression
	named      []argument
	line       int
}

func (c *call) args(s *state) (Args, error) {
	args := Args{Named: make(map[string]Value, len(c.named))}
	for _, each := range c.positional {
		v, err := s.used(each)
		if err != nil {
			return args, err
		}
		args.Positional = append(args.Positional, v)
	}
	for _, each := range c.named {
		if _, twice := args.Named[each.name]; twice {
			return args, fmt.Errorf("has its argument %s twice", each.name)
		}
		v, err := s.used(each.value)
		if err != nil {
			return args, err
		}
		args.Named[each.name] = v
	}
	return args, nil
}

func (c *call) value(s *state) (Value, error) {
	f, err := s.used(c.function)
	if err != nil {
		return nil, err
	}
	function, ok := f.(Func)
	if !ok {
		return nil, atLine(c.line, fmt.Errorf("%s cannot be called", typeName(f)))
	}
	args, err := c.args(s)
	if err != nil {
		return nil, atLine(c.line, err)
	}
	v, err := function(args)
	if list, ok := v.(List); ok && err == nil {
		err = s.spend(len(list))
	}
	if err != nil {
		return nil, atLine(c.line, fmt.Errorf("%s: %w", nameOf(c.function), err))
	}
	return v, nil
}

// nameOf is what is called, as it is written.
func nameOf(e expression) string {
	switch e := e.(type) {
	case *name:
		return e.name
	case *member:
		return nameOf(e.of) + "." + e.name
	case *item, *call, *filtered, *slice:
		return ".."
	}
	return "a value"
}

type filtered struct {
	of    expression
	name  string
	apply filter
	call  *call
	line  int
}

func (f *filtered) value(s *state) (Value, error) {
	v, err := s.eval(f.of)
	if err != nil {
		return nil, err
	}
	args, err := f.call.args(s)
	if err != nil {
		return nil, atLine(f.line, err)
	}
	if _, pull := v.(Pull); f.name != "default" && f.name != "d" && !(pull && f.name == "tojson") {
		if err := usable(v); err != nil {
			return nil, atLine(f.line, err)
		}
	}
	v, err = f.apply(v, args)
	if err != nil {
		return nil, atLine(f.line, fmt.Errorf("the filter %s: %w", f.name, err))
	}
	return v, nil
}

type tested struct {
	of      expression
	apply   func(Value) (bool, error)
	negated bool
	line    int
}

func (t *tested) value(s *state) (Value, error) {
	v, err := s.eval(t.of)
	if err != nil {
		return nil, err
	}
	holds, err := t.apply(v)
	if err != nil {
		return nil, atLine(t.line, err)
	}
	return holds != t.negated, nil
}
