// Package integration holds what is tested across the packages: the direction of imports here, real schedulers, faults and
// benchmarks in the folders below. Nothing of it is part of the program but integration/examples.
package integration
