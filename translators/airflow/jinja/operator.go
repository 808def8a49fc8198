package jinja

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

var errOverflow = errors.New("a number is too large")

// calculate is a binary operator of Python's on usable values.
func calculate(op string, a, b Value) (Value, error) {
	if op == "~" {
		left, err := Str(a)
		if err != nil {
			return nil, err
		}
		right, err := Str(b)
		if err != nil {
			return nil, err
		}
		return joined(left, right)
	}
	switch x := a.(type) {
	case int64:
		switch y := b.(type) {
		case int64:
			return integers(op, x, y)
		case float64:
			return floats(op, float64(x), y)
		case Delta:
			if op == "*" {
				return calculate(op, y, x)
			}
		}
	case float64:
		switch y := b.(type) {
		case int64:
			return floats(op, x, float64(y))
		case float64:
			return floats(op, x, y)
		}
	case string:
		switch y := b.(type) {
		case string:
			if op == "+" {
				return joined(x, y)
			}
		case int64:
			if op == "*" {
				n := max(y, 0)
				if n > 0 && int64(len(x)) > maxTemplate/n {
					return nil, errLarge
				}
				return strings.Repeat(x, int(n)), nil
			}
		}
	case List:
		if y, ok := b.(List); ok && op == "+" {
			if len(x)+len(y) > maxTemplate/16 {
				return nil, errLarge
			}
			return append(append(List{}, x...), y...), nil
		}
	case Time:
		if y, ok := b.(Delta); ok && (op == "+" || op == "-") {
			if op == "-" {
				y = -y
			}
			return x.plus(y)
		}
	case Delta:
		switch y := b.(type) {
		case Delta:
			switch op {
			case "+", "-":
				v, err := integers(op, int64(x), int64(y))
				if err != nil {
					return nil, err
				}
				return Delta(v.(int64)), nil
			}
		case int64:
			if op == "*" {
				v, err := integers(op, int64(x), y)
				if err != nil {
					return nil, err
				}
				return Delta(v.(int64)), nil
			}
		case Time:
			if op == "+" {
				return y.plus(x)
			}
		}
	}
	return nil, fmt.Errorf("%s %s %s is not supported", typeName(a), op, typeName(b))
}

func joined(a, b string) (Value, error) {
	if len(a)+len(b) > maxTemplate {
		return nil, errLarge
	}
	return a + b, nil
}

func integers(op string, x, y int64) (Value, error) {
	a, b, result := big.NewInt(x), big.NewInt(y), new(big.Int)
	switch op {
	case "+":
		result.Add(a, b)
	case "-":
		result.Sub(a, b)
	case "*":
		result.Mul(a, b)
	default:
		if y == 0 {
			return nil, errors.New("a division by zero")
		}
		if op == "/" {
			if exact(x) && exact(y) {
				return float64(x) / float64(y), nil
			}
			return nil, errOverflow
		}
		// Python rounds down, and the remainder has the divisor's sign.
		quotient, remainder := new(big.Int).DivMod(a, new(big.Int).Abs(b), new(big.Int))
		if y < 0 {
			if remainder.Sign() != 0 {
				quotient.Add(quotient, big.NewInt(1))
				remainder.Add(remainder, b)
			}
			quotient.Neg(quotient)
		}
		if result = quotient; op == "%" {
			result = remainder
		}
	}
	if !result.IsInt64() {
		return nil, errOverflow
	}
	return result.Int64(), nil
}

// exact says whether a float holds an integer exactly.
func exact(x int64) bool { return x >= -1<<53 && x <= 1<<53 }

func floats(op string, x, y float64) (Value, error) {
	var v float64
	switch op {
	case "+":
		v = x + y
	case "-":
		v = x - y
	case "*":
		v = x * y
	case "/":
		if y == 0 {
			return nil, errors.New("a division by zero")
		}
		v = x / y
	default:
		return nil, fmt.Errorf("a number with a fraction %s another is not supported", op)
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil, errOverflow
	}
	return v, nil
}

// compare is a comparison of Python's on usable values.
func compare(op string, a, b Value) (bool, error) {
	switch op {
	case "in", "not in":
		found, err := contains(b, a)
		return found == (op == "in"), err
	case "==", "!=":
		same, err := equal(a, b, 0)
		return same == (op == "=="), err
	}
	order, err := ordered(a, b)
	if err != nil {
		return false, fmt.Errorf("%s %s %s is not supported", typeName(a), op, typeName(b))
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

var errUnordered = errors.New("no order")

func ordered(a, b Value) (int, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil // UTF-8 sorts as its characters do
		}
	case Time:
		if y, ok := b.(Time); ok {
			return x.Compare(y.Time), nil
		}
	case Delta:
		if y, ok := b.(Delta); ok {
			return number(x).Cmp(number(y)), nil
		}
	}
	x, y := number(a), number(b)
	if x == nil || y == nil {
		return 0, errUnordered
	}
	return x.Cmp(y), nil
}

// number is a number exactly, nil of anything else.
func number(v Value) *big.Float {
	switch v := v.(type) {
	case bool:
		if v {
			return big.NewFloat(1)
		}
		return new(big.Float)
	case int64:
		return new(big.Float).SetInt64(v)
	case Delta:
		return new(big.Float).SetInt64(int64(v))
	case float64:
		return new(big.Float).SetFloat64(v)
	}
	return nil
}

func equal(a, b Value, depth int) (bool, error) {
	if depth > maxDepth {
		return false, errDepth
	}
	for _, v := range []Value{a, b} {
		if err := usable(v); err != nil {
			return false, err
		}
		switch v.(type) {
		case Func, *Object, tuple:
			return false, fmt.Errorf("%s cannot be compared", typeName(v))
		}
	}
	_, aDelta := a.(Delta)
	_, bDelta := b.(Delta)
	if aDelta != bDelta {
		return false, nil
	}
	if x, y := number(a), number(b); x != nil && y != nil {
		return x.Cmp(y) == 0, nil
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, nil
	case Time:
		y, ok := b.(Time)
		return ok && x.Equal(y.Time), nil
	case List:
		y, ok := b.(List)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for i := range x {
			if same, err := equal(x[i], y[i], depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false, nil
		}
		for _, key := range x.keys {
			other, there := y.Get(key)
			if !there {
				return false, nil
			}
			if same, err := equal(x.values[key], other, depth+1); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

func contains(where, what Value) (bool, error) {
	switch where := where.(type) {
	case string:
		if text, ok := what.(string); ok {
			return strings.Contains(where, text), nil
		}
	case tuple:
		return contains(List(where), what)
	case List:
		for _, each := range where {
			if same, err := equal(each, what, 0); err != nil || same {
				return same, err
			}
		}
		return false, nil
	case *Dict:
		if text, ok := what.(string); ok {
			_, there := where.Get(text)
			return there, nil
		}
		return false, nil
	}
	return false, fmt.Errorf("whether %s is in %s is not supported", typeName(what), typeName(where))
}
