package translators

import (
	"errors"
	"strings"
)

// NormalizeScript is a script's text as a kernel can execute it: its first line names an interpreter, bash when the author
// named none. A byte order mark and blank lines before it, at which a kernel would not recognise the "#!", are dropped;
// everything else stays as it is. Its errors are sentences.
func NormalizeScript(text string) (string, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	for {
		line, rest, more := strings.Cut(text, "\n")
		if strings.TrimSpace(line) != "" {
			break
		}
		if !more {
			return "", errors.New("the script is empty")
		}
		text = rest
	}
	line, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.HasSuffix(line, "\r"):
		return "", errors.New("the script has DOS line ends (CRLF), at which its interpreter would not be found: save it with LF alone")
	case !strings.HasPrefix(line, "#!"):
		return "#!/bin/bash\n" + text, nil
	case strings.TrimSpace(strings.TrimPrefix(line, "#!")) == "":
		return "", errors.New(`the script's first line, "#!", names no interpreter: write "#!/bin/bash", or leave it out`)
	}
	return text, nil
}

// Interpreter is the command that runs a normalised script once the script's file is added to it. As the kernel reads a
// first line, it is a word, and the rest of the line as one argument. So run, a script need not be executable, which in
// some folders no file can be.
func Interpreter(script string) []string {
	line, _, _ := strings.Cut(script, "\n")
	line = strings.Trim(strings.TrimPrefix(line, "#!"), " \t")
	if end := strings.IndexAny(line, " \t"); end >= 0 {
		return []string{line[:end], strings.TrimLeft(line[end:], " \t")}
	}
	return []string{line}
}
