package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type parser struct {
	tokens []token
	at     int
	depth  int
}

func newParser(source string) (*parser, error) {
	if !utf8.ValidString(source) {
		return nil, errors.New("is not UTF-8")
	}
	tokens, err := tokenize(source)
	return &parser{tokens: tokens}, err
}

func parseTemplate(source string) (block, error) {
	p, err := newParser(source)
	if err != nil {
		return nil, err
	}
	body, _, err := p.block()
	return body, err
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// is an operator, or a word, next?
func (p *parser) is(text string) bool {
	t := p.peek()
	return (t.kind == tokenOperator || t.kind == tokenName) && t.text == text
}

func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if p.accept(text) {
		return nil
	}
	return atLine(p.peek().line, fmt.Errorf("%s is expected, not %s", text, p.found()))
}

func (p *parser) found() string {
	if t := p.peek(); t.kind != tokenEnd {
		return fmt.Sprintf("%.40s", t.text)
	}
	return "the end"
}

func (p *parser) unexpected() error {
	return atLine(p.peek().line, fmt.Errorf("%s is not expected here", p.found()))
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return atLine(p.peek().line, errDepth)
	}
	return nil
}

// block parses up to one of some statements that end it, whose word it returns and whose tag it leaves open; without any, to the end.
func (p *parser) block(ends ...string) (block, string, error) {
	defer func() { p.depth-- }()
	if err := p.enter(); err != nil {
		return nil, "", err
	}
	var body block
	for {
		switch t := p.next(); t.kind {
		case tokenEnd:
			if len(ends) > 0 {
				return nil, "", atLine(t.line, fmt.Errorf("{%% %s %%} is missing", ends[len(ends)-1]))
			}
			return body, "", nil
		case tokenData:
			body = append(body, &data{t.text})
		case tokenVariableBegin:
			e, err := p.tuple()
			if err != nil {
				return nil, "", err
			}
			if p.peek().kind != tokenVariableEnd {
				return nil, "", p.unexpected()
			}
			p.at++
			body = append(body, &print{e, t.line})
		case tokenBlockBegin:
			word := p.peek()
			if word.kind != tokenName {
				return nil, "", p.unexpected()
			}
			p.at++
			if slices.Contains(ends, word.text) {
				return body, word.text, nil
			}
			s, err := p.statement(word)
			if err != nil {
				return nil, "", err
			}
			body = append(body, s)
		default:
			return nil, "", p.unexpected()
		}
	}
}

func (p *parser) endTag() error {
	if p.peek().kind != tokenBlockEnd {
		return p.unexpected()
	}
	p.at++
	return nil
}

func (p *parser) statement(word token) (statement, error) {
	switch word.text {
	case "if":
		return p.ifStatement()
	case "for":
		return p.forStatement(word.line)
	case "set":
		return p.setStatement(word.line)
	case "elif", "else", "endif", "endfor", "endset":
		return nil, atLine(word.line, fmt.Errorf("{%% %s %%} has no beginning", word.text))
	}
	return nil, atLine(word.line, fmt.Errorf("{%% %s %%} is not supported: if, for, set and raw are", word.text))
}

func (p *parser) ifStatement() (statement, error) {
	s := &ifStatement{}
	for {
		condition, err := p.tuple()
		if err != nil {
			return nil, err
		}
		if err := p.endTag(); err != nil {
			return nil, err
		}
		body, end, err := p.block("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.branches = append(s.branches, branch{condition, body})
		if end == "elif" {
			continue
		}
		if end == "else" {
			if err := p.endTag(); err != nil {
				return nil, err
			}
			if s.otherwise, _, err = p.block("endif"); err != nil {
				return nil, err
			}
		}
		return s, p.endTag()
	}
}

func (p *parser) forStatement(line int) (statement, error) {
	s := &forStatement{line: line}
	for {
		name := p.next()
		if name.kind != tokenName || isWord(name.text) || name.text == "loop" {
			return nil, atLine(line, fmt.Errorf("%.40s cannot be a loop's variable", name.text))
		}
		s.names = append(s.names, name.text)
		if !p.accept(",") {
			break
		}
	}
	if err := p.expect("in"); err != nil {
		return nil, err
	}
	var err error
	if s.over, err = p.tupleWithoutCondition(); err != nil {
		return nil, err
	}
	if p.accept("if") {
		if s.condition, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.is("recursive") {
		return nil, atLine(line, errors.New("recursive loops are not supported"))
	}
	if err := p.endTag(); err != nil {
		return nil, err
	}
	var end string
	if s.body, end, err = p.block("else", "endfor"); err != nil {
		return nil, err
	}
	if end == "else" {
		if err := p.endTag(); err != nil {
			return nil, err
		}
		if s.otherwise, _, err = p.block("endfor"); err != nil {
			return nil, err
		}
	}
	return s, p.endTag()
}

func (p *parser) setStatement(line int) (statement, error) {
	name := p.next()
	if name.kind != tokenName || isWord(name.text) {
		return nil, atLine(line, fmt.Errorf("%.40s cannot be set", name.text))
	}
	if !p.accept("=") {
		return nil, atLine(line, errors.New("only {% set name = value %} is supported"))
	}
	value, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return &setStatement{name.text, value, line}, p.endTag()
}

// tuple is an expression, or several with commas between.
func (p *parser) tuple() (expression, error) { return p.tupleOf(p.expression) }

func (p *parser) tupleWithoutCondition() (expression, error) { return p.tupleOf(p.or) }

func (p *parser) tupleOf(parse func() (expression, error)) (expression, error) {
	first, err := parse()
	if err != nil || !p.is(",") {
		return first, err
	}
	items := []expression{first}
	for p.accept(",") {
		if kind := p.peek().kind; kind == tokenVariableEnd || kind == tokenBlockEnd || p.is(")") {
			break
		}
		item, err := parse()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return &listExpression{items, true}, nil
}

func (p *parser) expression() (expression, error) {
	defer func() { p.depth-- }()
	if err := p.enter(); err != nil {
		return nil, err
	}
	e, err := p.or()
	for err == nil && p.is("if") {
		line := p.next().line
		c := &conditional{then: e, line: line}
		if c.condition, err = p.or(); err != nil {
			return nil, err
		}
		if p.accept("else") {
			if c.otherwise, err = p.expression(); err != nil {
				return nil, err
			}
		}
		e = c
	}
	return e, err
}

// left parses operands with operators of one rank between, from the left.
func (p *parser) left(operand func() (expression, error), make func(op token, a, b expression) expression, ops ...string) (expression, error) {
	e, err := operand()
	for err == nil && slices.ContainsFunc(ops, p.is) {
		op := p.next()
		var right expression
		if right, err = operand(); err == nil {
			e = make(op, e, right)
		}
	}
	return e, err
}

func (p *parser) or() (expression, error) {
	return p.left(p.and, func(_ token, a, b expression) expression { return &logical{a, b, true} }, "or")
}

func (p *parser) and() (expression, error) {
	return p.left(p.not, func(_ token, a, b expression) expression { return &logical{a, b, false} }, "and")
}

func (p *parser) not() (expression, error) {
	defer func() { p.depth-- }()
	if err := p.enter(); err != nil {
		return nil, err
	}
	if p.accept("not") {
		e, err := p.not()
		return &negation{e}, err
	}
	return p.compare()
}

func (p *parser) compare() (expression, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &comparison{operands: []expression{first}, line: p.peek().line}
	for {
		op := ""
		switch {
		case slices.ContainsFunc([]string{"==", "!=", "<", "<=", ">", ">=", "in"}, p.is):
			op = p.next().text
		case p.is("not") && p.at+1 < len(p.tokens) && p.tokens[p.at+1].text == "in":
			p.at += 2
			op = "not in"
		default:
			if len(c.ops) == 0 {
				return first, nil
			}
			return c, nil
		}
		operand, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.operands = append(c.ops, op), append(c.operands, operand)
	}
}

func arithmeticOf(op token, a, b expression) expression { return &arithmetic{op.text, a, b, op.line} }

func (p *parser) sum() (expression, error)    { return p.left(p.concat, arithmeticOf, "+", "-") }
func (p *parser) concat() (expression, error) { return p.left(p.product, arithmeticOf, "~") }
func (p *parser) product() (expression, error) {
	return p.left(p.signed, arithmeticOf, "*", "/", "//", "%")
}

func (p *parser) signed() (expression, error) {
	e, err := p.unary(true)
	if err == nil && p.is("**") {
		return nil, atLine(p.peek().line, errors.New("the operator ** is not supported"))
	}
	return e, err
}

func (p *parser) unary(filters bool) (expression, error) {
	defer func() { p.depth-- }()
	if err := p.enter(); err != nil {
		return nil, err
	}
	var e expression
	var err error
	switch t := p.peek(); {
	case p.is("-") || p.is("+"):
		p.at++
		var operand expression
		if operand, err = p.unary(false); err == nil {
			e = &sign{operand, t.text == "-", t.line}
		}
	default:
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	for err == nil && filters {
		switch {
		case p.accept("|"):
			e, err = p.filter(e)
		case p.accept("is"):
			e, err = p.test(e)
		case p.is("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
	}
	return e, err
}

// words have a meaning of their own in an expression.
func isWord(name string) bool {
	return slices.Contains([]string{"and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"}, name)
}

func (p *parser) primary() (expression, error) {
	t := p.next()
	switch t.kind {
	case tokenName:
		switch t.text {
		case "true", "True":
			return &constant{true}, nil
		case "false", "False":
			return &constant{false}, nil
		case "none", "None":
			return &constant{nil}, nil
		}
		if isWord(t.text) {
			p.at--
			return nil, p.unexpected()
		}
		return &name{t.text, t.line}, nil
	case tokenString:
		var text strings.Builder
		for {
			part, err := unescape(t.text[1 : len(t.text)-1])
			if err != nil {
				return nil, atLine(t.line, err)
			}
			text.WriteString(part)
			if p.peek().kind != tokenString {
				return &constant{text.String()}, nil
			}
			t = p.next()
		}
	case tokenInteger:
		n, err := strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), 10, 64)
		if err != nil {
			return nil, atLine(t.line, fmt.Errorf("%.40s is too large", t.text))
		}
		return &constant{n}, nil
	case tokenFloat:
		f, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if err != nil {
			return nil, atLine(t.line, fmt.Errorf("%.40s is no number", t.text))
		}
		return &constant{f}, nil
	case tokenOperator:
		switch t.text {
		case "(":
			if p.accept(")") {
				return &listExpression{tuple: true}, nil
			}
			e, err := p.tuple()
			if err != nil {
				return nil, err
			}
			return e, p.expect(")")
		case "[":
			items, err := p.items("]")
			return &listExpression{items: items}, err
		case "{":
			return p.dict()
		}
	}
	if t.kind != tokenEnd {
		p.at--
	}
	return nil, p.unexpected()
}

func (p *parser) items(end string) ([]expression, error) {
	var items []expression
	for !p.accept(end) {
		if len(items) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if p.accept(end) {
				break
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	return items, nil
}

func (p *parser) dict() (expression, error) {
	d := &dictExpression{line: p.peek().line}
	for !p.accept("}") {
		if len(d.keys) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if p.accept("}") {
				break
			}
		}
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
	}
	return d, nil
}

func (p *parser) postfix(e expression) (expression, error) {
	var err error
	for err == nil {
		line := p.peek().line
		switch {
		case p.accept("."):
			t := p.next()
			switch t.kind {
			case tokenName:
				e = &member{e, t.text, line}
			case tokenInteger:
				e = &item{e, &constant{must(strconv.ParseInt(t.text, 10, 64))}, line}
			default:
				return nil, p.unexpected()
			}
		case p.accept("["):
			e, err = p.subscript(e, line)
		case p.is("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
	}
	return nil, err
}

// must is a position in a text; one that is too large is none.
func must(n int64, err error) int64 {
	if err != nil {
		return -1
	}
	return n
}

func (p *parser) subscript(of expression, line int) (expression, error) {
	var bounds [3]expression
	colons := 0
	for !p.accept("]") {
		switch {
		case p.is(":") && colons < 2:
			p.at++
			colons++
		case bounds[colons] == nil:
			e, err := p.expression()
			if err != nil {
				return nil, err
			}
			bounds[colons] = e
		case p.is(","):
			return nil, atLine(line, errors.New("a position is one value, not several"))
		default:
			return nil, p.unexpected()
		}
	}
	switch {
	case colons == 0 && bounds[0] == nil:
		return nil, atLine(line, errors.New("[] names no position"))
	case colons == 0:
		return &item{of, bounds[0], line}, nil
	case bounds[2] != nil:
		return nil, atLine(line, errors.New("slices with a step are not supported"))
	}
	return &slice{of, bounds[0], bounds[1], line}, nil
}

func (p *parser) call(function expression) (expression, error) {
	c := &call{function: function, line: p.next().line}
	for !p.accept(")") {
		if len(c.positional)+len(c.named) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if p.accept(")") {
				break
			}
		}
		if p.is("*") || p.is("**") {
			return nil, atLine(c.line, errors.New("arguments cannot be unpacked with * and **"))
		}
		keyword := ""
		if t := p.peek(); t.kind == tokenName && p.at+1 < len(p.tokens) && p.tokens[p.at+1].kind == tokenOperator && p.tokens[p.at+1].text == "=" {
			keyword = t.text
			p.at += 2
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		switch {
		case keyword != "":
			c.named = append(c.named, argument{keyword, e})
		case len(c.named) > 0:
			return nil, atLine(c.line, errors.New("an argument without a name follows one with a name"))
		default:
			c.positional = append(c.positional, e)
		}
	}
	return c, nil
}

func (p *parser) filter(of expression) (expression, error) {
	word := p.next()
	if word.kind != tokenName {
		p.at--
		return nil, p.unexpected()
	}
	apply, known := filters[word.text]
	if !known {
		return nil, atLine(word.line, fmt.Errorf("the filter %s is not supported", word.text))
	}
	c := &call{line: word.line}
	if p.is("(") {
		parsed, err := p.call(nil)
		if err != nil {
			return nil, err
		}
		c = parsed.(*call)
	}
	return &filtered{of, word.text, apply, c, word.line}, nil
}

func (p *parser) test(of expression) (expression, error) {
	negated := p.accept("not")
	word := p.next()
	if word.kind != tokenName {
		p.at--
		return nil, p.unexpected()
	}
	apply, known := tests[word.text]
	if !known {
		return nil, atLine(word.line, fmt.Errorf("the test %s is not supported", word.text))
	}
	return &tested{of, apply, negated, word.line}, nil
}

// unescape reads what is between a string's quotes as Python does.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits, base := 0, 16
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		case 'N':
			return "", errors.New(`\N in a string is not supported`)
		default:
			if c >= '0' && c <= '7' {
				digits, base = 1, 8
				for digits < 3 && i+digits < len(s) && s[i+digits] >= '0' && s[i+digits] <= '7' {
					digits++
				}
				i--
				break
			}
			b.WriteByte('\\')
			b.WriteByte(c)
		}
		if digits == 0 {
			continue
		}
		if i+1+digits > len(s) {
			return "", errors.New("a string ends within an escape")
		}
		code, err := strconv.ParseUint(s[i+1:i+1+digits], base, 32)
		if err != nil || code > utf8.MaxRune || code >= 0xd800 && code < 0xe000 {
			return "", fmt.Errorf(`a string has \%s, which is no character`, s[i:i+1+digits])
		}
		b.WriteRune(rune(code))
		i += digits
	}
	return b.String(), nil
}
