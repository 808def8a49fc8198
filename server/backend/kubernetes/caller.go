package kubernetes

import (
	"context"
	"errors"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/serviceaccount"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// By these the API server says which pod a service account's token was made for.
const (
	podNameClaim = "authentication.kubernetes.io/pod-name"
	podUIDClaim  = "authentication.kubernetes.io/pod-uid"
)

// Caller asks the API server whose token it is. A pod's own token for the gateway is the word of the kubelet that the pod is
// there; which job the pod is of, its labels say, and the namespace, in which the gateway made it.
func (b *Backend) Caller(ctx context.Context, bearer string, live func(string) (backend.NativeRef, bool)) (string, int, error) {
	if b.options.Site.URL == "" || !serviceaccount.IsToken(bearer) {
		return "", -1, nil
	}
	c, err := b.connect()
	if err != nil {
		return "", -1, err
	}
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	user, refusal, err := serviceaccount.Review(ctx, c.reviews, bearer, translate.Audience)
	if err != nil {
		return "", -1, errors.New(sentence(err))
	}
	namespace, _, _ := serviceaccount.Split(user.Username)
	name, uid := user.Extra[podNameClaim], user.Extra[podUIDClaim]
	if refusal != "" || !b.serves(namespace) || len(name) != 1 || len(uid) != 1 {
		return "", -1, nil
	}
	pod, err := c.core.Pods(namespace).Get(ctx, name[0], metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", -1, nil
	case err != nil:
		return "", -1, errors.New(sentence(err))
	case string(pod.UID) != uid[0]:
		return "", -1, nil
	}
	token := pod.Labels[translate.TokenLabel]
	ref, known := live(token)
	where, err := parseID(ref.ID)
	if !known || err != nil || where.namespace != namespace {
		return "", -1, nil
	}
	positions, _ := translate.ParsePositions(pod.Annotations[translate.PositionsAnnotation])
	if positions == nil {
		return token, -1, nil
	}
	index, err := strconv.Atoi(pod.Labels[batchv1.JobCompletionIndexAnnotation])
	if err != nil || index < 0 || index >= len(positions) {
		return "", -1, nil
	}
	return token, positions[index], nil
}
