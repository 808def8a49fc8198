package slurm

import "strings"

// shellWord writes a text as one word of a POSIX shell's, byte for byte; it must not hold a NUL, which no argument can.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_%+=:,./-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// whole hands standard input to the command that its arguments are, once all of it is there: the end of a connection looks like
// the end of the text, of which sbatch would take half for the whole. The first argument is what the text ends with.
const whole = `text=$(cat)
case $text in *"$1") ;; *) exit 125 ;; esac
text=${text%"$1"}
shift
printf %s "$text" | "$@"`

// remoteLine is the command line that a login shell, of whatever profile, runs as it is to be run. What the command prints is
// between two lines of the mark, on both of its outputs: the profile may print before, and what lacks the second was cut.
func remoteLine(c command, path, mark string) string {
	name := c.name
	if path != "" {
		name = path + "/" + name
	}
	// the one thing that the login knows better: where Slurm's configuration is
	conf := ` ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"}`
	after := append([]string{name}, c.arguments...)
	if c.stdin != "" {
		after = append([]string{"/bin/sh", "-c", whole, "sh", mark}, after...)
	}
	begin := "printf '%s\\n' " + mark + "; printf '%s\\n' " + mark + " >&2; "
	end := "; status=$?; printf '\\n%s\\n' " + mark + "; printf '\\n%s\\n' " + mark + " >&2; exit $status"
	return begin + shellWords(c.alone(c.environment)) + conf + " " + shellWords(after) + end
}

func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}

// between is what stands between two lines of a mark. Begun: the first is there; ended: the second too.
func between(text, mark string) (inner string, begun, ended bool) {
	_, inner, begun = strings.Cut("\n"+text, "\n"+mark+"\n")
	inner, _, ended = strings.Cut(inner, "\n"+mark+"\n")
	return inner, begun, ended
}
