package slurm

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

var (
	privateData = regexp.MustCompile(`(?m)^PrivateData\s*=.*\bjobs\b`)
	slurmUser   = regexp.MustCompile(`(?m)^SlurmUser\s*=\s*([^(\s]+)`)
)

// seesAll: where a site keeps jobs private (PrivateData=jobs) only root, SlurmUser and operators are told of others'.
func (c *cli) seesAll(ctx context.Context) error {
	if c.sees.Load() {
		return nil
	}
	config, err := c.look(ctx, c.timeout, "scontrol", "show", "config")
	if err != nil {
		return fmt.Errorf("whether other users' jobs are told of is not known: %w", err)
	}
	owner := slurmUser.FindStringSubmatch(config.stdout)
	if privateData.MatchString(config.stdout) && c.self != "root" && (owner == nil || owner[1] != c.self) {
		level, err := c.look(ctx, c.timeout, "sacctmgr", "--noheader", "--parsable2", "show", "user", c.self, "format=AdminLevel")
		if word := strings.TrimSpace(level.stdout); err != nil || word != "Operator" && word != "Administrator" {
			return fmt.Errorf("slurm.conf has PrivateData=jobs, by which %s is told of its own jobs alone and could not follow another user's: "+
				"`sacctmgr modify user %s set adminlevel=Operator` lets it", c.self, c.self)
		}
	}
	c.sees.Store(true)
	return nil
}
