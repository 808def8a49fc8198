package kfp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/translators/kfp"
)

// Operands are values, whatever is in them; what the language cannot compare is an error, never false.
func TestConditions(t *testing.T) {
	t.Parallel()
	const x = "inputs.parameter_values['x']"
	for condition, c := range map[string]struct {
		value string
		want  bool
		fails string
	}{
		x + " > '9'":                {value: `"10"`},
		"int(" + x + ") > 9":        {value: `"10"`, want: true},
		x + " == 0.50":              {value: `0.5`, want: true},
		"double(" + x + ") == 0.50": {value: `"0.5"`, want: true},
		"int(" + x + ") == 3":       {value: `3`, want: true},
		x + " == 3":                 {value: `3.0`, want: true},
		x + " == true":              {value: `true`, want: true},
		x + " == 'true'":            {value: `"true"`, want: true},
		x + ` != ''`:                {value: `"{\"k\":\"v w\"}"`, want: true},
		x + " == 'a b'":             {value: `"a b"`, want: true},
		x + " == 'None'":            {value: `"None"`, want: true},
		x + ` == "' || true || '"`:  {value: `"' || true || '"`, want: true},
		x + " == 'y'":               {value: `"' || true || '"`},
		"!(" + x + " == 'a') && " + x + " == 'b'": {value: `"b"`, want: true},
		"parseJson(" + x + ")['k'] == 'v'":        {value: `"{\"k\": \"v\"}"`, want: true},
		x + "['k'] == 1":                          {value: `{"k": 1}`, want: true},
		x + " > 3":                                {value: `"x"`, fails: "no such overload"},
		x + " >= 'a'":                             {value: `null`, fails: "no such overload"},
		x:                                         {value: `"x"`, fails: "neither true nor false"},
		"inputs.parameter_values['y'] == 1":       {value: `1`, fails: "no such key: y"},
		"parseJson(" + x + ") == 1":               {value: `"{"`, fails: "parseJson"},
		"int(" + x + ") == 1":                     {value: `"one"`, fails: "type conversion error"},
		"1 == ":                                   {value: `1`, fails: "Syntax error"},
		"unheard(1)":                              {value: `1`, fails: "undeclared reference to 'unheard'"},
		"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, true))))))": {value: `1`, fails: "cost limit"},
	} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			e, err := kfp.NewExpressions()
			require.NoError(t, err)
			got, err := e.Condition(condition, map[string]json.RawMessage{"x": json.RawMessage(c.value)})
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	e, err := kfp.NewExpressions()
	require.NoError(t, err)
	for selector, c := range map[string]struct{ value, want, fails string }{
		`parseJson(string_value)["A_a"]`:    {value: `{"A_a": 1, "B_b": 2}`, want: `1`},
		`parseJson(string_value)["B_b"]`:    {value: `"{\"B_b\": \"<x>\"}"`, want: `"<x>"`},
		`parseJson(string_value)["l"][1]`:   {value: `{"l": [1, {"m": true}]}`, want: `{"m":true}`},
		`struct_value["A_a"]`:               {value: `{"A_a": null}`, want: `null`},
		`string_value`:                      {value: `3.0`, want: `"3"`},
		`parseJson(string_value)["absent"]`: {value: `{}`, fails: "no such key: absent"},
	} {
		got, err := e.Select(json.RawMessage(c.value), selector)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, selector)
			continue
		}
		require.NoError(t, err, selector)
		require.JSONEq(t, c.want, string(got), selector)
	}
}
