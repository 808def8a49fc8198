package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dagbridge/dagbridge/server/config"
)

const (
	// prefix of the name that Kubernetes gives to an account.
	prefix = "system:serviceaccount:"
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
	connection, err := connect(c)
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

func connect(c config.ServiceAccounts) (*rest.Config, error) {
	if c.Kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: c.Context},
	).ClientConfig()
}

// isJWT: tokens of service accounts are; an API server is asked about nothing else.
func isJWT(secret string) bool { return strings.Count(secret, ".") == 2 }

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
	rest, ok := strings.CutPrefix(name, prefix)
	if s == nil || !ok {
		return config.ServiceAccount{}, false
	}
	namespace, account, _ := strings.Cut(rest, ":")
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
	question := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: secret, Audiences: []string{s.config.Audience}}}
	review, err := s.reviews.Create(ctx, question, metav1.CreateOptions{})
	if err != nil {
		return answer{}, status.Errorf(codes.Unavailable, "whose service-account token this is cannot be asked of its Kubernetes API server: %v", err)
	}
	told := review.Status
	switch {
	case told.Error != "" || !told.Authenticated:
		return answer{refusal: status.Errorf(codes.Unauthenticated,
			"Kubernetes does not accept this token: it is over, its pod or account is gone, or it is not for the audience %q (%s)", s.config.Audience, told.Error)}, nil
	case !slices.Contains(told.Audiences, s.config.Audience):
		// An API server that knows nothing of audiences answers so.
		return answer{refusal: status.Errorf(codes.Unauthenticated, "Kubernetes does not say that this token is for the audience %q", s.config.Audience)}, nil
	case !strings.HasPrefix(told.User.Username, prefix):
		return answer{refusal: status.Error(codes.Unauthenticated, "this token is a person's in Kubernetes, not a service account's")}, nil
	}
	return answer{name: told.User.Username}, nil
}
