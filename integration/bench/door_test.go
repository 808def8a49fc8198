package bench

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
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
)

// door is a way to an API server that notes when what was asked. Whoever comes by it needs no credentials: it has the
// administrator's.
type door struct {
	kubeconfig string

	mu    sync.Mutex
	asked map[string][]time.Time
}

func newDoor(b *testing.B, c *kubernetestest.Cluster) *door {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	require.NoError(b, err)
	way, err := rest.TransportFor(config)
	require.NoError(b, err)
	to, err := url.Parse(config.Host)
	require.NoError(b, err)
	d := &door{kubeconfig: filepath.Join(b.TempDir(), "kubeconfig"), asked: map[string][]time.Time{}}
	proxy := &httputil.ReverseProxy{Transport: way, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.note(r)
		proxy.ServeHTTP(w, r)
	}))
	b.Cleanup(func() {
		server.CloseClientConnections() // watches do not end by themselves
		server.Close()
	})
	require.NoError(b, os.WriteFile(d.kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, server.URL), 0o600))
	return d
}

// config is a client's.
func (d *door) config(b *testing.B) *rest.Config {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig)
	require.NoError(b, err)
	return config
}

func (d *door) note(r *http.Request) {
	what := r.Method + " " + path.Base(r.URL.Path)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[what] = append(d.asked[what], time.Now())
}

// reset forgets what was asked.
func (d *door) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.asked)
}

// times are those at which something was asked: "POST jobs".
func (d *door) times(what string) []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]time.Time(nil), d.asked[what]...)
}
