package graph

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func TestCPU(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in    string
		milli int64
		err   string
	}{
		{in: "", milli: 0},
		{in: "0", milli: 0},
		{in: "11m", milli: 11},
		{in: "250m", milli: 250},
		{in: "1500m", milli: 1500},
		{in: "2", milli: 2000},
		{in: "2.5", milli: 2500},
		{in: "1.0001", milli: 1001},
		{in: "0.0000001", milli: 1},
		{in: "1e3", milli: 1_000_000},
		{in: "-1", err: `is negative`},
		{in: "-1m", err: `is negative`},
		{in: "many", err: `is not a number of CPUs: write "4", "1.5" or "500m"`},
		{in: "2 cores", err: `is no number of CPUs: write 2, or thousandths ("500m")`},
		{in: "4Gi", err: `is more than 1M CPUs`},
		{in: "1e99", err: `is more than 1M CPUs`},
		{in: "1e999999999", err: `is not a number of CPUs`},
		{in: ".", err: `is not a number of CPUs`},
	} {
		milli, err := CPU(test.in)
		if test.err != "" {
			require.ErrorContains(t, err, test.err, test.in)
			continue
		}
		require.NoError(t, err, test.in)
		require.Equal(t, test.milli, milli, test.in)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in    string
		bytes int64
		err   string
	}{
		{in: "", bytes: 0},
		{in: "0", bytes: 0},
		{in: "1e3", bytes: 1000},
		{in: "1.5Gi", bytes: 1610612736},
		{in: "16Gi", bytes: 16 << 30},
		{in: "16G", bytes: 16_000_000_000},
		{in: "100k", bytes: 100_000},
		{in: "0.5", bytes: 1},
		{in: "1Ei", bytes: 1 << 60},
		{in: "16 GB", err: `is no amount of memory: write 16G or 16Gi`},
		{in: "16g", err: `write 16G or 16Gi`},
		{in: "100K", err: `write 100k or 100Ki`},
		{in: "1000mi", err: `write 1000Mi`},
		{in: "16 GiB", err: `write 16Gi`},
		{in: "512m", err: `is a fraction of a byte: write 512M or 512Mi`},
		{in: "Gi", err: `is not an amount of memory: write it as "16Gi", "500M" or a number of bytes`},
		{in: "-1Gi", err: `is negative`},
		{in: "-1 GB", err: `is negative`},
		{in: "many", err: `is not an amount of memory`},
		{in: "5 bananas", err: `is not an amount of memory`},
		{in: "1e30", err: `is more than 1Ei`},
		{in: "2Ei", err: `is more than 1Ei`},
		{in: "1e999999999", err: `is not an amount of memory`},
	} {
		bytes, err := Memory(test.in)
		if test.err != "" {
			require.ErrorContains(t, err, test.err, test.in)
			continue
		}
		require.NoError(t, err, test.in)
		require.Equal(t, test.bytes, bytes, test.in)
	}
}

func FuzzQuantities(f *testing.F) {
	for _, seed := range []string{"", "0", "1", "-1", "1.5Gi", "500m", "1e3", "1e-9", "1E", "16 GB", "Gi", ".", "+", "1e99", "1e999999999", "９", "1\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, parse := range []func(string) (int64, error){CPU, Memory} {
			n, err := parse(s)
			if err != nil {
				require.Zero(t, n)
				require.True(t, utf8.ValidString(err.Error()) || !utf8.ValidString(s))
				continue
			}
			require.GreaterOrEqual(t, n, int64(0))
			if s == "" {
				continue
			}
			// Whatever is taken, Kubernetes takes too; and what is not nothing is never rounded to nothing.
			q, err := resource.ParseQuantity(s)
			require.NoError(t, err)
			require.Equal(t, q.IsZero(), n == 0)
		}
		// What a suggestion suggests is right.
		if _, err := Memory(s); err != nil {
			if _, suggestion, ok := strings.Cut(err.Error(), "is no amount of memory: write "); ok {
				for _, one := range strings.Split(suggestion, " or ") {
					_, err := resource.ParseQuantity(one)
					require.NoError(t, err, "%q for %q", one, s)
				}
			}
		}
	})
}

// Submissions are checked at the same time: what they are compared with is only read (-race sees it).
func TestManyReadQuantitiesAtOnce(t *testing.T) {
	t.Parallel()
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			_, err := CPU("2M")
			assert.ErrorContains(t, err, "more than 1M CPUs")
			_, err = Memory("2Ei")
			assert.ErrorContains(t, err, "more than 1Ei")
			assert.Equal(t, "2Gi", GrownMemory("1Gi", &dagbridgev1.Growth{Factor: 2}))
		})
	}
	readers.Wait()
}
