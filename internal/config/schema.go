package config

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

// chooser is a text with a fixed set of values.
type chooser interface{ choices() []string }

// isLeaf reports whether values of t are written as one text.
func isLeaf(t reflect.Type) bool {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	case t.Kind() == reflect.Pointer:
		return isLeaf(t.Elem())
	}
	return t.Kind() == reflect.String || t.Kind() == reflect.Bool || t.Kind() == reflect.Int || t.Kind() == reflect.Int64
}

// fieldName returns a struct field's name in the file, or "" for a field that
// is not part of it.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// fieldNames lists the fields of a struct in the file's words.
func fieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		if name := fieldName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// setDefaults fills a struct from the default tags, not looking into lists.
func setDefaults(v reflect.Value) {
	for f, field := range v.Fields() {
		text, ok := f.Tag.Lookup("default")
		switch {
		case ok:
			if err := setText(field, text); err != nil {
				panic(fmt.Sprintf("config: default %q of field %s: %v", text, f.Name, err))
			}
		case field.Kind() == reflect.Struct && !isLeaf(field.Type()) && fieldName(f) != "":
			setDefaults(field)
		}
	}
}

// setText parses text into a leaf. Errors are *valueError.
func setText(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return setText(v.Elem(), text)
	}
	if v.Type() == reflect.TypeFor[netip.AddrPort]() {
		a, err := parseAddrPort(text)
		if err == nil {
			v.Set(reflect.ValueOf(a))
		}
		return err
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := parseDuration(text)
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
	if known, ok := errors.AsType[*valueError](err); ok {
		return known
	}
	// The only such type that is not ours is netip.Prefix.
	return &valueError{fmt.Sprintf("%q is no network in CIDR form", text), "write an address and a length, such as 10.0.0.0/8 or 2001:db8::/32"}
}

func setBasic(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.String:
		if c, ok := v.Interface().(chooser); ok {
			return setChoice(v, text, c.choices())
		}
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return &valueError{fmt.Sprintf("%q is neither true nor false", text), "write true or false"}
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v.OverflowInt(n) {
			return &valueError{fmt.Sprintf("%q is no whole number", text), "write a whole number such as 5"}
		}
		v.SetInt(n)
	default:
		panic(fmt.Sprintf("config: no texts for fields of type %s", v.Type()))
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
	return &valueError{fmt.Sprintf("unknown value %q", text), suggestion(text, choices)}
}

// setting is a field that the environment and the flags can set.
type setting struct {
	path   string // gossip.listen
	env    string // SUBAK_GOSSIP_LISTEN
	flag   string // gossip-listen; empty for a secret
	unset  string // the default, as text
	isBool bool
	index  []int // of the field, for reflect's FieldByIndex
	list   bool
}

// EnvPrefix begins the names of all environment variables of the program.
const EnvPrefix = "SUBAK_"

// settings lists every field outside of lists of structs.
func settings() []setting { return settingsOf(reflect.TypeFor[Config](), "", nil) }

func settingsOf(t reflect.Type, path string, index []int) []setting {
	var out []setting
	for f := range t.Fields() {
		name := fieldName(f)
		if name == "" {
			continue
		}
		at, where := join(path, name), append(index[:len(index):len(index)], f.Index...)
		list := f.Type.Kind() == reflect.Slice && isLeaf(f.Type.Elem())
		switch {
		case isLeaf(f.Type) || list:
			flag := f.Tag.Get("flag")
			if flag == "" {
				flag = strings.NewReplacer(".", "-", "_", "-").Replace(at)
			}
			s := setting{path: at, flag: flag, unset: f.Tag.Get("default"), index: where, list: list, isBool: f.Type.Kind() == reflect.Bool}
			s.env = EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
			if f.Tag.Get("secret") == "true" {
				s.flag = ""
			}
			out = append(out, s)
		case f.Type.Kind() == reflect.Struct:
			out = append(out, settingsOf(f.Type, at, where)...)
		}
	}
	return out
}

// set writes one text over a setting's field.
func (s setting) set(c *Config, text string) error {
	v := reflect.ValueOf(c).Elem().FieldByIndex(s.index)
	if !s.list {
		return setText(v, text)
	}
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := setText(item, part); err != nil {
			return err
		}
		list = reflect.Append(list, item)
	}
	v.Set(list)
	return nil
}
