package strict

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on a file. The parser recurses by nesting and is quadratic in the lines
// of one text and the keys of one mapping, which these keep to about a second;
// and aliases can multiply a file's values without end.
const (
	MaxBytes     = 1 << 20
	MaxLines     = 30_000
	maxLineBytes = 16 << 10
	maxNesting   = 32
	MaxFields    = 1000 // of one mapping
	maxValues    = 100_000
)

// decoder writes one YAML file over a struct, noting where each value stood.
type decoder struct {
	*Report
	file    string
	anchors map[string]ast.Node
	values  int // decoded so far
}

// Decode decodes data, called file in faults, over the struct that into points to.
// Fields that data leaves out keep their values.
func (r *Report) Decode(file string, data []byte, into any) {
	d := &decoder{Report: r, file: file, anchors: map[string]ast.Node{}}
	root, ok := d.parse(data)
	if !ok {
		return
	}
	ast.Walk(anchorVisitor(d.anchors), root)
	d.structure("", root, reflect.ValueOf(into).Elem())
	if d.values > maxValues { // half a file is not worth judging
		d.faults = nil
		d.Unreadable(Origin{File: file, Line: 1}, "", fmt.Sprintf("aliases blow the file up to more than %d values", maxValues), "repeat less")
	}
}

// parse returns the body of the only document.
func (d *decoder) parse(data []byte) (root ast.Node, ok bool) {
	top := Origin{File: d.file, Line: 1}
	if at, why := tooMuch(data); why != "" {
		d.Unreadable(Origin{File: d.file, Line: at}, "", why, "split or shorten it")
		return nil, false
	}
	defer func() { // the parser is not ours: a panic in it is a fault of the file
		if p := recover(); p != nil {
			d.Unreadable(top, "", fmt.Sprintf("the YAML parser failed: %v", p), "simplify the file")
			root, ok = nil, false
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if at, why := tooBig(tokens); why != "" {
		d.Unreadable(d.origin(at), "", why, "write it flatter and shorter; no field needs this")
		return nil, false
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil, false
	}
	if len(file.Docs) > 1 {
		d.Unreadable(top, "", "several YAML documents in one file", "remove the --- lines and what belongs to other files")
		return nil, false
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		d.Unreadable(top, "", "the file is empty", d.start)
		return nil, false
	}
	return file.Docs[0].Body, true
}

// syntax reports a mistake in the YAML itself.
func (d *decoder) syntax(err error) {
	at, what := Origin{File: d.file, Line: 1}, err.Error()
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		what = syntax.Message
		at = d.origin(syntax.Token)
	}
	f := at.Fault("", "no valid YAML: "+what, "check indentation, brackets and quotes on this line and the one before it")
	if at.Column > 0 {
		f.Place = fmt.Sprintf("%s:%d:%d", at.File, at.Line, at.Column)
	}
	d.faults = append(d.faults, f)
	d.bad[""] = true
}

// tooMuch says why data is beyond the bounds, and on which line.
func tooMuch(data []byte) (line int, why string) {
	if len(data) > MaxBytes {
		return 1, "the file is larger than 1 MiB"
	}
	for text := range strings.Lines(string(data)) {
		switch line++; {
		case len(text) > maxLineBytes:
			return line, "the line is longer than 16 KiB"
		case line > MaxLines:
			return line, fmt.Sprintf("the file has more than %d lines", MaxLines)
		}
	}
	return 0, ""
}

// tooBig finds what only an attack or an accident produces, before the parser
// sees it: deep nesting, which it follows by recursion, and mappings of
// thousands of keys, on which it spends quadratic time.
func tooBig(tokens token.Tokens) (at *token.Token, why string) {
	var open [maxNesting + 2]int // keys so far of the mapping at each depth of brackets
	var blocks keyCounter
	var columns columnStack
	flow, line, opened, deep := 0, 0, 0, 0
	for i, t := range tokens {
		if t.Position.Line != line {
			line, opened = t.Position.Line, 0
		}
		keys := 0
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
			open[flow] = 0
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.MappingKeyType:
			return t, "has a key behind a question mark"
		case token.SequenceEntryType, token.TagType, token.AnchorType:
			opened++
			blocks.outer(t.Position.Column)
			deep = columns.depth(t.Position.Column)
		case token.MappingValueType:
			if flow > 0 {
				open[flow]++
				keys = open[flow]
			} else {
				column := tokens[max(0, i-1)].Position.Column
				keys = blocks.key(column)
				deep = columns.depth(column)
			}
		}
		switch {
		case flow > maxNesting || opened > maxNesting || deep > maxNesting:
			return t, "nested too deeply"
		case keys > MaxFields:
			return t, fmt.Sprintf("more than %d fields in one place", MaxFields)
		}
	}
	return nil, ""
}

// columnStack holds the columns at which the blocks around a token begin. (The
// scanner's own level of indentation grows with every return over two levels.)
type columnStack []int

// depth enters the block that begins at column, leaving those right of it, and
// returns how deep it is nested.
func (s *columnStack) depth(column int) int {
	for len(*s) > 0 && (*s)[len(*s)-1] > column {
		*s = (*s)[:len(*s)-1]
	}
	if len(*s) == 0 || (*s)[len(*s)-1] < column {
		*s = append(*s, column)
	}
	return len(*s)
}

// keyCounter counts the keys of block mappings, told apart by their columns.
type keyCounter []struct{ column, keys int }

// outer ends the mappings right of column.
func (k *keyCounter) outer(column int) {
	for len(*k) > 0 && (*k)[len(*k)-1].column > column {
		*k = (*k)[:len(*k)-1]
	}
}

// key counts one key at column and returns how many its mapping has.
func (k *keyCounter) key(column int) int {
	k.outer(column)
	if len(*k) == 0 || (*k)[len(*k)-1].column < column {
		*k = append(*k, struct{ column, keys int }{column: column})
	}
	last := &(*k)[len(*k)-1]
	last.keys++
	return last.keys
}

// anchorVisitor collects the values that aliases stand for.
type anchorVisitor map[string]ast.Node

func (a anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if anchor, ok := n.(*ast.AnchorNode); ok && anchor.Name != nil {
		a[anchor.Name.GetToken().Value] = anchor.Value
	}
	return a
}

func (d *decoder) origin(t *token.Token) Origin {
	if t == nil || t.Position == nil {
		return Origin{File: d.file, Line: 1}
	}
	return Origin{d.file, t.Position.Line, t.Position.Column}
}

// value decodes one node into v.
func (d *decoder) value(path string, n ast.Node, v reflect.Value) {
	if d.values++; d.values > maxValues {
		return // Decode reports it
	}
	n, ok := d.resolve(path, n)
	switch {
	case !ok:
	case IsLeaf(v.Type()):
		d.leaf(path, n, v)
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		SetDefaults(v.Elem())
		d.structure(path, n, v.Elem())
	case v.Kind() == reflect.Struct:
		d.structure(path, n, v)
	case v.Kind() == reflect.Slice:
		d.list(path, n, v)
	case v.Kind() == reflect.Map:
		d.table(path, n, v)
	default:
		panic(fmt.Sprintf("strict: no YAML for fields of type %s", v.Type()))
	}
}

// resolve looks through anchors and aliases.
func (d *decoder) resolve(path string, n ast.Node) (ast.Node, bool) {
	for range maxNesting {
		switch node := n.(type) {
		case *ast.AnchorNode:
			n = node.Value
		case *ast.AliasNode:
			name := node.Value.GetToken().Value
			target, ok := d.anchors[name]
			if !ok {
				d.Unreadable(d.Place(path), path, fmt.Sprintf("alias *%s stands for nothing", name), fmt.Sprintf("mark a value with &%s, or write the value here", name))
				return nil, false
			}
			n = target
		case *ast.TagNode:
			d.Unreadable(d.Place(path), path, fmt.Sprintf("has the YAML tag %s", node.Start.Value), "remove the tag")
			return nil, false
		case nil, *ast.NullNode:
			d.Unreadable(d.Place(path), path, "has no value", "write a value or remove the field")
			return nil, false
		default:
			return n, true
		}
	}
	d.Unreadable(d.Place(path), path, "aliases go round in a circle", "write the value here")
	return nil, false
}

// structure decodes a mapping into a struct; every key must be a field.
func (d *decoder) structure(path string, n ast.Node, v reflect.Value) {
	d.mapping(path, n, func(key string, at Origin, child ast.Node) {
		for f, field := range v.Fields() {
			if FieldName(f) == key && key != "" {
				d.value(Join(path, key), child, field)
				return
			}
		}
		names := FieldNames(v.Type())
		d.Unreadable(at, Join(path, key), "unknown field", Suggestion(key, names))
		if meant := Nearest(key, names); meant != "" {
			d.misspelt[Join(path, meant)] = true
		}
	})
}

// mapping calls each for every key once, whatever the file repeats.
func (d *decoder) mapping(path string, n ast.Node, each func(key string, at Origin, child ast.Node)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.wrongKind(path, n, "a set of fields", "write fields as name: value, indented below")
		return
	}
	first := map[string]int{}
	for entries := m.MapRange(); entries.Next(); {
		key, at := entries.Key().GetToken().Value, d.origin(entries.Key().GetToken())
		if entries.Key().IsMergeKey() {
			d.Unreadable(at, Join(path, "<<"), "merges another mapping", "write the fields out, or use an alias for a whole value")
			continue
		}
		if line, again := first[key]; again {
			d.Unreadable(at, Join(path, key), fmt.Sprintf("is given twice, first on line %d", line), "keep one of them")
			continue
		}
		first[key] = at.Line
		d.origins[Join(path, key)] = at
		each(key, at, entries.Value())
	}
}

// list decodes a sequence, replacing what an earlier file wrote.
func (d *decoder) list(path string, n ast.Node, v reflect.Value) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.wrongKind(path, n, "a list", "write each entry on its own line after a dash, or [a, b]")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	for i, child := range s.Values {
		if d.values > maxValues {
			return
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		d.origins[at] = d.origin(start(child))
		if v.Index(i).Kind() == reflect.Struct && !IsLeaf(v.Index(i).Type()) {
			SetDefaults(v.Index(i))
		}
		d.value(at, child, v.Index(i))
	}
}

// start is the first token of a node as the eye sees it: of a block mapping,
// the library names the colon.
func start(n ast.Node) *token.Token {
	if n == nil {
		return nil
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return m.Values[0].Key.GetToken()
	}
	return n.GetToken()
}

// table decodes a mapping with free keys.
func (d *decoder) table(path string, n ast.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.mapping(path, n, func(key string, _ Origin, child ast.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(Join(path, key), child, item)
		v.SetMapIndex(reflect.ValueOf(key), item)
	})
}

// leaf decodes one scalar by its text in the file, so that 0.3 and 1e3 never
// pass through a float.
func (d *decoder) leaf(path string, n ast.Node, v reflect.Value) {
	text, quoted, ok := scalar(n)
	if !ok {
		d.wrongKind(path, n, "a single value", "write one value after the colon")
		return
	}
	if kind := v.Kind(); quoted && (kind == reflect.Bool || kind == reflect.Int || kind == reflect.Int64) && isPlain(v) {
		d.Unreadable(d.Place(path), path, fmt.Sprintf("%q is a text", text), "remove the quotes")
		return
	}
	if bad, ok := errors.AsType[*ValueError](SetText(v, text)); ok {
		d.Unreadable(d.Place(path), path, bad.What, bad.Mend)
	}
}

// isPlain reports whether v is a bool or a number rather than a type of ours
// that is built on one.
func isPlain(v reflect.Value) bool { return v.Type().PkgPath() == "" }

// scalar returns the text of a scalar node, and whether it stood in quotes.
func scalar(n ast.Node) (text string, quoted, ok bool) {
	switch node := n.(type) {
	case *ast.StringNode:
		return node.Value, node.Token.Type == token.SingleQuoteType || node.Token.Type == token.DoubleQuoteType, true
	case *ast.LiteralNode:
		return node.Value.Value, true, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, false, true
	}
	return "", false, false
}

func (d *decoder) wrongKind(path string, n ast.Node, want, mend string) {
	got := "a single value"
	switch n.(type) {
	case ast.MapNode:
		got = "a set of fields"
	case *ast.SequenceNode:
		got = "a list"
	}
	d.Unreadable(d.Place(path), path, fmt.Sprintf("is %s where %s belongs", got, want), mend)
}
