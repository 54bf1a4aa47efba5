package strict

import (
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Chooser is a text with a fixed set of values.
type Chooser interface{ Choices() []string }

// IsLeaf reports whether values of t are written as one text.
func IsLeaf(t reflect.Type) bool {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	case t.Kind() == reflect.Pointer:
		return IsLeaf(t.Elem())
	}
	return t.Kind() == reflect.String || t.Kind() == reflect.Bool || t.Kind() == reflect.Int || t.Kind() == reflect.Int64
}

// FieldName returns a struct field's name in the file, or "" for a field that
// is not part of it.
func FieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// FieldNames lists the fields of a struct in the file's words.
func FieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		if name := FieldName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Join appends a field's name to a path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// SetDefaults fills a struct from the default tags, not looking into lists.
func SetDefaults(v reflect.Value) {
	for f, field := range v.Fields() {
		text, ok := f.Tag.Lookup("default")
		switch {
		case ok:
			if err := SetText(field, text); err != nil {
				panic(fmt.Sprintf("strict: default %q of field %s: %v", text, f.Name, err))
			}
		case field.Kind() == reflect.Struct && !IsLeaf(field.Type()) && FieldName(f) != "":
			SetDefaults(field)
		}
	}
}

// SetText parses text into a leaf. Errors are *ValueError.
func SetText(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return SetText(v.Elem(), text)
	}
	if v.Type() == reflect.TypeFor[netip.AddrPort]() {
		a, err := ParseAddrPort(text)
		if err == nil {
			v.Set(reflect.ValueOf(a))
		}
		return err
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := ParseDuration(text)
		v.SetInt(int64(d))
		return err
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return unmarshalText(u, text)
	}
	return setBasic(v, text)
}

func unmarshalText(u encoding.TextUnmarshaler, text string) error {
	err := u.UnmarshalText([]byte(text))
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*ValueError](err); ok {
		return known
	}
	if _, ok := u.(*netip.Prefix); ok {
		return &ValueError{fmt.Sprintf("%q is no network in CIDR form", text), "write an address and a length, such as 10.0.0.0/8 or 2001:db8::/32"}
	}
	return &ValueError{err.Error(), "write another value"}
}

func setBasic(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.String:
		if c, ok := v.Interface().(Chooser); ok {
			return setChoice(v, text, c.Choices())
		}
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return &ValueError{fmt.Sprintf("%q is neither true nor false", text), "write true or false"}
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v.OverflowInt(n) {
			return &ValueError{fmt.Sprintf("%q is no whole number", text), "write a whole number such as 5"}
		}
		v.SetInt(n)
	default:
		panic(fmt.Sprintf("strict: no texts for fields of type %s", v.Type()))
	}
	return nil
}

func setChoice(v reflect.Value, text string, choices []string) error {
	for _, c := range choices {
		if text == c {
			v.SetString(text)
			return nil
		}
	}
	return &ValueError{fmt.Sprintf("unknown value %q", text), Suggestion(text, choices)}
}
