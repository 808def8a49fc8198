package kubernetestest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Door is the kubeconfig of another way to the API server, on which something is done before each request. Whoever comes by it needs
// no credentials: it has the administrator's.
func (c *Cluster) Door(tb testing.TB, before func(*http.Request)) (kubeconfig string) {
	tb.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	require.NoError(tb, err)
	way, err := rest.TransportFor(config)
	require.NoError(tb, err)
	to, err := url.Parse(config.Host)
	require.NoError(tb, err)
	proxy := &httputil.ReverseProxy{Transport: way, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		proxy.ServeHTTP(w, r)
	}))
	tb.Cleanup(func() {
		server.CloseClientConnections() // watches do not end by themselves
		server.Close()
	})
	kubeconfig = filepath.Join(tb.TempDir(), "kubeconfig")
	require.NoError(tb, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, server.URL), 0o600))
	return kubeconfig
}
