// Command helm renders a chart the way `helm template` does, with Helm's own engine and none of its other commands: these would
// take ten times as long to build.
//
//	helm CHART RELEASE NAMESPACE <VALUES.yaml
//
// It prints the manifests as one stream of YAML documents.
package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: helm CHART RELEASE NAMESPACE <VALUES.yaml")
		os.Exit(2)
	}
	if err := render(os.Args[1], common.ReleaseOptions{Name: os.Args[2], Namespace: os.Args[3], IsInstall: true, Revision: 1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(dir string, release common.ReleaseOptions) error {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	given, err := loader.LoadValues(os.Stdin)
	if err != nil {
		return err
	}
	values, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if base := path.Base(name); !strings.HasPrefix(base, "_") && strings.TrimSpace(files[name]) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", name, files[name])
		}
	}
	return nil
}
