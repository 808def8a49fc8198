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
	o, err := r.order(ctx, func(d *dialect) (call, error) { return call{method: http.MethodGet, path: d.diag()}, nil })
	if err != nil {
		return 0, err
	}
	if len(o.Errors) > 0 || o.Statistics == nil {
		return 0, fmt.Errorf("slurmrestd does not tell how long slurmctld's queue for accounting is: %w", o.failure())
	}
	return int(o.Statistics.Untold.value), nil
}
