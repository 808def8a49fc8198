package slurm

import "strings"

// userScript is a script of the user's and what runs it.
type userScript struct {
	// interpreter and its arguments, to which the script's file is added.
	interpreter []string
	text        string
}

// userScript reads the task's script. What Slurm and the kernel would trip over is mended where the meaning is plain: a byte
// order mark and blank lines before the first line, and no "#!".
func (t *translation) userScript() userScript {
	text := strings.TrimPrefix(t.submission.Task.GetScript().GetText(), "\ufeff")
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found || strings.TrimSpace(line) != "" {
			break
		}
		text = rest
	}
	line, _, _ := strings.Cut(text, "\n")
	shebang, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return userScript{interpreter: []string{"/bin/bash"}, text: text}
	}
	// As the kernel reads it: one word, and the rest of the line as one argument.
	shebang = strings.Trim(shebang, " \t")
	name, argument, _ := strings.Cut(strings.ReplaceAll(shebang, "\t", " "), " ")
	interpreter := []string{name}
	if argument = strings.TrimLeft(argument, " "); argument != "" {
		interpreter = append(interpreter, argument)
	}
	return userScript{interpreter: interpreter, text: text}
}

// checkScript finds what cannot be mended in the task's script.
func (t *translation) checkScript() {
	script := t.submission.Task.GetScript()
	if script == nil {
		return
	}
	s := t.userScript()
	first, _, _ := strings.Cut(s.text, "\n")
	switch {
	case strings.TrimSpace(s.text) == "":
		t.fault("script.text", "the script is empty")
		return
	case strings.HasPrefix(first, "#!") && strings.HasSuffix(first, "\r"):
		t.fault("script.text", `its first line ends in a carriage return, so that no interpreter %q would be found; `+
			"write the script with Unix line ends", s.interpreter[0]+"\r")
	case strings.HasPrefix(first, "#!") && s.interpreter[0] == "":
		t.fault("script.text", "its first line names no interpreter after #!")
	}
	if n := countDirectives(s.text); n > 0 {
		t.notice("script.text: %d #SBATCH lines in it mean nothing here; say it in resources and slurm, "+
			"or hand the file to dagbridge submit, which reads them", n)
	}
}

// countDirectives counts the lines that sbatch would take for its own.
func countDirectives(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#SBATCH"):
			n++
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#"):
			return n
		}
	}
	return n
}
