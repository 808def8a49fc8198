package slurm

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
)

// An accounting that was down answers as soon as it is back, while slurmctld still hands over, in order, what happened
// meanwhile: of thousands of jobs that takes minutes, in which accounting knows nothing of jobs that the controller has
// forgotten. How much there is to hand over, slurmctld tells.

var agentQueue = regexp.MustCompile(`(?m)^DBD Agent queue size:\s*([0-9]+)\s*$`)

func (c *cli) untold(ctx context.Context) (int, error) {
	o, err := c.look(ctx, c.timeout, "sdiag")
	if err != nil {
		return 0, fmt.Errorf("sdiag: %w", err)
	}
	found := agentQueue.FindStringSubmatch(o.stdout)
	if found == nil {
		return 0, fmt.Errorf("sdiag does not tell how long slurmctld's queue for accounting is: %.200q", o.stdout)
	}
	return strconv.Atoi(found[1])
}

func (r *rest) untold(ctx context.Context) (int, error) {
	s, err := r.order(ctx, r.User, http.MethodGet, pathDiag, nil)
	if err != nil {
		return 0, err
	}
	if len(s.Errors) > 0 || s.Statistics == nil {
		return 0, fmt.Errorf("slurmrestd does not tell how long slurmctld's queue for accounting is: %v", s.Errors)
	}
	return int(s.Statistics.Untold.value), nil
}
