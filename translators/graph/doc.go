// Package graph is the logic of a DAG, apart from any scheduler and any store: what is wrong with a workflow (Check), what
// is filled in where it says nothing (Normalize), in which order its tasks go (Order), when one may start (Decide), which
// states follow each other (CanMove), which edges a scheduler can keep by itself (Natives), and what a task asks for when it
// is tried again (GrownMemory, GrownTime).
//
// Tasks are nodes, a task's upstream list holds the edges into it, and names resolve to full keys through Upstream. Check
// and everything after it expect a workflow that Normalize has filled in; everything after Check expects one without faults.
//
// What a task waits for is decided by counts alone: how many of its upstreams succeeded, failed, were skipped. An array
// counts by its instances. That makes the trigger rules a table, and makes "would the scheduler do the same?" a question
// that Natives answers by looking at every state the upstreams can be in, instead of by a list of special cases.
//
// The package is pure, as all translators are: no context, network, files, clock, randomness or logging.
package graph
