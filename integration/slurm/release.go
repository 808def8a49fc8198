package slurmtest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Release is a release of Slurm that tests run against.
type Release string

// The releases: the oldest that is supported, one between, and the newest there is, which moves on: Cluster.Version tells
// what it is just now.
const (
	Oldest Release = "22.05"
	Middle Release = "24.11"
	Newest Release = "newest"
)

// suites are the Debian suites that have the releases. The oldest is installed on this machine.
var suites = map[Release]string{Middle: "trixie", Newest: "sid"}

// root is the folder of a root file system with the release, "" for the oldest, which needs none. It is built by build-root.sh
// when it is absent, which takes a minute or two, in the user's cache, under a name with a digest of that script.
func (r Release) root(script string) (string, error) {
	if r == "" || r == Oldest {
		return "", nil
	}
	suite, known := suites[r]
	if !known {
		return "", fmt.Errorf("no release of Slurm is called %q here: there are %s, %s and %s", r, Oldest, Middle, Newest)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	recipe, err := os.ReadFile(script)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "dagbridge", "slurm", fmt.Sprintf("%s-%.4x", suite, sha256.Sum256(recipe)))
	if output, err := exec.Command(script, suite, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the root file system of Debian %s cannot be built: %w\n%s", suite, err, output)
	}
	return dir, nil
}
