package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/cache"
	client "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/dagbridge/dagbridge/server/config"
	"github.com/dagbridge/dagbridge/server/serviceaccount"
)

const (
	// reviewTime is how long an API server may take to say whose a token is.
	reviewTime = 5 * time.Second
	// A token that is accepted is not asked about again for a minute: so long may a pod that is gone call on. One that is not
	// may be accepted soon, when its account has just been made.
	knownFor, unknownFor = time.Minute, 5 * time.Second
	// remembered is the most answers that are kept.
	remembered = 4096
)

// serviceAccounts lets pods in, by what their cluster's API server says of their tokens. Calls with other tokens never wait for it.
type serviceAccounts struct {
	config  config.ServiceAccounts
	reviews client.TokenReviewInterface
	// answers by the token's digest; asking is one question for all calls that came with the same token.
	answers *cache.LRUExpireCache
	asking  singleflight.Group
}

// answer is whose a token is, or why it is nobody's.
type answer struct {
	name    string
	refusal error
}

func newServiceAccounts(c config.ServiceAccounts) (*serviceAccounts, error) {
	connection, err := serviceaccount.Connection(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, fmt.Errorf("auth.serviceAccounts: the cluster whose accounts are let in cannot be found: %w", err)
	}
	connection.Timeout = reviewTime
	// The kept answers are the limit.
	connection.QPS = -1
	reviews, err := client.NewForConfig(connection)
	if err != nil {
		return nil, fmt.Errorf("auth.serviceAccounts: %w", err)
	}
	return &serviceAccounts{config: c, reviews: reviews.TokenReviews(), answers: cache.NewLRUExpireCache(remembered)}, nil
}

// owner is the account whose token this is, if it may use the gateway.
func (s *serviceAccounts) owner(ctx context.Context, secret string, digest [sha256.Size]byte) (string, error) {
	a, err := s.answer(ctx, secret, digest)
	if err != nil {
		return "", err
	}
	if a.refusal != nil {
		return "", a.refusal
	}
	if _, ok := s.find(a.name); !ok {
		return "", status.Errorf(codes.PermissionDenied, "%s may not use this gateway (auth.serviceAccounts.allow)", a.name)
	}
	return a.name, nil
}

// find is what the configuration says of an account, by its name in Kubernetes.
func (s *serviceAccounts) find(name string) (config.ServiceAccount, bool) {
	namespace, account, ok := serviceaccount.Split(name)
	if s == nil || !ok {
		return config.ServiceAccount{}, false
	}
	for _, wanted := range []string{account, ""} {
		for _, a := range s.config.Allow {
			if a.Namespace == namespace && a.Name == wanted {
				return a, true
			}
		}
	}
	return config.ServiceAccount{}, false
}

// answer is the API server's, a kept one or a new one. The error says that there is none.
func (s *serviceAccounts) answer(ctx context.Context, secret string, digest [sha256.Size]byte) (answer, error) {
	if kept, ok := s.answers.Get(digest); ok {
		return kept.(answer), nil
	}
	asked := s.asking.DoChan(string(digest[:]), func() (any, error) {
		// Not the context of one caller: others may wait for the same answer.
		ctx, cancel := context.WithTimeout(context.Background(), reviewTime)
		defer cancel()
		a, err := s.review(ctx, secret)
		if err == nil && a.refusal == nil {
			s.answers.Add(digest, a, knownFor)
		} else if err == nil {
			s.answers.Add(digest, a, unknownFor)
		}
		return a, err
	})
	select {
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case told := <-asked:
		a, _ := told.Val.(answer)
		return a, told.Err
	}
}

// review asks the API server.
func (s *serviceAccounts) review(ctx context.Context, secret string) (answer, error) {
	user, refusal, err := serviceaccount.Review(ctx, s.reviews, secret, s.config.Audience)
	switch {
	case err != nil:
		return answer{}, status.Errorf(codes.Unavailable, "whose service-account token this is cannot be asked of its Kubernetes API server: %v", err)
	case refusal != "":
		return answer{refusal: status.Error(codes.Unauthenticated, refusal)}, nil
	}
	return answer{name: user.Username}, nil
}
