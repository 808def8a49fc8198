// Package examples holds workflows and jobs to try: `dagbridge demo` runs the first of them, the tests run all. They need
// sh, awk and coreutils, nothing else, and run on this machine as they run on Slurm.
package examples

import "embed"

// Files are the examples, by file name.
//
//go:embed *.yaml *.sbatch
var Files embed.FS
