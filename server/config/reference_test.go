package config_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/integration/golden"
	"github.com/dagbridge/dagbridge/server/config"
)

// The reference page holds what the doc comments of config.go say; `make generate` rewrites it.
func TestReference(t *testing.T) {
	t.Parallel()
	page := reference{docs: fieldDocs(t)}
	page.WriteString("# The configuration file\n\nMade from the doc comments in config.go by `make generate`; do not edit.\n\n" +
		"`dagbridge serve --config FILE` reads one YAML file. Unknown keys are errors, and all that is wrong with a file is reported at\n" +
		"once, with line numbers. Without a file, everything has its default.\n\n" +
		"| key | type | default | |\n|---|---|---|---|\n")
	page.rows(reflect.ValueOf(*config.Default()), "")
	golden.Equal(t, ".", "README.md", page.String())
}

type reference struct {
	strings.Builder
	docs map[string]string // by "Struct.Field"
}

func (r *reference) rows(v reflect.Value, prefix string) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		key, kind := prefix+field.Tag.Get("yaml"), "mapping"
		switch field.Type.Kind() {
		case reflect.Struct:
		case reflect.Pointer:
			value = config.WithDefaults(field.Type.Elem())
		case reflect.Slice:
			key, kind, value = key+"[]", "list", config.WithDefaults(field.Type.Elem())
		default:
			kind = scalarKind(field.Type)
		}
		fmt.Fprintf(r, "| `%s` | %s | %s | %s |\n", key, kind, showDefault(value), r.docs[v.Type().Name()+"."+field.Name])
		if value.Kind() == reflect.Struct {
			r.rows(value, key+".")
		}
	}
}

func scalarKind(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[config.Memory]():
		return "memory"
	case t.Kind() == reflect.Int || t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "true, false"
	}
	return "word"
}

func showDefault(v reflect.Value) string {
	if v.IsZero() || v.Kind() == reflect.Struct {
		return ""
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return "`" + strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m") + "`"
	}
	return fmt.Sprintf("`%v`", v)
}

func fieldDocs(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	require.NoError(t, err)
	docs := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range structure.Fields.List {
			doc := strings.Join(strings.Fields(field.Doc.Text()), " ")
			require.NotEmpty(t, doc, "%s.%s has no doc comment", spec.Name, field.Names[0])
			docs[spec.Name.Name+"."+field.Names[0].Name] = strings.ReplaceAll(doc, "|", `\|`)
		}
		return true
	})
	return docs
}
