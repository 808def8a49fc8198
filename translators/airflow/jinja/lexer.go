package jinja

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenData
	tokenVariableBegin
	tokenVariableEnd
	tokenBlockBegin
	tokenBlockEnd
	tokenName
	tokenString
	tokenInteger
	tokenFloat
	tokenOperator
)

type token struct {
	kind tokenKind
	text string
	line int
}

var (
	newlines  = regexp.MustCompile(`\r\n|\r|\n`)
	nameToken = regexp.MustCompile(`^[\pL_][\pL\pN_]*`)
	// An exponent, or digits after the point, make a float; 1.attribute is none.
	floatToken   = regexp.MustCompile(`^[0-9]+(?:_[0-9]+)*(?:\.[0-9]+(?:_[0-9]+)*(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?|[eE][+-]?[0-9]+(?:_[0-9]+)*)`)
	integerToken = regexp.MustCompile(`^(?:0(?:_?0)*|[1-9](?:_?[0-9])*)`)
	stringToken  = regexp.MustCompile(`^(?s:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`)
	rawEnd       = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)
	rawBegin     = regexp.MustCompile(`^[-+]?\s*raw\s*([-+]?)%\}`)
	operators    = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}
)

// tokenize takes a template apart as Jinja does with the settings that Airflow leaves alone: newlines become "\n", and one at
// the end is dropped.
func tokenize(source string) ([]token, error) {
	source = strings.TrimSuffix(newlines.ReplaceAllString(source, "\n"), "\n")
	var tokens []token
	line := 1
	add := func(kind tokenKind, text string) { tokens = append(tokens, token{kind, text, line}) }
	rest := source
	strip := false // the last tag ended with a minus sign
	skip := func(n int) {
		line += strings.Count(rest[:n], "\n")
		rest = rest[n:]
	}
	for rest != "" {
		begin := nextTag(rest)
		data := rest[:begin]
		if strip {
			data = trimLeft(data)
		}
		if begin < len(rest) && strings.HasPrefix(rest[begin+2:], "-") {
			data = trimRight(data)
		}
		if data != "" {
			add(tokenData, data)
		}
		skip(begin)
		strip = false
		if rest == "" {
			break
		}
		tag := rest[:2]
		if tag == "{#" {
			end := strings.Index(rest[2:], "#}")
			if end < 0 {
				return nil, atLine(line, errors.New("a comment, {#, has no end: bash's ${#name} is one to Jinja, too"))
			}
			strip = end > 0 && rest[2+end-1] == '-'
			skip(2 + end + 2)
			continue
		}
		if raw := rawBegin.FindStringSubmatch(rest[2:]); tag == "{%" && raw != nil {
			from := 2 + len(raw[0])
			end := rawEnd.FindStringSubmatchIndex(rest[from:])
			if end == nil {
				return nil, atLine(line, errors.New("{% raw %} has no {% endraw %}"))
			}
			text := rest[from : from+end[0]]
			if raw[1] == "-" {
				text = trimLeft(text)
			}
			if rest[from+end[2]:from+end[3]] == "-" {
				text = trimRight(text)
			}
			if text != "" {
				add(tokenData, text)
			}
			strip = rest[from+end[4]:from+end[5]] == "-"
			skip(from + end[1])
			continue
		}
		kind, end := tokenVariableBegin, "}}"
		if tag == "{%" {
			kind, end = tokenBlockBegin, "%}"
		}
		add(kind, tag)
		skip(2)
		if strings.HasPrefix(rest, "-") || kind == tokenBlockBegin && strings.HasPrefix(rest, "+") {
			skip(1)
		}
		var err error
		if strip, err = tokenizeTag(&tokens, &rest, &line, kind+1, end); err != nil {
			return nil, err
		}
	}
	add(tokenEnd, "")
	return tokens, nil
}

// tokenizeTag takes the inside of a tag apart, its end included.
func tokenizeTag(tokens *[]token, rest *string, line *int, endKind tokenKind, end string) (strip bool, err error) {
	var brackets []byte
	for {
		text := trimLeft(*rest)
		*line += strings.Count((*rest)[:len(*rest)-len(text)], "\n")
		*rest = text
		take := func(kind tokenKind, n int) {
			*tokens = append(*tokens, token{kind, text[:n], *line})
			*line += strings.Count(text[:n], "\n")
			*rest = text[n:]
		}
		if len(brackets) == 0 {
			for _, sign := range []string{"", "-", "+"} {
				if strings.HasPrefix(text, sign+end) && (sign != "+" || end == "%}") {
					take(endKind, len(sign)+len(end))
					return sign == "-", nil
				}
			}
		}
		if text == "" {
			return false, atLine(*line, fmt.Errorf("a tag has no end: %s is missing", end))
		}
		if n := len(floatToken.FindString(text)); n > 0 {
			take(tokenFloat, n)
		} else if n := len(integerToken.FindString(text)); n > 0 {
			take(tokenInteger, n)
		} else if n := len(nameToken.FindString(text)); n > 0 {
			take(tokenName, n)
		} else if n := len(stringToken.FindString(text)); n > 0 {
			take(tokenString, n)
		} else {
			n := operatorLength(text)
			if n == 0 {
				return false, atLine(*line, fmt.Errorf("%.10q is no part of an expression", text))
			}
			switch c := text[0]; c {
			case '(', '[', '{':
				brackets = append(brackets, c)
			case ')', ']', '}':
				if len(brackets) == 0 || c-brackets[len(brackets)-1] > 2 {
					return false, atLine(*line, fmt.Errorf("%q closes nothing", c))
				}
				brackets = brackets[:len(brackets)-1]
			}
			take(tokenOperator, n)
		}
	}
}

func operatorLength(text string) int {
	for _, op := range operators {
		if strings.HasPrefix(text, op) {
			return len(op)
		}
	}
	return 0
}

// nextTag is where the next tag begins, or the end.
func nextTag(text string) int {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '{' && (text[i+1] == '{' || text[i+1] == '%' || text[i+1] == '#') {
			return i
		}
	}
	return len(text)
}

// blank is what Python's \s takes for white space and people write.
const blank = " \t\n\r\f\v"

func trimLeft(s string) string  { return strings.TrimLeft(s, blank) }
func trimRight(s string) string { return strings.TrimRight(s, blank) }
