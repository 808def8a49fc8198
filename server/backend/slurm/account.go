package slurm

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dagbridge/dagbridge/translators/slurm"
)

// account is a Unix user of this machine.
type account struct {
	uid int
	// groups it is in, its own one first.
	groups []int
}

// accounts are looked up by the system's id(1): a binary without cgo reads /etc/passwd alone, while the users of a cluster
// are in a directory.
type accounts struct {
	mu    sync.Mutex
	known map[string]accountAnswer
}

type accountAnswer struct {
	account
	err  error
	asOf time.Time
}

// accountAge is how long an answer is good for: all tasks of a workflow ask for the same user.
const accountAge = time.Minute

// of is the account of a user's name. Errors are sentences.
func (a *accounts) of(ctx context.Context, user string) (account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, have := a.known[user]
	if !have || time.Since(answer.asOf) > accountAge {
		answer = accountAnswer{asOf: time.Now()}
		answer.account, answer.err = lookUp(ctx, user)
		if ctx.Err() == nil {
			if a.known == nil {
				a.known = map[string]accountAnswer{}
			}
			a.known[user] = answer
		}
	}
	return answer.account, answer.err
}

// lookUp asks the system. A name that has the form of a number, of an option or of a path is nobody's.
func lookUp(ctx context.Context, user string) (account, error) {
	if !slurm.IsUser(user) {
		return account{}, fmt.Errorf("%q is no name of a user", user)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	uid, err := ids(ctx, "-u", user)
	if err != nil {
		return account{}, err
	}
	groups, err := ids(ctx, "-G", user)
	if err != nil {
		return account{}, err
	}
	return account{uid: uid[0], groups: groups}, nil
}

// ids are the numbers that id(1) prints.
func ids(ctx context.Context, option, user string) ([]int, error) {
	cmd := exec.CommandContext(ctx, "id", option, "--", user)
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the system does not say in time who the user %s is", user)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no user %s on the gateway's machine", user)
	}
	var numbers []int
	for _, word := range strings.Fields(string(text)) {
		number, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("id %s %s printed %q", option, user, text)
		}
		numbers = append(numbers, number)
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("id %s %s printed nothing", option, user)
	}
	return numbers, nil
}
