package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"subak/internal/strict"
)

func compareAddresses() cmp.Option {
	return cmp.Options{
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	}
}

// eachField calls f for every field of the file, lists entered as name[].
func eachField(t reflect.Type, path string, f func(path string, parent reflect.Type, field reflect.StructField)) {
	for field := range t.Fields() {
		name := strict.FieldName(field)
		if name == "" {
			continue
		}
		at, inner := strict.Join(path, name), field.Type
		f(at, t, field)
		if inner.Kind() == reflect.Slice && !strict.IsLeaf(inner) {
			inner, at = inner.Elem(), at+"[]"
		}
		if inner.Kind() == reflect.Pointer && !strict.IsLeaf(inner) {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !strict.IsLeaf(inner) {
			eachField(inner, at, f)
		}
	}
}

func TestTheExampleShowsEveryFieldAndNothingElse(t *testing.T) {
	c, r := Default(), newReport("example.yaml")
	r.Decode("example.yaml", []byte(Example()), c)
	if !r.OK() {
		t.Fatal(r.Faults())
	}
	shown := map[string]bool{}
	for _, path := range r.Written() {
		shown[regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path, "[]")] = true
	}
	eachField(reflect.TypeFor[Config](), "", func(path string, _ reflect.Type, _ reflect.StructField) {
		if !shown[path] {
			t.Errorf("the example does not show %s", path)
		}
	})
}

// What the example sets outside of lists are the defaults, so that deleting a
// line changes nothing; but for what a cluster must choose.
func TestTheExampleSetsDefaults(t *testing.T) {
	c, err := Parse("example.yaml", []byte(Example()))
	if err != nil {
		t.Fatal(err)
	}
	d := Default()
	d.Cluster.Name, d.Cluster.DataDir, d.Node.Name = c.Cluster.Name, c.Cluster.DataDir, c.Node.Name
	d.Gossip.Seeds, d.Gossip.Keys = c.Gossip.Seeds, c.Gossip.Keys
	d.Nodes, d.Budgets, d.Listeners, d.Envoy, d.warnings = c.Nodes, c.Budgets, c.Listeners, c.Envoy, c.warnings
	if diff := cmp.Diff(d, c, compareAddresses(), cmp.AllowUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
}

func TestTheExampleCommentsAFieldWhereItIsSet(t *testing.T) {
	lines := strings.Split(Example(), "\n")
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		section := strings.HasSuffix(trimmed, ":")
		if trimmed == "" || strings.HasPrefix(trimmed, "#") || section || i == 0 {
			continue
		}
		commented := false // in the block of lines above, up to a blank one
		for j := i; j >= 0 && lines[j] != ""; j-- {
			commented = commented || strings.HasPrefix(strings.TrimSpace(lines[j]), "#")
		}
		if !commented {
			t.Errorf("line %d has no comment above: %s", i+1, line)
		}
	}
}

// Every field's Go comment says its default or that it is required, and where
// there is a default tag, that very value.
func TestEveryFieldIsDocumentedWithItsDefault(t *testing.T) {
	docs := fieldDocs(t)
	eachField(reflect.TypeFor[Config](), "", func(path string, parent reflect.Type, field reflect.StructField) {
		inner := field.Type
		if inner.Kind() == reflect.Struct && !strict.IsLeaf(inner) && inner != reflect.TypeFor[Target]() {
			return // a section: its fields are documented
		}
		doc := docs[parent.Name()+"."+field.Name]
		if !strings.Contains(doc, "Default ") && !strings.Contains(doc, "Required") {
			t.Errorf("%s: the comment names neither a default nor says Required: %q", path, doc)
		}
		if text, ok := field.Tag.Lookup("default"); ok {
			text = strings.TrimSuffix(strings.TrimSuffix(text, "0s"), "s")
			if !strings.Contains(doc, "Default "+text) {
				t.Errorf("%s: the comment does not say Default %s: %q", path, text, doc)
			}
		}
	})
}

// fieldDocs reads the comments of all struct fields of this package.
func fieldDocs(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, file := range []string{"types.go", "types_budget.go", "types_listener.go", "types_envoy.go"} {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						docs[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return docs
}
