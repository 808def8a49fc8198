package slurmtest_test

import (
	"os"

	slurmtest "github.com/dagbridge/dagbridge/integration/slurm"
)

// releases of a test: the oldest and the newest, and in the long run all.
func releases() []slurmtest.Release {
	if os.Getenv("DAGBRIDGE_LONG") == "" {
		return []slurmtest.Release{slurmtest.Oldest, slurmtest.Newest}
	}
	return []slurmtest.Release{slurmtest.Oldest, slurmtest.Middle, slurmtest.Newest}
}

// apart are the ways in that a test goes one by one.
var apart = []string{"REST", "CLI"}
