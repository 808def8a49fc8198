package local_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
)

// BenchmarkJobs runs `true` from its submission to the news of its end, one at a time and many at once.
func BenchmarkJobs(b *testing.B) {
	for name, batch := range map[string]int{"one": 1, "hundred": 100} {
		b.Run(name, func(b *testing.B) {
			c := cluster(b, b.TempDir())
			task := &dagbridgev1.Task{Command: &dagbridgev1.Command{Argv: []string{"true"}}}
			for b.Loop() {
				subs := make([]translators.Submission, batch)
				for i := range subs {
					subs[i] = backendtest.Submission(b, task)
				}
				live := map[string]backend.Known{}
				for i, result := range c.Submit(b.Context(), subs) {
					require.Equal(b, backend.Submitted, result.Outcome)
					live[result.Ref.Token] = backend.Known{Ref: result.Ref, Job: subs[i].Job}
				}
				ctx, cancel := context.WithTimeout(b.Context(), patience)
				c.Observe(ctx, func() []backend.Known {
					list := make([]backend.Known, 0, len(live))
					for _, known := range live {
						list = append(list, known)
					}
					return list
				}, func(news backend.News) {
					for _, o := range news.Observations {
						if o.State == dagbridgev1.Job_SUCCEEDED {
							delete(live, o.Ref.Token)
						}
					}
					if len(live) == 0 {
						cancel()
					}
				})
				cancel()
				require.Empty(b, live)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*batch), "ms/job")
			require.NoError(b, c.Close())
		})
	}
}
