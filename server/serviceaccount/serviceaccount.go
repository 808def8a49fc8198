// Package serviceaccount asks a Kubernetes API server whose token of a service account a caller has.
//
// It keeps no answers and decides nobody's rights: who may do what with such a token is for who asks.
package serviceaccount

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Prefix begins the names that Kubernetes gives to accounts as users: system:serviceaccount:NAMESPACE:NAME.
const Prefix = "system:serviceaccount:"

// Connection is how an API server is reached: by a context of a kubeconfig; without a kubeconfig that of the pod's own cluster.
func Connection(kubeconfig, inContext string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: inContext},
	).ClientConfig()
}

// IsToken: tokens of service accounts are JSON web tokens; an API server is asked about nothing else.
func IsToken(bearer string) bool { return strings.Count(bearer, ".") == 2 }

// Split is an account's namespace and name, by its name as a user; false when it is no account's.
func Split(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, Prefix)
	namespace, name, _ = strings.Cut(rest, ":")
	return namespace, name, ok
}

// Review is whose a token for an audience is, or the sentence that says why it is no account's. The error is that the API server did
// not answer.
func Review(ctx context.Context, reviews client.TokenReviewInterface, bearer, audience string) (user authenticationv1.UserInfo, refusal string, err error) {
	review, err := reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: bearer, Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return user, "", err
	}
	told := review.Status
	switch {
	case told.Error != "" || !told.Authenticated:
		return user, fmt.Sprintf("Kubernetes does not accept this token: it is over, its pod or account is gone, or it is not for the audience %q (%s)", audience, told.Error), nil
	case !slices.Contains(told.Audiences, audience):
		// An API server that knows nothing of audiences answers so.
		return user, fmt.Sprintf("Kubernetes does not say that this token is for the audience %q", audience), nil
	case !strings.HasPrefix(told.User.Username, Prefix):
		return user, "this token is a person's in Kubernetes, not a service account's", nil
	}
	return told.User, "", nil
}
