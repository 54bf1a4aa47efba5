package doors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"subak/internal/child"
)

// once replaces what must be there exactly once.
func once(t *testing.T, text, old, with string) string {
	t.Helper()
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%q is there %d times, want once", old, n)
	}
	return strings.Replace(text, old, with, 1)
}

func startNginx(t *testing.T, r *rig, closed bool) *child.Process {
	text := once(t, r.addressed("nginx.conf"), "listen 80;", "listen "+r.site+";")
	if closed {
		text = once(t, text, "return 204;", "return 403;")
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the rig's directory is ours alone
	}
	conf := r.write("main.conf", fmt.Sprintf(`%s
worker_processes 1;
daemon off;
pid %[2]s/nginx.pid;
error_log stderr warn;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path %[2]s/body;
    proxy_temp_path       %[2]s/proxy;
    fastcgi_temp_path     %[2]s/fastcgi;
    uwsgi_temp_path       %[2]s/uwsgi;
    scgi_temp_path        %[2]s/scgi;
    include %[3]s;
}
`, user, r.dir, r.write("site.conf", text)))
	return r.startProxy(program(t, "nginx"), "-e", "stderr", "-p", r.dir, "-c", conf)
}

func startCaddy(t *testing.T, r *rig, closed bool) *child.Process {
	text := once(t, r.addressed("Caddyfile"), "example.com {", "http://"+r.site+" {")
	if closed {
		at := strings.Index(text, "\n\t# Subak did not answer")
		if at < 0 {
			t.Fatal("the Caddyfile has no failure policy")
		}
		text = text[:at] + "}\n"
	}
	conf := r.write("Caddyfile", "{\n\tadmin off\n\tauto_https off\n}\n"+text)
	return r.startProxy(program(t, "caddy"), "run", "--adapter", "caddyfile", "--config", conf)
}

func startHAProxy(t *testing.T, r *rig, closed bool) *child.Process {
	text := once(t, r.addressed("haproxy.cfg"), "bind :80", "bind "+r.site)
	lua, err := filepath.Abs("subak.lua")
	if err != nil {
		t.Fatal(err)
	}
	text = once(t, text, "/etc/haproxy/subak.lua", lua)
	text = strings.ReplaceAll(text, "abns@subak", "abns@"+filepath.Base(r.dir))
	if closed {
		text = once(t, text, "# http-request return status 503", "http-request return status 503")
	}
	return r.startProxy(program(t, "haproxy"), "-db", "-f", r.write("haproxy.cfg", text))
}
