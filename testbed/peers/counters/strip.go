package counters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// counted are the fields of package enforce that count units: what ends in one of
// them and is added to is a counter.
func counted(field string) bool {
	return field == "admitted" || field == "refused" || field == "borrowed"
}

// without writes the overlay of a build in which package enforce counts nothing,
// and returns its path.
func without(repo, dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(repo, "enforce", "*.go"))
	if err != nil {
		return "", err
	}
	replaced, gone := map[string]string{}, 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		bare, n, err := strip(name, text)
		if err != nil {
			return "", err
		}
		if bytes.Equal(bare, text) {
			continue
		}
		gone += n
		real, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replaced[real] = filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(replaced[real], bare, 0o600); err != nil {
			return "", err
		}
	}
	if gone == 0 {
		return "", fmt.Errorf("package enforce in %s has no counters: what is measured would be nothing", repo)
	}
	overlay := filepath.Join(dir, "overlay.json")
	all, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	return overlay, errors.Join(err, os.WriteFile(overlay, all, 0o600))
}

// The one place where something depends on a counter, and what stands there
// instead: a core is looked at for whether it is busy after so many admissions, and
// must be taken for busy without them, or it would get no lease.
const (
	looked = "n := c.admitted.Load()"
	busy   = "n := c.mark.Load() + busyRun*cost"
)

// strip replaces each statement c.admitted.Add(n) and the like by one that does
// nothing, _, _ = &c.admitted, n, and says how many there were.
func strip(name string, text []byte) (bare []byte, n int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, fmt.Errorf("strip counters: %w", err)
	}
	var out bytes.Buffer
	done := 0 // of text, bytes
	source := func(node ast.Node) []byte {
		return text[set.Position(node.Pos()).Offset:set.Position(node.End()).Offset]
	}
	ast.Inspect(file, func(node ast.Node) bool {
		statement, ok := node.(*ast.ExprStmt)
		if !ok {
			return true
		}
		counter, added := addition(statement.X)
		if counter == nil {
			return true
		}
		out.Write(text[done:set.Position(statement.Pos()).Offset])
		fmt.Fprintf(&out, "_, _ = &%s, %s", source(counter), source(added))
		done = set.Position(statement.End()).Offset
		n++
		return false
	})
	out.Write(text[done:])
	return bytes.ReplaceAll(out.Bytes(), []byte(looked), []byte(busy)), n, nil
}

// addition takes apart the call of Add on a counter; counter is nil for what is
// none.
func addition(x ast.Expr) (counter, added ast.Expr) {
	call, ok := x.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil, nil
	}
	add, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || add.Sel.Name != "Add" {
		return nil, nil
	}
	field, ok := add.X.(*ast.SelectorExpr)
	if !ok || !counted(field.Sel.Name) {
		return nil, nil
	}
	return field, call.Args[0]
}
