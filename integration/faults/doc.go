// Package faults ends and cuts everything that can be ended and cut, and counts what ran: a gateway that is killed at random
// moments, a slurmrestd whose answers and requests are cut or late, or that hangs and dies, a slurmctld that is killed and
// forgets, is down for a while or has the wrong time, a slurmdbd that is down, hangs or lags, a site's limits, a file system
// that is full, read-only or gone.
//
// Each program appends a line to a file, the ledger, so that a second run cannot go unseen; Slurm's accounting says which
// native jobs there were. The windows that these tests hit by chance only are reached by the engine's model test.
package faults
