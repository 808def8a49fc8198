package slurm

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// submitRate lets so many submissions a second through, for each user by itself. A second's worth may go at once.
type submitRate struct {
	perSecond float64 // 0: as many as there are

	mu    sync.Mutex
	users map[string]*rate.Limiter
}

// turns says for submissions, by their users, how long each has to wait: not at all, or until its turn has come if those
// before it go first.
func (r *submitRate) turns(users []string) []time.Duration {
	waits := make([]time.Duration, len(users))
	if r.perSecond == 0 {
		return waits
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	behind := map[string]float64{}
	for i, user := range users {
		limiter := r.users[user]
		if limiter == nil {
			limiter = rate.NewLimiter(rate.Limit(r.perSecond), int(max(1, math.Ceil(r.perSecond))))
			if r.users == nil {
				r.users = map[string]*rate.Limiter{}
			}
			r.users[user] = limiter
		}
		if behind[user] == 0 && limiter.Allow() {
			continue
		}
		behind[user]++
		waits[i] = max(time.Millisecond, time.Duration((behind[user]-limiter.Tokens())/r.perSecond*float64(time.Second)))
	}
	return waits
}
