// Package endtoend tests the program as people use it: the binary, its gateway, and a real Slurm behind it.
package endtoend
