package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// What a program wrote as its outputs is printed as it was written, in every form.
func TestOutputsAreKept(t *testing.T) {
	t.Parallel()
	job := &dagbridgev1.Job{Id: "1", Outputs: map[string]*dagbridgev1.Json{
		"big": {Text: "9007199254740993"}, "float": {Text: "3.0"}, "text": {Text: `"a\u00e9 \ud83d\ude00 yes"`}, "word": {Text: `"yes"`}, "list": {Text: `[1, {"a": null}, []]`},
	}}
	text, err := outputText(job, nil)
	require.NoError(t, err)
	require.Equal(t, `{"big": 9007199254740993, "float": 3.0, "list": [1, {"a": null}, []], "text": "a\u00e9 \ud83d\ude00 yes", "word": "yes"}`, string(text))

	var out bytes.Buffer
	require.NoError(t, (&format{value: "json"}).printJSON(&out, text))
	require.Equal(t, `{
  "big": 9007199254740993,
  "float": 3.0,
  "list": [
    1,
    {
      "a": null
    },
    []
  ],
  "text": "a\u00e9 \ud83d\ude00 yes",
  "word": "yes"
}
`, out.String())

	out.Reset()
	require.NoError(t, (&format{value: "yaml"}).printJSON(&out, text))
	require.Equal(t, "big: 9007199254740993\nfloat: 3.0\nlist:\n  - 1\n  - a: null\n  - []\ntext: \"aé \\U0001F600 yes\"\nword: \"yes\"\n", out.String())

	one, err := outputText(job, []string{"float"})
	require.NoError(t, err)
	require.Equal(t, "3.0", string(one))
	_, err = outputText(job, []string{"auc"})
	require.Equal(t, exitNotFound, report(&out, err))
}

func TestFormatRefusesOtherWords(t *testing.T) {
	t.Parallel()
	f := format{others: []string{"dot"}}
	require.NoError(t, f.Set("dot"))
	require.EqualError(t, f.Set("xml"), "there are table, json, yaml, dot")
}
