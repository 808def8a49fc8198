package kubernetestest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	kubernetestest "github.com/dagbridge/dagbridge/integration/kubernetes"
	"github.com/dagbridge/dagbridge/server/config"
)

// chart is the folder of the gateway's.
var chart = filepath.Join("..", "..", "server", "deploy", "chart")

// values are what a chart cannot be installed without.
const values = `
image: example.org/dagbridge:1
tokens: [{name: airflow, sha256: "0000000000000000000000000000000000000000000000000000000000000000"}]
`

// documents are the objects of a stream of YAML, by kind and name; of those in several namespaces the last.
func documents(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		if len(o) > 0 {
			meta := o["metadata"].(map[string]any)
			key := strings.Join([]string{o["kind"].(string), meta["name"].(string)}, "/")
			all[key] = o
		}
	}
	return all
}

// configured takes the gateway's configuration out of the manifests.
func configured(t *testing.T, manifests map[string]map[string]any) *config.Config {
	t.Helper()
	text := manifests["ConfigMap/dagbridge"]["data"].(map[string]any)["dagbridge.yaml"].(string)
	cfg, err := config.Parse("dagbridge.yaml", []byte(text))
	require.NoError(t, err)
	return cfg
}

// What the chart makes is what the plain manifests say, and the API server takes all of it.
func TestTheChartIsTaken(t *testing.T) {
	c := kubernetestest.Shared(t)
	for _, namespace := range []string{"dagbridge", "ml", "risk"} {
		c.Kubectl(t, "", "create", "namespace", namespace)
		t.Cleanup(func() { c.Kubectl(t, "", "delete", "namespace", namespace, "--wait=true") })
	}
	plain, err := kubernetestest.Render(t, chart, "dagbridge", "dagbridge", values)
	require.NoError(t, err)
	full, err := kubernetestest.Render(t, chart, "dagbridge", "dagbridge", values+`
namespaces: [ml, risk]
pushOutputs: true
kubernetes: {image: "busybox:1", queue: team, callRate: 50}
storage: {size: 1Gi, className: fast}
resources: {}
`)
	require.NoError(t, err)
	for _, text := range []string{plain, full} {
		out := c.Kubectl(t, text, "create", "--dry-run=server", "--validate=strict", "-f", "-")
		require.NotContains(t, out, "Warning")
	}

	k := configured(t, documents(t, plain)).Clusters[0].Kubernetes
	require.Equal(t, []any{"ml", 0, ""}, []any{k.Namespace, len(k.Namespaces), k.URL})
	made := documents(t, full)
	k = configured(t, made).Clusters[0].Kubernetes
	require.Equal(t, []any{"ml", []string{"risk"}, "https://dagbridge.dagbridge:7071", "busybox:1", "team", 50.0}, []any{k.Namespace, k.Namespaces, k.URL, k.Image, k.Queue, k.CallRate})

	said := documents(t, manifest(t, "gateway.yaml")+"\n---\n"+manifest(t, "rbac.yaml")+"\n---\n"+manifest(t, "serviceaccounts.yaml"))
	for _, kind := range []string{"Role", "ClusterRole"} {
		name := map[string]string{"Role": "Role/dagbridge", "ClusterRole": "ClusterRole/dagbridge-token-reviews"}[kind]
		require.Equal(t, said[name]["rules"], made[name]["rules"], "the same rights")
	}
	same := func(name string, change func(spec map[string]any)) {
		spec := documents(t, plain)[name]["spec"].(map[string]any)
		change(spec)
		require.Equal(t, said[name]["spec"], spec, name)
	}
	same("Deployment/dagbridge", func(spec map[string]any) {
		pod := spec["template"].(map[string]any)
		delete(pod["metadata"].(map[string]any), "annotations")
		pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"] = "IMAGE"
	})
	same("Service/dagbridge", func(map[string]any) {})
	same("PersistentVolumeClaim/dagbridge", func(map[string]any) {})
}

// A chart that lacks what it needs says what that is.
func TestTheChartSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ values, fault string }{
		"no image":  {`tokens: [{name: a, sha256: b}]`, "image: an image whose entry point is the binary dagbridge"},
		"no tokens": {`image: i`, "tokens: who may call?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := kubernetestest.Render(t, chart, "dagbridge", "dagbridge", c.values)
			require.ErrorContains(t, err, c.fault)
		})
	}
}

// What the translator writes, in all of its golden files, is taken by the API server.
func TestTheGoldenManifestsAreTaken(t *testing.T) {
	lookedAt(t, kubernetestest.Shared(t), "Job")
}

// lookedAt lets an API server look at the golden manifests of a kind that it has.
func lookedAt(t *testing.T, c *kubernetestest.Cluster, kind string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "translators", "kubernetes", "testdata", "*", "out.yaml"))
	require.NoError(t, err)
	var all strings.Builder
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range strings.Split("\n"+string(text), "\n---\n") {
			var o struct {
				Kind     string
				Metadata struct{ Namespace string }
			}
			require.NoError(t, yaml.Unmarshal([]byte(document), &o))
			if o.Kind == kind {
				count++
				all.WriteString("---\n" + document + "\n")
			}
		}
	}
	require.Positive(t, count)
	// Each is looked at as if it were in one namespace that is there.
	ns := c.Namespace(t)
	text := regexp.MustCompile(`(?m)^  namespace: .*$`).ReplaceAllString(all.String(), "  namespace: "+ns)
	out := c.Kubectl(t, text, "create", "--dry-run=server", "--validate=strict", "-f", "-")
	require.Equal(t, count, strings.Count(out, "created (server dry run)"), out)
}
