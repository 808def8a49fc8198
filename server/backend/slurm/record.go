package slurm

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dagbridge/dagbridge/translators/slurm"
)

// record is what the controller, or accounting, tells of one native job, or of elements of an array that fare alike.
type record struct {
	// id; of an array's element the array's.
	id string
	// own id of a job, or of an element of an array that has started; "" when it is not told.
	own string
	// positions in the array that this is about; nil of a single job.
	positions []int
	// rest: of an array, about all positions that no other record is about, since slurmrestd cuts a long list short.
	rest bool
	// unread: there is a record of this id, but it cannot be read.
	unread bool

	// words of the state: a base state and flags, as Slurm writes them.
	words  []string
	reason string
	// description is Slurm's sentence on the state, rarely given.
	description string
	// held: it has no priority until it is released.
	held bool
	// killer is whom accounting names as having cancelled it, by name or number; "" when it names nobody.
	killer string
	// exit and signal of the program as waited for; nil when not told.
	exit, signal *int32
	// dependency is the expression still waited for.
	dependency         string
	submit, start, end time.Time
	node               string
	user               string
	comment, name      string
}

// token that the native job carries, "" when it is not one of ours.
func (r *record) token() string {
	token, _ := slurm.TokenOf(r.comment, r.name)
	return token
}

// owner is the user whose job it is; "" when that is not known: where user ids cannot be resolved Slurm writes their number.
func (r *record) owner() string {
	if strings.Trim(r.user, "0123456789") == "" {
		return ""
	}
	return r.user
}

// of says whether the record may be of a user's job.
func (r *record) of(user string) bool { return r.owner() == user || r.owner() == "" }

// native is the state that the words mean; false when no table knows them.
func (r *record) native() (slurm.Native, bool) {
	if len(r.words) == 0 {
		return slurm.Native{}, false
	}
	return slurm.State(r.words[0], r.words[1:]...)
}

// sentence is the state as squeue shows it: "PENDING (Resources)".
func (r *record) sentence() string {
	s := strings.Join(r.words, "+")
	if r.reason != "" && r.reason != "None" {
		s += " (" + r.reason + ")"
	}
	if r.description != "" {
		s += ": " + r.description
	}
	return s
}

var dependencyID = regexp.MustCompile(`:([0-9]+(?:_[0-9]+)?)(?:_\*)?(?:\+[0-9]+)?(\(failed\))?`)

// dependencies are the ids in an expression such as "afterok:1_*(failed),afterany:1_3(unfulfilled)", and those that failed.
func (r *record) dependencies() (ids, failed []string) {
	for _, match := range dependencyID.FindAllStringSubmatch(r.dependency, -1) {
		if !slices.Contains(ids, match[1]) {
			ids = append(ids, match[1])
		}
		if match[2] != "" {
			failed = append(failed, match[1])
		}
	}
	return ids, failed
}

// waitStatus takes the status that wait(2) gives apart: a program that a signal killed counts as 128 + signal.
func waitStatus(status int64) (exit, signal *int32) {
	if s := int32(status & 0x7f); s != 0 {
		code := 128 + s
		return &code, &s
	}
	code := int32(status >> 8)
	return &code, nil
}
