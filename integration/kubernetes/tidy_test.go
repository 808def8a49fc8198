package kubernetestest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/server/backend/kubernetes"
	translate "github.com/dagbridge/dagbridge/translators/kubernetes"
)

// What has ended stays for a while, and then goes with its pods, but only what this gateway has recorded; marks go alike.
func TestTidy(t *testing.T) {
	r := newRig(t)
	soon, err := kubernetes.New(kubernetes.Options{
		Name: "soon", Kubeconfig: r.cluster.Kubeconfig, Namespaces: []string{r.namespace}, Keep: time.Second, Site: translate.Site{Image: kubernetestest.Image},
	})
	require.NoError(t, err)
	ours, theirs, lives := r.submit(t, sh("true")), r.submit(t, sh("exit 3")), r.submit(t, sh("exec sleep 86400"))
	marked := backendtest.Submission(t, sh("true"))
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{{Ref: backend.NativeRef{Token: marked.Token}, Job: marked.Job}}))
	ours.end(t, dagbridgev1.Job_SUCCEEDED)
	theirs.end(t, dagbridgev1.Job_FAILED)
	lives.running(t)

	recorded := func(token string) bool { return token != theirs.Token }
	require.NoError(t, r.backend.Tidy(t.Context(), recorded))
	require.Len(t, strings.Fields(r.kubectl(t, "", "get", "jobs", "-o", "name")), 4, "an hour has not gone by")
	left := []string{"job.batch/" + theirs.name(), "job.batch/" + lives.name()}
	slices.Sort(left)
	r.cluster.Eventually(t, "what has ended is gone", func() error {
		require.NoError(t, soon.Tidy(t.Context(), recorded))
		if there := strings.Fields(r.kubectl(t, "", "get", "jobs", "-o", "name")); !slices.Equal(there, left) {
			return fmt.Errorf("there are %v", there)
		}
		return nil
	})
	r.cluster.Eventually(t, "so are its pods", func() error {
		if there := r.kubectl(t, "", "get", "pods", "-l", "dagbridge.io/token="+ours.Token, "-o", "name"); there != "" {
			return fmt.Errorf("%s is there", there)
		}
		return nil
	})
}
