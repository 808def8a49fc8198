package bench

import (
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
)

// door is a way to an API server that notes when what was asked.
type door struct {
	kubeconfig string

	mu    sync.Mutex
	asked map[string][]time.Time
}

func newDoor(b *testing.B, c *kubernetestest.Cluster) *door {
	b.Helper()
	d := &door{asked: map[string][]time.Time{}}
	d.kubeconfig = c.Door(b, d.note)
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
