package slurm

import (
	"regexp"
	"strconv"
	"strings"
)

// userName: neither an option nor a hidden folder, nor one above.
var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*\$?$`)

// IsUser says whether a text can be the name of a Unix user, which becomes a part of paths and of command lines; a number is
// none.
func IsUser(name string) bool {
	return len(name) <= 64 && userName.MatchString(name) && strings.Trim(name, "0123456789") != ""
}

// Dir is a job's own folder; of an array, the whole array's. The gateway makes it before it submits.
func Dir(site Site, jobID string) string {
	return site.WorkDir + "/" + site.User + "/" + jobID
}

// StdoutPath is where the program's standard output goes. Position is the array's, -1 without, here and below.
func StdoutPath(site Site, jobID, token string, position int) string {
	return attemptPath(site, jobID, token, position) + ".out"
}

// StderrPath is where the program's standard error goes.
func StderrPath(site Site, jobID, token string, position int) string {
	return attemptPath(site, jobID, token, position) + ".err"
}

// StartMarker is the file that the wrapper creates before anything else, once for each token.
func StartMarker(site Site, jobID, token string, position int) string {
	return attemptPath(site, jobID, token, position) + ".start"
}

// ExitMarker is the file in which the wrapper, last of all, says how the program ended.
func ExitMarker(site Site, jobID, token string, position int) string {
	return attemptPath(site, jobID, token, position) + ".exit"
}

// OutputsPath is where the outputs of a program that succeeded are, as a JSON object, whichever attempt it was.
func OutputsPath(site Site, user, jobID string, position int) string {
	return jobPath(site, user, jobID, outputsName, position, outputsExtension)
}

// SucceededPath is the file by which jobs that come after a program see that it has succeeded, whichever attempt it was.
func SucceededPath(site Site, user, jobID string, position int) string {
	return jobPath(site, user, jobID, succeededName, position, "")
}

// Names of files that outlive an attempt.
const (
	outputsName      = "outputs"
	outputsExtension = ".json"
	succeededName    = "succeeded"
)

func jobPath(site Site, user, jobID, name string, position int, extension string) string {
	site.User = user
	return Dir(site, jobID) + "/" + name + suffix(position) + extension
}

// CancelMark is the file that keeps a token from starting; the gateway makes it.
func CancelMark(site Site, jobID, token string, position int) string {
	return attemptPath(site, jobID, token, position) + ".cancelled"
}

// attemptPath is the common beginning of an attempt's files.
func attemptPath(site Site, jobID, token string, position int) string {
	return Dir(site, jobID) + "/" + attempt(token) + suffix(position)
}

// attempt is a token's last part, the attempt's number. The folder is the job's, so that tells its attempts apart.
func attempt(token string) string { return token[strings.LastIndexByte(token, '.')+1:] }

func suffix(position int) string {
	if position < 0 {
		return ""
	}
	return "_" + strconv.Itoa(position)
}

// logPattern is StdoutPath or StderrPath as a file name pattern of Slurm's, in which '%' is special.
func logPattern(site Site, jobID, token, extension string, array bool) string {
	pattern := strings.ReplaceAll(attemptPath(site, jobID, token, -1), "%", "%%")
	if array {
		pattern += "_%a"
	}
	return pattern + "." + extension
}
