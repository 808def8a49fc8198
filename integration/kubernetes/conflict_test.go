package kubernetestest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/backend"
	"github.com/dagbridge/dagbridge/server/backend/backendtest"
	"github.com/dagbridge/dagbridge/translators"
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

	task := sh("sleep 600")
	task.Array = &dagbridgev1.Array{Items: []*dagbridgev1.Array_Item{{}, {}}}
	array := backendtest.Submission(t, task)
	for i, item := range task.Array.Items {
		array.Instances = append(array.Instances, translators.Instance{Position: i, JobID: array.Job.Id, MapIndex: []int32{int32(i)}, Item: item})
	}
	result := r.backend.Submit(t.Context(), []translators.Submission{array})[0]
	require.Equal(t, backend.Submitted, result.Outcome, result.Message)
	r.watcher.Add(backend.Known{Ref: result.Ref, Job: array.Job, Positions: []int{0, 1}})
	require.Equal(t, []error{nil}, r.backend.Cancel(t.Context(), []backend.Known{{Ref: result.Ref, Job: array.Job, Positions: []int{1}}}))
	for position, wanted := range []dagbridgev1.Job_State{dagbridgev1.Job_RUNNING, dagbridgev1.Job_CANCELLED} {
		r.watcher.Await(t, result.Ref, position, patience, wanted.String(), func(o backend.Observation) bool { return o.State == wanted })
	}
}

// meddled is a kubeconfig for an API server where somebody else changes each object right before its first change by a client.
func meddled(t *testing.T, c *kubernetestest.Cluster, namespace string) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	require.NoError(t, err)
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(server)
	proxy.Transport, err = rest.TransportFor(config)
	require.NoError(t, err)
	var changed sync.Map
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPatch {
			if _, again := changed.LoadOrStore(request.URL.Path, true); !again {
				c.Kubectl(t, "", "annotate", "job", path.Base(request.URL.Path), "-n", namespace, "meddled=yes")
			}
		}
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(front.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\n", front.URL)
	require.NoError(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	return kubeconfig
}
