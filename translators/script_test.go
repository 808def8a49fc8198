package translators_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagbridge/dagbridge/translators"
)

func TestNormalizeScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"its own interpreter":        {"#!/usr/bin/env python3\nprint()", "#!/usr/bin/env python3\nprint()"},
		"none":                       {"echo x\n", "#!/bin/bash\necho x\n"},
		"a comment":                  {"# !x\n", "#!/bin/bash\n# !x\n"},
		"indented is none":           {" #!/bin/sh\n", "#!/bin/bash\n #!/bin/sh\n"},
		"blank lines first":          {"\n \t\n#!/bin/sh\n\necho\n", "#!/bin/sh\n\necho\n"},
		"a byte order mark":          {"\ufeff#!/bin/sh\n", "#!/bin/sh\n"},
		"a mark, then blank lines":   {"\ufeff\n\n#!/bin/sh\n", "#!/bin/sh\n"},
		"DOS ends further down stay": {"#!/bin/sh\ncat <<E\na\r\nE\n", "#!/bin/sh\ncat <<E\na\r\nE\n"},
		"no last line end":           {"#!/bin/sh", "#!/bin/sh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := translators.NormalizeScript(c.text)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestRefusedScripts(t *testing.T) {
	t.Parallel()
	for text, sentence := range map[string]string{
		"":                   "the script is empty",
		"\ufeff \n\r\n":      "the script is empty",
		"#!/bin/sh\r\necho":  "the script has DOS line ends (CRLF), at which its interpreter would not be found: save it with LF alone",
		"echo x\r\necho y\r": "the script has DOS line ends (CRLF), at which its interpreter would not be found: save it with LF alone",
		"#! \necho":          `the script's first line, "#!", names no interpreter: write "#!/bin/bash", or leave it out`,
	} {
		_, err := translators.NormalizeScript(text)
		require.EqualError(t, err, sentence, "%q", text)
	}
}

func TestInterpreter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"#!/bin/sh":                         {"/bin/sh"},
		"#! /bin/sh \necho":                 {"/bin/sh"},
		"#!/usr/bin/awk\t -f\nBEGIN {}":     {"/usr/bin/awk", "-f"},
		"#!/usr/bin/env -S python3 -u\n":    {"/usr/bin/env", "-S python3 -u"},
		"#!/usr/bin/env 'not a quote' x \n": {"/usr/bin/env", "'not a quote' x"},
	} {
		require.Equal(t, want, translators.Interpreter(text), "%q", text)
	}
}

func TestNormalizedScriptsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		once, err := translators.NormalizeScript(rapid.StringMatching(`(\x{FEFF})?[ \n]*(#!)?[ -~\n]*`).Draw(t, "text"))
		if err != nil {
			return
		}
		require.True(t, strings.HasPrefix(once, "#!"))
		twice, err := translators.NormalizeScript(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
