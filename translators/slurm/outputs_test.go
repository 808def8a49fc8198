package slurm

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/dagbridge/dagbridge/translators"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// awks are the awks of this machine; one at least is needed, as on a compute node.
func awks(t *testing.T) [][]string {
	t.Helper()
	var found [][]string
	for _, awk := range [][]string{{"awk"}, {"mawk"}, {"gawk", "--posix"}, {"original-awk"}, {"busybox", "awk"}} {
		if path, err := exec.LookPath(awk[0]); err == nil {
			found = append(found, append([]string{path}, awk[1:]...))
		}
	}
	require.NotEmpty(t, found)
	return found
}

// check runs the wrapper's check as the wrapper does.
func check(t require.TestingT, awk []string, raw []byte) (verdict int, text string) {
	cmd := exec.Command("bash", append([]string{"-c", `od -An -v -tu1 | LC_ALL=C "${@:2}" "$1"`, "bash", outputsAwk}, awk...)...)
	cmd.Stdin = bytes.NewReader(raw)
	out, err := cmd.Output()
	if _, exited := err.(*exec.ExitError); !exited {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// agree requires that the wrapper takes what translators.Outputs takes, and as the same.
func agree(t require.TestingT, awk []string, raw []byte) {
	want, err := translators.Outputs(raw, 1<<20)
	verdict, text := check(t, awk, raw)
	switch {
	case err != nil:
		require.Equal(t, 1, verdict, "%q: %v", raw, err)
		require.NotEmpty(t, text, "%q", raw)
		require.NotContains(t, strings.TrimSuffix(text, "\n"), "\n", "a sentence is a line")
	case want == nil:
		require.Equal(t, 4, verdict, "%q", raw)
	case want[0] == '{' && bytes.TrimLeft(raw, " \t\r\n")[0] == '{':
		require.Equal(t, 0, verdict, "%q: %s", raw, text)
	default:
		require.Equal(t, 3, verdict, "%q: %s", raw, text)
		require.JSONEq(t, string(want), text, "%q", raw)
	}
}

// pieces of JSON, well put together and badly.
var pieces = []string{
	"{", "}", "[", "]", ",", ":", " ", "\n", "\t", `"a"`, `"b"`, `"\u0061"`, `"\ud83d\ude00"`, `"\ud800"`, `"\ud800\ud801"`, `"\x"`, `"`,
	"1", "-", "0", "01", ".5", "1.", "1e", "1e+9", "-0.25E-3", "true", "false", "null", "tru", "\\", "é", "\xe9", "\x00", "\x7f", "=",
	`"a":1`, `"b":[1,{"c":null}]`, `{"x":{}}`, "\u0085", `"\u0000"`, "\"\x1f\"",
}

func TestTheWrapperTakesTheOutputsThatTheGatewayTakes(t *testing.T) {
	t.Parallel()
	for _, awk := range awks(t) {
		t.Run(awk[0], func(t *testing.T) {
			t.Parallel()
			for _, raw := range []string{
				`{"a":{"a":1,"a":2}}`, `{"a":1,"a":1}`, `{"":1}`, `{"a\u0007":1}`, `{"a\u0085":1}`, `{"\ud800":1,"\udfff":2}`,
				`{"é":1,"\u00e9":2}`, `{"\ud83d\ude00":1,"😀":2}`, strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500),
				`{"` + strings.Repeat("n", 1024) + `":1}`, `{"` + strings.Repeat("n", 1025) + `":1}`,
				strings.Repeat("n", 1024) + "=1", strings.Repeat("n", 1025) + "=1", "a\x7f=1", "a\u0085=1", "a b=1", "é=ü\ny=\v\f\r", "a=1\n\v\n",
				"\xed\xa0\x80=1", "\xc0\xaf=1", "\xf4\x90\x80\x80=1", "\xf4\x8f\xbf\xbf=1", "\xe0\x9f\xbf=1", "a=\xe2\x82",
			} {
				agree(t, awk, []byte(raw))
			}
			rapid.Check(t, func(t *rapid.T) {
				switch rapid.IntRange(0, 3).Draw(t, "sort") {
				case 0: // JSON, more or less
					agree(t, awk, []byte("{"+strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")+"}"))
				case 1: // JSON that is one
					values := rapid.MapOf(rapid.StringMatching(`[a-zé😀"\\]{1,4}`), rapid.SampledFrom([]any{1.5e300, -0.0, "\x01\"\\é😀", nil, true, []any{"x", map[string]any{"y": 1}}})).Draw(t, "values")
					text, err := json.MarshalIndent(values, " ", rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
					require.NoError(t, err)
					agree(t, awk, text)
				case 2: // lines
					lines := rapid.SliceOfN(rapid.StringMatching(`([a-c][é \t"]?=[^\n]*|[ \t]*|[a-z]*)`), 0, 4).Draw(t, "lines")
					agree(t, awk, []byte(strings.Join(lines, "\n")))
				default: // bytes; where they begin as a list or a string, the wrapper refuses without looking further
					raw := rapid.SliceOfN(rapid.Byte(), 0, 12).Filter(func(raw []byte) bool {
						text := bytes.TrimSpace(raw)
						return len(text) > 0 && text[0] != '[' && text[0] != '"'
					}).Draw(t, "bytes")
					agree(t, awk, raw)
				}
			})
		})
	}
}
