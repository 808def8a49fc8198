package slurm

import (
	"strings"

	"github.com/dagbridge/dagbridge/translators"
)

// userScript is a script of the user's and what runs it.
type userScript struct {
	// interpreter and its argument, to which the script's file is added. The script is not executed itself: its folder may
	// be mounted so that nothing in it can be.
	interpreter []string
	text        string
}

// userScript reads the task's script; nil when it has none, or none that can run.
func (t *translation) userScript() *userScript {
	s := t.submission.Task.GetScript()
	if s == nil {
		return nil
	}
	text, err := translators.NormalizeScript(s.GetText())
	if err != nil {
		t.fault("script.text", "%v", err)
		return nil
	}
	if n := countDirectives(text); n > 0 {
		t.notice("script.text: its #SBATCH lines (%d) mean nothing here: say it in resources and slurm, "+
			"or hand the file to dagbridge submit, which reads them", n)
	}
	line, _, _ := strings.Cut(text, "\n")
	// As the kernel reads it: a word, and the rest of the line as one argument.
	line = strings.Trim(strings.TrimPrefix(line, "#!"), " \t")
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		return &userScript{[]string{line}, text}
	}
	return &userScript{[]string{line[:end], strings.TrimLeft(line[end:], " \t")}, text}
}

// countDirectives counts the lines that sbatch would take for its own.
func countDirectives(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, directivePrefix):
			n++
		case isCommand(line):
			return n
		}
	}
	return n
}

// directivePrefix begins the lines of a script that sbatch reads.
const directivePrefix = "#SBATCH"

// isCommand says whether a line is where sbatch stops reading directives: it is neither blank nor a comment.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && line[0] != '#'
}
