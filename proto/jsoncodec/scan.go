package jsoncodec

import (
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor walks a text that is known to be JSON, so that it need not look for what cannot be there.
type cursor struct {
	text []byte
	at   int
}

// peek is the first byte of the next token.
func (c *cursor) peek() byte {
	for {
		switch b := c.text[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
}

// members are the names in an object that begins here. The loop's body takes the value.
func (c *cursor) members() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		c.at++
		for c.peek() != '}' {
			if c.text[c.at] == ',' {
				c.at++
				c.peek()
			}
			name, ok := unquote(c.take())
			c.peek()
			c.at++ // The colon.
			if !yield(name, ok) {
				return
			}
		}
		c.at++
	}
}

// elements are the positions in an array that begins here. The loop's body takes the value.
func (c *cursor) elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		c.at++
		for i := 0; c.peek() != ']'; i++ {
			if c.text[c.at] == ',' {
				c.at++
			}
			if !yield(i) {
				return
			}
		}
		c.at++
	}
}

// take takes the next value whole, of whatever kind.
func (c *cursor) take() []byte {
	c.peek()
	start, depth := c.at, 0
	for {
		switch c.text[c.at] {
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		case '"':
			c.skipString()
		case ',', ':', ' ', '\t', '\n', '\r':
			c.at++
			continue
		default:
			c.skipWord()
		}
		if depth == 0 {
			return c.text[start:c.at]
		}
	}
}

func (c *cursor) skipString() {
	for c.at++; c.text[c.at] != '"'; c.at++ {
		if c.text[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
}

// skipWord passes a number, true, false or null.
func (c *cursor) skipWord() {
	for ; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case ',', ':', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
	}
}

// unquote is the text of a JSON string; false when an escape in it is half of a surrogate pair, which no UTF-8 can say.
func unquote(quoted []byte) (string, bool) {
	s := quoted[1 : len(quoted)-1]
	i := 0
	for i < len(s) && s[i] != '\\' {
		i++
	}
	if i == len(s) {
		return string(s), true
	}
	out := append(make([]byte, 0, len(s)), s[:i]...)
	for i < len(s) {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		switch c := s[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[i+2:])
			if utf16.IsSurrogate(r) {
				var low rune
				if i+12 <= len(s) && s[i+6] == '\\' && s[i+7] == 'u' {
					low = hex4(s[i+8:])
				}
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return "", false
				}
				i += 6
			}
			out = utf8.AppendRune(out, r)
			i += 4
		default:
			out = append(out, c)
		}
		i += 2
	}
	return string(out), true
}

func hex4(s []byte) rune {
	n, err := strconv.ParseUint(string(s[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// tooDeep: nested more deeply than maxDepth.
func tooDeep(text []byte) bool {
	depth := 0
	for c := (cursor{text: text}); c.at < len(text); {
		switch text[c.at] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
			c.at++
		case '}', ']':
			depth--
			c.at++
		case '"':
			c.skipString()
		default:
			c.at++
		}
	}
	return false
}
