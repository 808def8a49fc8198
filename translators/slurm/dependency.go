package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dagbridge/dagbridge/translators"
)

// UnknownID stands in an expression for an upstream that has no native id yet. Slurm refuses it, so that a job whose
// dependency was never filled in cannot start early.
const UnknownID = "JOBID"

// dependencyTypes in the order in which an expression lists them.
var dependencyTypes = []translators.DependencyType{
	translators.After, translators.AfterOK, translators.AfterNotOK, translators.AfterAny, translators.AfterCorr,
	translators.Singleton,
}

// foreign checks the ids of other people's jobs, which go into the expression as they are.
func (t *translation) foreign() {
	for i, e := range t.submission.Task.GetUpstream() {
		id := e.GetNative().GetId()
		if e.GetNative() == nil {
			continue
		}
		if _, positions, array, err := ParseIDs(id); err != nil || array && len(positions) != 1 || strings.Contains(id, "[") {
			t.fault(fmt.Sprintf("upstream[%d].native.id", i), `%q is no id of a job, nor of an element of an array, as Slurm writes them ("1234", "1234_7")`, id)
		}
	}
}

// Expression is Slurm's dependency expression: "afterok:1:2,afterany:3", or with ? where any one of them is enough. Terms of
// a type are together, in the order they came in, each once. Nothing to wait for is "".
func Expression(d translators.Dependencies) string {
	var terms []string
	for _, kind := range dependencyTypes {
		seen := map[string]bool{}
		var ids []string
		for _, term := range d.Terms {
			if id := dependencyID(term); term.Type == kind && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
		switch {
		case len(ids) == 0:
		case kind == translators.Singleton:
			terms = append(terms, string(kind))
		case d.Any:
			for _, id := range ids {
				terms = append(terms, string(kind)+":"+id)
			}
		default:
			terms = append(terms, string(kind)+":"+strings.Join(ids, ":"))
		}
	}
	if d.Any {
		return strings.Join(terms, "?")
	}
	return strings.Join(terms, ",")
}

// dependencyID is the job that a term waits for, and for how many minutes after its start.
func dependencyID(d translators.Dependency) string {
	id := d.NativeID
	if id == "" {
		id = UnknownID
	}
	if minutes := ceil(int64(d.Delay), int64(time.Minute)); d.Type == translators.After && minutes > 0 {
		return id + "+" + strconv.FormatInt(minutes, 10)
	}
	return id
}
