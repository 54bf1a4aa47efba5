package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// issue lists the rules that must have a mutant, as the issue tracker words them.
const issue = `heard without incarnation; incarnation reused; rows in arrival order; no quarantine; lease counted
from receipt; publish clock read after the send; epoch acked while out > base; acked in quarantine; restart on the
configured epoch; no witness; memoryless vouching; foreign witness; bootstrap by amnesia; wait set only as known
locally; edit on an inactive parent; no incarnation closure; release applied to in-flight rows; ack resets to current;
only the newest grant kept; expiry from the first grant; eps 0 under drift; terms that differ; sub-lending; share
lowered a tick late; raise on learning; later epoch's ack counted for an earlier; version-only comparison; unproved
ceiling carried over; force without the wait; force by name; out as max over incarnations; ack by a new life frees old
loans; frozen number in the data plane; clock that stops in suspend; fast quarantine over the roster only; tokens
refilled on a share change; burst not scaled with share; expiry checked only on ticks; float targets; map-order
settlement`

func TestEveryRuleOfTheIssueHasItsMutant(t *testing.T) {
	have := map[string]bool{}
	for _, m := range Mutants() {
		if have[m.Name] {
			t.Errorf("%q is listed twice", m.Name)
		}
		have[m.Name] = true
		if m.Rule == "" || m.Breaks == "" || len(m.Patches) == 0 || m.Adversary.Seeds == 0 {
			t.Errorf("%q lacks its rule, its harm, its patches or its adversary", m.Name)
		}
	}
	for _, name := range strings.Split(issue, ";") {
		if name = strings.Join(strings.Fields(name), " "); !have[name] {
			t.Errorf("no mutant %q", name)
		}
	}
}

func TestEveryPatchFitsOnceAndTypeChecks(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	mod := loadModule(t, root)
	for _, m := range Mutants() {
		texts, err := m.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		c := checker{module: mod, texts: texts, done: map[string]*types.Package{}}
		for file, text := range texts {
			if raw, err := os.ReadFile(filepath.Join(root, file)); err == nil && string(raw) == text {
				t.Errorf("%q does not change %s", m.Name, file)
			}
			if _, err := c.Import(path.Join("subak", path.Dir(file))); err != nil {
				t.Errorf("%q: %v", m.Name, err)
			}
		}
	}
}

func TestAPatchThatFitsTwiceOrNowhereIsRefused(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n\nvar x, y = 1, 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for find, fits := range map[string]bool{"x, y": true, "1": false, "z": false} {
		m := Mutant{Name: find, Patches: []Patch{{"a.go", find, "q"}}}
		if _, err := m.apply(root); (err == nil) != fits {
			t.Errorf("patch of %q: %v", find, err)
		}
	}
}

// module is what type-checking needs to know of the product's packages.
type module struct {
	fset     *token.FileSet
	root     string
	packages map[string]listed
	compiled types.Importer // of everything else, from the build cache
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func loadModule(t *testing.T, root string) *module {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./chaos/sim", "./internal/core")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	m := &module{fset: token.NewFileSet(), root: root, packages: map[string]listed{}}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		m.packages[p.ImportPath] = p
	}
	m.compiled = importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(m.packages[path].Export)
	})
	return m
}

// checker type-checks one mutant's packages of the module from their sources.
type checker struct {
	*module
	texts map[string]string
	done  map[string]*types.Package
}

func (c *checker) Import(path string) (*types.Package, error) {
	if !strings.HasPrefix(path, "subak/") {
		return c.compiled.Import(path)
	}
	if p := c.done[path]; p != nil {
		return p, nil
	}
	p, ok := c.packages[path]
	if !ok {
		return nil, fmt.Errorf("the simulators do not use package %s", path)
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		full := filepath.Join(p.Dir, name)
		rel, err := filepath.Rel(c.root, full)
		if err != nil {
			return nil, err
		}
		var src any
		if text, patched := c.texts[filepath.ToSlash(rel)]; patched {
			src = text
		}
		f, err := parser.ParseFile(c.fset, full, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: c}
	pkg, err := conf.Check(path, c.fset, files, nil)
	if err != nil {
		return nil, err
	}
	c.done[path] = pkg
	return pkg, nil
}
