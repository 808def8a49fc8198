package slurm

import (
	"os/user"
	"testing"

	"github.com/stretchr/testify/require"
)

// myName is the tests' own user, so that folders can be given to it.
func myName(t *testing.T) string {
	me, err := user.Current()
	require.NoError(t, err)
	return me.Username
}
