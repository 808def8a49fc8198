package slurm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// directive is an option of an #SBATCH line.
type directive struct {
	line int
	// name is sbatch's long name.
	name  string
	value string
}

// shortNames of sbatch's options.
var shortNames = map[byte]string{
	'a': "array", 'A': "account", 'b': "begin", 'B': "extra-node-info", 'c': "cpus-per-task", 'C': "constraint",
	'd': "dependency", 'D': "chdir", 'e': "error", 'F': "nodefile", 'G': "gpus", 'H': "hold", 'i': "input", 'J': "job-name",
	'k': "no-kill", 'L': "licenses", 'm': "distribution", 'M': "clusters", 'n': "ntasks", 'N': "nodes", 'o': "output",
	'O': "overcommit", 'p': "partition", 'q': "qos", 'Q': "quiet", 's': "oversubscribe", 'S': "core-spec", 't': "time",
	'v': "verbose", 'w': "nodelist", 'W': "wait", 'x': "exclude",
}

// bareNames are options that take no value, beside the flags among options.
var bareNames = []string{
	"batch", "consolidate-segments", "contiguous", "hold", "ignore-pbs", "overcommit", "parsable", "quiet", "reboot", "spread-segments", "stepmgr",
	"test-only", "verbose", "wait",
}

// optionalNames are options that may have a value, beside those among options. It is then written behind a "=".
var optionalNames = []string{"get-user-env", "no-kill", "oom-kill-step", "propagate", "resv-ports"}

// longNames are all options of sbatch's, sorted.
var longNames = slices.Sorted(slices.Values(slices.Concat(
	slices.Collect(maps.Keys(options)), slices.Collect(maps.Keys(elsewhere)), slices.Collect(maps.Keys(reserved)), oneWay, newer,
)))

// takes says whether an option has a value.
func takes(name string) (value, optional bool) {
	o := options[name]
	switch {
	case slices.Contains(bareNames, name) || o.kind == flag:
		return false, false
	case slices.Contains(optionalNames, name) || o.bare != "":
		return true, true
	}
	return true, false
}

// splitDirective reads an #SBATCH line, without its prefix, into words as sbatch does: blanks separate, quotes of either
// kind and backslashes keep, an unquoted # begins a comment.
func splitDirective(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote byte
	inWord := false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && (quote != 0 || !isBlank(s[i+1])):
			i++
			word.WriteByte(s[i])
			inWord = true
		case c == '\\':
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote = c
			inWord = true
		case isBlank(c):
			end()
		case c == '#':
			end()
			return words, nil
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	end()
	if quote != 0 {
		return nil, fmt.Errorf("a quote (%c) is not closed", quote)
	}
	return words, nil
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// parseDirective reads the words of one line as options, as getopt does.
func parseDirective(line int, words []string) ([]directive, []error) {
	var found []directive
	var errs []error
	for i := 0; i < len(words); i++ {
		// need takes an option's value from the next word.
		need := func(name string) {
			if i+1 == len(words) {
				errs = append(errs, fmt.Errorf("--%s needs a value", name))
				return
			}
			i++
			found = append(found, directive{line, name, words[i]})
		}
		word := words[i]
		switch {
		case word == "hetjob" || word == "packjob":
			errs = append(errs, errors.New("heterogeneous jobs are not supported yet"))
			return found, errs
		case strings.HasPrefix(word, "--") && len(word) > 2:
			written, value, assigned := strings.Cut(word[2:], "=")
			name, err := longName(written)
			has, optional := takes(name)
			switch {
			case err != nil:
				errs = append(errs, err)
			case assigned && !has:
				errs = append(errs, fmt.Errorf("--%s takes no value", name))
			case assigned || !has || optional:
				found = append(found, directive{line, name, value})
			default:
				need(name)
			}
		case strings.HasPrefix(word, "-") && word != "-" && word != "--":
			for rest := word[1:]; rest != ""; {
				name, known := shortNames[rest[0]]
				if !known {
					errs = append(errs, fmt.Errorf("sbatch has no option -%c", rest[0]))
					break
				}
				rest = rest[1:]
				if has, optional := takes(name); !has {
					found = append(found, directive{line: line, name: name})
				} else if rest != "" || optional {
					found = append(found, directive{line, name, rest})
					break
				} else {
					need(name)
				}
			}
		default:
			errs = append(errs, fmt.Errorf("%q is not an option; a value with blanks must be quoted", word))
		}
	}
	return found, errs
}

// longName is the option that a name, or the beginning of one, stands for.
func longName(written string) (string, error) {
	var matches []string
	for _, name := range longNames {
		if name == written {
			return name, nil
		}
		if strings.HasPrefix(name, written) {
			matches = append(matches, name)
		}
	}
	switch len(matches) {
	case 0:
		return "", fmt.Errorf("sbatch has no option --%s that is known here%s", written, nearest(written, "--", longNames))
	case 1:
		return matches[0], nil
	}
	return "", fmt.Errorf("--%s may be any of --%s", written, strings.Join(matches, ", --"))
}
