package config

import (
	"reflect"
	"strings"

	"subak/internal/strict"
)

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
		name := strict.FieldName(f)
		if name == "" {
			continue
		}
		at, where := strict.Join(path, name), append(index[:len(index):len(index)], f.Index...)
		list := f.Type.Kind() == reflect.Slice && strict.IsLeaf(f.Type.Elem())
		switch {
		case strict.IsLeaf(f.Type) || list:
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
		return strict.SetText(v, text)
	}
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := strict.SetText(item, part); err != nil {
			return err
		}
		list = reflect.Append(list, item)
	}
	v.Set(list)
	return nil
}
