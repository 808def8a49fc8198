package local

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dagbridge/dagbridge/translators"
)

// Check is what is wrong with a submission.
func (b *Backend) Check(sub translators.Submission) translators.Faults {
	_, _, faults := b.spec(sub)
	return faults
}

// Render is a shell script that does by hand what a supervisor does with the program. An image for which nothing stands in is
// no fault of it.
func (b *Backend) Render(sub translators.Submission) (translators.Rendering, translators.Faults) {
	s, notices, faults := b.spec(sub)
	faults = slices.DeleteFunc(faults, func(f translators.Fault) bool { return f.Field == "container.image" }) // the text is what it would be
	if len(faults) > 0 {
		return translators.Rendering{}, faults
	}
	f, _ := b.folder(sub.Token)
	return translators.Rendering{Text: s.text(f), Notices: notices}, nil
}

func (s *spec) text(f folder) string {
	var text strings.Builder
	limit := "for as long as it likes"
	if s.TimeLimit > 0 {
		limit = fmt.Sprintf("for %v at most", s.TimeLimit)
	}
	fmt.Fprintf(&text, "#!/bin/bash\n# Runs here, %s, once %s CPUs and %d bytes of memory are free.\n", limit, thousandths(s.CPU), s.Memory)
	fmt.Fprintf(&text, "mkdir -p %s\n", quote(string(f)))
	writeFile := func(path, content string) {
		if content != "" {
			word := delimiter(content)
			fmt.Fprintf(&text, "cat > %s <<'%s'\n%s\n%s\n", quote(path), word, strings.TrimSuffix(content, "\n"), word)
		}
	}
	writeFile(f.inputs(), s.Inputs)
	writeFile(f.prologue(), s.Prologue)
	writeFile(f.script(), s.Script)
	fmt.Fprintf(&text, "cd %s || exit\nexec env -i", quote(s.Dir))
	for _, entry := range s.Env {
		text.WriteString(" \\\n  " + quote(entry))
	}
	text.WriteString(" \\\n ")
	for _, arg := range s.command(f) {
		text.WriteString(" " + quote(arg))
	}
	text.WriteByte('\n')
	return text.String()
}

func (s *spec) digest(f folder) string {
	sum := sha256.Sum256([]byte(s.text(f)))
	return hex.EncodeToString(sum[:])
}

// quote is one word of a shell, byte for byte.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// delimiter of a here-document that no text in it can end.
func delimiter(content string) string {
	word := "DAGBRIDGE"
	for strings.Contains(content, word) {
		word += "_"
	}
	return word
}
