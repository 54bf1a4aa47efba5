package web

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"time"
)

// files are the dashboard: plain HTML, CSS and ES modules, served as they are.
//
//go:embed ui
var files embed.FS

// serveFile answers with one embedded file. The names are flat: no directory of
// the binary or the machine can be reached.
func serveFile(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := files.ReadFile(path.Join("ui", path.Base(name)))
		if err != nil {
			serveNothing(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType(name))
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	}
}

// contentType does not ask the operating system, whose tables differ: a module
// with a wrong type does not run.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}
