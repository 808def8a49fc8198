package kubernetestest_test

import (
	"net/http"
	"path"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
)

// An order reads the object that it then changes, and in between a controller may have changed it: the order is given again.
func TestAnObjectChangesUnderAnOrder(t *testing.T) {
	t.Parallel()
	c := kubernetestest.Shared(t)
	ns := c.Namespace(t)
	r := newRigAs(t, c, ns, meddled(t, c, ns))

	s := backendtest.Submission(t, sh("sleep 600"))
	s.Hold = true
	held := r.submission(t, s)
	require.Equal(t, []error{nil}, r.backend.Alter(t.Context(), []backend.Change{{Ref: held.ref, Job: held.Job, Release: true}}))
	held.running(t)

	array := r.array(t, sh("sleep 600"), 2)
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{array.known(1)}))
	array.awaitAt(t, 1, dagbridgev1.Job_CANCELLED)
	array.awaitAt(t, 0, dagbridgev1.Job_RUNNING)
}

// meddled is a kubeconfig for an API server where somebody else changes each object right before its first change by a client.
func meddled(t *testing.T, c *kubernetestest.Cluster, namespace string) string {
	t.Helper()
	var changed sync.Map
	return c.Door(t, func(request *http.Request) {
		if request.Method == http.MethodPatch {
			if _, again := changed.LoadOrStore(request.URL.Path, true); !again {
				c.Kubectl(t, "", "annotate", "job", path.Base(request.URL.Path), "-n", namespace, "meddled=yes")
			}
		}
	})
}
