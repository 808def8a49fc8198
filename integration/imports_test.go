package integration

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/dagbridge/dagbridge/"

// layers say which others each may import, by the front of the path within the module. A package belongs to the longest
// front that fits; within its own layer it imports what it likes.
var layers = map[string][]string{
	"proto":                 nil,
	"translators":           {"proto"},
	"clients":               {"proto"},
	"server/telemetry":      nil,
	"server/config":         {"proto", "translators", "server/serviceaccount"},
	"server/serviceaccount": nil,
	"server/auth":           {"proto", "server/config", "server/serviceaccount"},
	"server/store":          {"proto", "translators"},
	"server/backend":        {"proto", "translators", "server/launcher", "server/serviceaccount"},
	"server/launcher":       {"proto", "translators"},
	"server/engine":         {"proto", "translators", "server/store", "server/backend", "server/telemetry"},
	"server/bridge":         {"proto", "translators", "server/store", "server/engine", "server/auth", "server/telemetry", "server/backend"},
	"server":                {"proto", "translators", "server/store", "server/engine", "server/bridge", "server/auth", "server/config", "server/telemetry"},
	"cmd":                   {"proto", "translators", "clients", "server", "server/auth", "server/config", "server/bridge", "server/engine", "server/store", "server/backend", "server/launcher", "server/telemetry", "integration/examples"},
	"integration/examples":  nil,
}

// impure are the packages that a translator may not import, with all below them: they know the machine or chance. Some of
// net's only read text.
var (
	impure = []string{"context", "crypto/rand", "log", "math/rand", "net", "os", "path/filepath", "runtime", "syscall"}
	pure   = []string{"net/netip", "net/url"}
)

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range packages(t) {
		from, ok := layerOf(strings.TrimPrefix(p.ImportPath, module))
		if !ok {
			continue // of integration: tests, which may import everything
		}
		seen[from] = true
		for _, to := range p.Imports {
			if fault := importFault(from, to); fault != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, fault)
			}
		}
	}
	for layer := range layers {
		require.True(t, seen[layer], "layer %s has no package", layer)
	}
}

func TestTranslatorsArePure(t *testing.T) {
	t.Parallel()
	var checked int
	for _, p := range packages(t) {
		if layer, _ := layerOf(strings.TrimPrefix(p.ImportPath, module)); layer != "translators" {
			continue
		}
		for _, name := range p.GoFiles {
			checked++
			for _, call := range clockCalls(t, filepath.Join(p.Dir, name)) {
				t.Errorf("%s reads the clock: %s", filepath.Join(p.ImportPath, name), call)
			}
		}
	}
	require.Positive(t, checked)
}

// The rules themselves: what they must refuse, and what not.
func TestImportFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		refused  bool
	}{
		{"server/store", module + "server/engine", true},
		{"server/engine", module + "server/store", false},
		{"server/engine", module + "server/bridge", true},
		{"server/bridge", module + "server", true},
		{"server/backend", module + "server/store", true},
		{"clients", module + "translators/graph", true},
		{"clients", module + "proto/gen/dagbridge/v1", false},
		{"translators", module + "server/backend", true},
		{"translators", module + "translators/graph", false},
		{"translators", "os", true},
		{"translators", "net", true},
		{"translators", "net/http", true},
		{"translators", "net/url", false},
		{"translators", "log/slog", true},
		{"translators", "math/rand/v2", true},
		{"translators", "math", false},
		{"translators", "context", true},
		{"server/store", "os", false},
		{"server", module + "integration/examples", true},
	} {
		fault := importFault(c.from, c.to)
		require.Equal(t, c.refused, fault != "", "%s -> %s: %q", c.from, c.to, fault)
	}
}

func importFault(from, to string) string {
	path, ours := strings.CutPrefix(to, module)
	if !ours {
		if from == "translators" && !slices.Contains(pure, to) && slices.ContainsFunc(impure, func(p string) bool { return to == p || strings.HasPrefix(to, p+"/") }) {
			return "a translator is pure"
		}
		return ""
	}
	layer, _ := layerOf(path)
	if layer == from || slices.Contains(layers[from], layer) {
		return ""
	}
	return fmt.Sprintf("%s may import %s alone", from, strings.Join(append([]string{"itself"}, layers[from]...), ", "))
}

func layerOf(path string) (string, bool) {
	for front := path; front != "."; front = filepath.Dir(front) {
		if _, ok := layers[front]; ok {
			return front, true
		}
	}
	return "", false
}

// clockCalls finds uses of the functions of package time that depend on when they are called.
func clockCalls(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name, ok := selector.X.(*ast.Ident)
		if ok && name.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Local"}, selector.Sel.Name) {
			found = append(found, "time."+selector.Sel.Name)
		}
		return true
	})
	return found
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", module+"...")
	out, err := command.Output()
	require.NoError(t, err)
	var all []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); err == io.EOF {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}
