package engine

import (
	"fmt"

	"github.com/dagbridge/dagbridge/translators"
)

// ownerAlone is the Options' UserOf when it is left out.
func ownerAlone(owner, asked string) (string, error) {
	if asked != "" && asked != owner {
		return "", fmt.Errorf("%s may not run jobs as %s", owner, asked)
	}
	return owner, nil
}

// act decides as whom a task runs.
func (one *planned) act(field string, around surroundings) (faults translators.Faults) {
	if !one.cluster.Backend.Capabilities().Impersonates {
		return nil // its own translator refuses a user that it does not act as
	}
	user, err := around.user(one.task.GetSlurm().GetUser())
	if err != nil {
		faults.Add(field+".slurm.user", "%s", err)
	}
	one.user = user
	return faults
}
