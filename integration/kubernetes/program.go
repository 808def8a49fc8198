package kubernetestest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program is the path of a program of others' (programs), which is made unless it is there: "helm".
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := built(filepath.Join("programs", "build.sh"), name)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Render gives a chart's manifests, as Helm makes them of values in YAML; an error is what Helm says.
func Render(tb testing.TB, chart, release, namespace, values string) (string, error) {
	tb.Helper()
	cmd := exec.Command(Program(tb, "helm"), chart, release, namespace)
	cmd.Stdin = strings.NewReader(values)
	out, err := cmd.Output()
	return string(out), said(err)
}
