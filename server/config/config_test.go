package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/golden"
	"github.com/dagbridge/dagbridge/server/config"
)

// Each testdata/NAME.yaml has a NAME.golden beside it: what was read, as JSON, or the faults.
func TestLoad(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			c, err := config.Load(path)
			if strings.HasPrefix(name, "bad-") {
				require.Error(t, err)
				got = err.Error() + "\n"
			} else {
				require.NoError(t, err)
				text, err := json.MarshalIndent(c, "", "  ")
				require.NoError(t, err)
				got = string(text) + "\n"
			}
			golden.Equal(t, "testdata", name+".golden", got)
		})
	}
}

func TestLoadMissing(t *testing.T) {
	t.Parallel()
	_, err := config.Load("testdata/none.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "the configuration cannot be read")
}

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, config.Default().Validate())
}

func TestValidateWithoutFile(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Listen.GRPC = "example.org:7070"
	require.EqualError(t, c.Validate(), "listen.grpc: example.org:7070 is reached from other machines, which needs listen.tls and "+
		"auth; listen.tls and auth are not set. Set both, or listen on 127.0.0.1")
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := config.Parse("fuzz.yaml", text); err == nil {
			require.NoError(t, c.Validate())
		}
	})
}
