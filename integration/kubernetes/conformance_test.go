package kubernetestest_test

import (
	"fmt"
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

func TestMain(m *testing.M) { kubernetestest.Main(m) }

func TestConformance(t *testing.T) {
	c := kubernetestest.Shared(t)
	dir := sharedDir(t)
	open := func(t *testing.T) backend.Backend {
		b, err := kubernetes.New(kubernetes.Options{
			Name: "test", Kubeconfig: c.Kubeconfig, Namespaces: []string{"default"},
			Site: translate.Site{Image: kubernetestest.Image, PodTemplate: fmt.Sprintf(`{"spec": {"terminationGracePeriodSeconds": 2, "hostPID": true,
				"volumes": [{"name": "jobs", "hostPath": {"path": %[1]q}}],
				"containers": [{"name": "main", "imagePullPolicy": "Never", "volumeMounts": [{"name": "jobs", "mountPath": %[1]q}]}]}}`, dir)},
		})
		require.NoError(t, err)
		return b
	}
	backendtest.Run(t, backendtest.Fixture{
		Backend: open(t), Restart: open, Dir: dir, TimeLimit: 3 * time.Second, Patience: 8 * time.Minute,
		OutputBytes: 4096, LogsByCommand: true, MakesFolders: true,
		Resources: &dagbridgev1.Resources{Cpu: "5m", Memory: "32Mi"},
	})
}
