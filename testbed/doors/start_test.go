package doors

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"subak/internal/child"
)

// policy is which of its file's failure policies a proxy has.
type policy int

const (
	// patient waits so long for the node that a busy machine does not matter:
	// what is not about failures is tested with it.
	patient policy = iota
	open           // lets through, as the file is
	closed         // refuses
)

// waits makes the file's times to wait for the node those of the policy.
func (p policy) waits(t *testing.T, text string, times ...string) string {
	t.Helper()
	if p != patient {
		return text
	}
	for _, line := range times {
		old := regexp.MustCompile(line + ` +\d+ms`).FindString(text)
		if old == "" {
			t.Fatalf("no time %q", line)
		}
		text = once(t, text, old, line+" 30s")
	}
	return text
}

// once replaces what must be there exactly once.
func once(t *testing.T, text, old, with string) string {
	t.Helper()
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%q is there %d times, want once", old, n)
	}
	return strings.Replace(text, old, with, 1)
}

func startNginx(t *testing.T, r *rig, p policy) *child.Process {
	text := once(t, r.addressed("nginx.conf"), "listen 80;", "listen "+r.site+";")
	if p == closed {
		text = once(t, text, "return 204;", "return 403;")
	}
	text = p.waits(t, text, "proxy_connect_timeout", "proxy_read_timeout")
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

func startCaddy(t *testing.T, r *rig, p policy) *child.Process {
	text := once(t, r.addressed("Caddyfile"), "example.com {", "http://"+r.site+" {")
	if p == closed {
		at := strings.Index(text, "\n\t# Subak did not answer")
		if at < 0 {
			t.Fatal("the Caddyfile has no failure policy")
		}
		text = text[:at] + "}\n"
	}
	text = p.waits(t, text, "dial_timeout", "response_header_timeout")
	conf := r.write("Caddyfile", "{\n\tadmin off\n\tauto_https off\n}\n"+text)
	return r.startProxy(program(t, "caddy"), "run", "--adapter", "caddyfile", "--config", conf)
}

func startHAProxy(t *testing.T, r *rig, p policy) *child.Process {
	text := once(t, r.addressed("haproxy.cfg"), "bind :80", "bind "+r.site)
	lua, err := filepath.Abs("subak.lua")
	if err != nil {
		t.Fatal(err)
	}
	text = once(t, text, "/etc/haproxy/subak.lua", lua)
	text = strings.ReplaceAll(text, "abns@subak", "abns@"+filepath.Base(r.dir))
	if p == closed {
		text = once(t, text, "# http-request return status 503", "http-request return status 503")
	}
	text = p.waits(t, text, "timeout connect", "timeout server")
	return r.startProxy(program(t, "haproxy"), "-db", "-f", r.write("haproxy.cfg", text))
}
