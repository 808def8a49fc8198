package translators_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagbridge/dagbridge/translators"
)

const limit = 48 << 10

func TestOutputs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, want string }{
		"nothing":                        {"", ""},
		"blank":                          {" \n\t\n", ""},
		"an object as it is written":     {" {\"a\" : 3.0, \"b\":9007199254740993 } \n", `{"a" : 3.0, "b":9007199254740993 }`},
		"an empty object":                {"{}", "{}"},
		"escapes as they are written":    {`{"\u0061": "\u2728 \/ <&>"}`, `{"\u0061": "\u2728 \/ <&>"}`},
		"doubles deeper down":            {`{"a": {"b": 1, "b": 2}}`, `{"a": {"b": 1, "b": 2}}`},
		"lines":                          {"auc=0.91\n\nmodel = x=y \nempty=", `{"auc":"0.91","model ":" x=y ","empty":""}`},
		"a line's quotes and backslash":  {`a="\n"`, `{"a":"\"\\n\""}`},
		"a line's angle brackets":        {"a=<&>", `{"a":"<&>"}`},
		"a line's carriage return stays": {"a=1\r\n", `{"a":"1\r"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := translators.Outputs([]byte(c.raw), limit)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
}

func TestRefusedOutputs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, sentence string }{
		"cut off":         {`{"a":1`, "the outputs begin as a JSON object but are none: it is cut off"},
		"no JSON":         {`{a:1}`, "the outputs begin as a JSON object but are none: invalid character 'a' looking for beginning of object key string, at byte 2"},
		"two objects":     {`{} {}`, "the outputs begin as a JSON object but are none: something follows it, at byte 2"},
		"a list":          {"[1, 2]", "the outputs are neither a JSON object nor lines name=value"},
		"a number":        {"3.0", "the outputs are no JSON object, and their line 1 is not name=value"},
		"a string with =": {`"a=b"`, "the outputs are neither a JSON object nor lines name=value"},
		"a word":          {"a=1\ndone\n", "the outputs are no JSON object, and their line 2 is not name=value"},
		"bytes":           {"\xff\xfe\x00", "the outputs are not UTF-8 text: write a JSON object, or lines name=value"},
		"a double":        {`{"a":1, "\u0061":2}`, `the output "a" is there twice`},
		"a double line":   {"a=1\na=2", `the output "a" is there twice`},
		"no name":         {`{"": 1}`, "an output has no name"},
		"a line's":        {"=1", "an output has no name"},
		"a control":       {`{"a\nb": 1}`, `the name of the output "a\nb" has a control character`},
		"a long name":     {strings.Repeat("x", 1025) + "=1", "the name of an output is 1025 bytes long, and 1024 are the limit"},
		"too much": {
			`{"a":"` + strings.Repeat("x", limit) + `"}`,
			"the outputs are 49160 bytes, and 49152 are the limit: write large results to a file, and its path to the outputs",
		},
		"too much as JSON": {
			"a=" + strings.Repeat("\t", limit-2),
			"the outputs are 98308 bytes, and 49152 are the limit: write large results to a file, and its path to the outputs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := translators.Outputs([]byte(c.raw), limit)
			require.EqualError(t, err, c.sentence)
			require.Nil(t, got)
		})
	}
}

// jsonByItsLook: lines that begin like JSON, after blanks, are taken for JSON, and not for lines.
func jsonByItsLook(s string) bool {
	s = strings.TrimLeft(s, " ")
	return s != "" && strings.Contains(`{["`, s[:1])
}

// What was made from lines reads as the same lines.
func TestOutputLinesSurvive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(
			rapid.String().Filter(func(s string) bool {
				return s != "" && len(s) <= 1024 && !strings.ContainsFunc(s, unicode.IsControl) && !strings.Contains(s, "=") && !jsonByItsLook(s)
			}),
			rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\n") }),
		).Draw(t, "values")
		var lines strings.Builder
		for name, value := range values {
			lines.WriteString(name + "=" + value + "\n")
		}
		got, err := translators.Outputs([]byte(lines.String()), 1<<20)
		require.NoError(t, err)
		if len(values) == 0 {
			require.Nil(t, got)
			return
		}
		var read map[string]string
		require.NoError(t, json.Unmarshal(got, &read))
		require.Equal(t, values, read)
	})
}

func FuzzOutputs(f *testing.F) {
	for _, seed := range []string{"\f", `{"a": 1}`, "a=1\nb=2", "[1]", "{", "=", `{"a":1,"a":2}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := translators.Outputs(raw, limit)
		if err != nil {
			require.Nil(t, got)
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		if got == nil {
			require.Empty(t, strings.Trim(string(raw), " \t\n\v\f\r"))
			return
		}
		require.LessOrEqual(t, len(got), limit)
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(got, &members))
		again, err := translators.Outputs(got, limit)
		require.NoError(t, err, "what was made of outputs are outputs")
		require.Equal(t, got, again)
	})
}
