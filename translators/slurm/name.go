package slurm

import (
	"slices"
	"strings"
	"unicode/utf8"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// commentPrefix begins the comment of every job of the gateway's.
const commentPrefix = "dagbridge:"

// Name is a job name that people can read and the gateway can recognise: the task id, made safe and shortened where it must
// be, a dot, and the token. The token is a suffix because accounting keeps the name where it drops the comment.
func Name(task, token string) string { return safeName(task, maxNameBytes-len(token)-1) + "." + token }

// SharedName is the name of a job that no other one of the same name may run beside: the task id, made safe. Such jobs are
// recognised by their comment alone.
func SharedName(task string) string { return safeName(task, maxNameBytes) }

// isSingleton says whether a task waits for all other jobs of its name.
func isSingleton(task *dagbridgev1.Task) bool {
	return slices.ContainsFunc(task.GetUpstream(), func(e *dagbridgev1.Edge) bool { return e.GetCondition() == dagbridgev1.Edge_SINGLETON })
}

// safeName is a task id as a job name of so many bytes at most.
func safeName(task string, room int) string {
	safe := []byte(task)
	for i, c := range safe {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			// No dot either: the first one ends the readable part.
			safe[i] = '_'
		}
	}
	return string(safe[:min(len(safe), max(room, 0))])
}

// Comment is what the gateway recognises its jobs by first: the token, and the key for people.
func Comment(key *dagbridgev1.TaskKey, token string) string {
	comment := commentPrefix + token + " " + graph.FormatKey(key)
	if len(comment) <= maxCommentBytes {
		return comment
	}
	end := maxCommentBytes - len("…")
	for !utf8.RuneStart(comment[end]) {
		end--
	}
	return comment[:end] + "…"
}

// TokenOf is the token that a job carries in its comment or, where that is lost, in its name. A name that only looks like
// one of the gateway's may give a token that nobody has issued.
func TokenOf(comment, name string) (token string, ok bool) {
	if rest, found := strings.CutPrefix(comment, commentPrefix); found {
		token, _, _ = strings.Cut(rest, " ")
		return token, isToken(token)
	}
	_, token, _ = strings.Cut(name, ".")
	return token, isToken(token)
}

// isToken says whether s is written as tokens are: an id, a dot, the attempt's number.
func isToken(s string) bool {
	id, attempt, found := strings.Cut(s, ".")
	return found && id != "" && attempt != "" && strings.Trim(attempt, "0123456789") == "" && !strings.ContainsAny(id, " \t\n/")
}
