package slurm

import "strings"

// Quote writes bytes as one word of bash's, byte for byte. They must not hold a NUL, which no argument can.
//
// Carriage returns are written as escapes: sbatch refuses a script that holds a CR LF anywhere, be it in a quoted string.
func Quote(s string) string {
	if isPlain(s) {
		return s
	}
	if !strings.Contains(s, "\r") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return "$'" + ansi.Replace(s) + "'"
}

// ansi writes what may not stand for itself between $' and '.
var ansi = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\r", `\r`)

// isPlain says whether bash reads a word as itself.
func isPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_@%+=:,./-", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
