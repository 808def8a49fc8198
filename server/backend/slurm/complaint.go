package slurm

import (
	"fmt"
	"strings"
)

// complaint is an error or a warning in an answer of slurmrestd's.
type complaint struct {
	// Code is the number where a job is submitted to v0.0.38, Number elsewhere; warnings have none.
	Code        int    `json:"error_code"`
	Number      int    `json:"error_number"`
	Error       string `json:"error"`
	Description string `json:"description"`
	// Source is who complains, or what about: "slurm_submit_batch_job()", "#/job/gres/".
	Source string `json:"source"`
}

func (c complaint) number() int {
	if c.Code != 0 {
		return c.Code
	}
	return c.Number
}

// submissionPrefix is how v0.0.40 and later say a second time, as a warning, what they say anyway.
const submissionPrefix = "Job submission resulted in non-zero return code: "

// sentence is what the complaint says.
func (c complaint) sentence() string {
	description := strings.TrimPrefix(c.Description, submissionPrefix)
	switch {
	case description == "" && c.Error == "":
		return fmt.Sprintf("error %d, without a word", c.number())
	case description == "":
		return c.Error
	case strings.Contains(description, c.Error):
		return description
	default:
		return description + ": " + c.Error
	}
}

// ofField says whether slurmrestd did not take a field of the job as it was said, but went on without it. That a value came
// in another type than it likes, and was read all the same, is no such thing.
func (c complaint) ofField() bool {
	return strings.HasPrefix(c.Source, "#/") && !strings.HasPrefix(c.Description, "Expected OpenAPI type=")
}

// unknownField says whether it is of a field, or a parameter of a question, that slurmrestd does not have.
func (c complaint) unknownField() bool {
	return strings.HasPrefix(c.Description, "Ignoring unknown field")
}

// unchanged says whether a warning is that nothing has changed since the moment that was asked for.
func (c complaint) unchanged() bool { return strings.HasPrefix(c.Description, "No job changes since") }
