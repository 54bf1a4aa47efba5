package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserPath finds Chromium, or skips; where CI=true a skip is a failure.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	text := "no Chromium on the path: the dashboard is NOT tested; scripts/setup.sh installs it on Debian"
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// startBrowser starts one Chromium, with an empty profile of its own, that lives
// until the test ends. The context
// it returns is the parent of every tab.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path := browserPath(t)
	deadline, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(30*time.Second))
	allocator, stop := chromedp.NewExecAllocator(deadline, options...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// browser is one tab, and everything its page complained of.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string // of the dashboard

	mu         sync.Mutex
	complaints []string
}

// newTab opens a tab that is closed when the test ends.
func newTab(t *testing.T, parent context.Context) *browser {
	b := &browser{t: t}
	ctx, closeTab := chromedp.NewContext(parent, chromedp.WithListener(b.listen))
	t.Cleanup(closeTab)
	b.ctx = ctx
	b.size(1280, 900, false)
	return b
}

// listen notes errors of scripts, of the console and of the browser's log, which
// has refusals by the content security policy and failed loads.
func (b *browser) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			text = fmt.Sprintf("console %s: %v", e.Type, e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			text = fmt.Sprintf("log %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.complaints = append(b.complaints, text)
	}
}

// quiet fails if the page complained of anything but what the test expects.
func (b *browser) quiet(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, c := range b.complaints {
		for _, e := range expected {
			if strings.Contains(c, e) {
				continue next
			}
		}
		b.t.Errorf("the page complained: %s", c)
	}
	b.complaints = nil
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// size sets the viewport in CSS pixels.
func (b *browser) size(width, height int64, phone bool) {
	b.t.Helper()
	options := []chromedp.EmulateViewportOption{}
	if phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do(chromedp.EmulateViewport(width, height, options...))
}

// scheme prefers light or dark.
func (b *browser) scheme(value string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		params := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, params)
		return err
	}))
}

// wait waits until the JavaScript expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(15*time.Second))); err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("waiting for %s: %v\nthe page reads:\n%s", expression, err, page)
	}
}

// text is the visible text of the first element that selector finds.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return evaluate[string](b, fmt.Sprintf("(({ innerText, textContent }) => innerText ?? textContent)(document.querySelector(%q))", selector))
}

// shoot writes a picture of the whole page to $SUBAK_SCREENSHOTS, if set.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("SUBAK_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// evaluate runs JavaScript, which may be a promise, and returns its value.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// open loads the dashboard and waits for live data.
func (b *browser) open() {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url))
	b.wait(`document.querySelector('#link')?.textContent === 'Live' && document.querySelector('#heat tbody tr')`)
}

// clickCell clicks the heat map's cell of a location and class.
func (b *browser) clickCell(node, class string) {
	b.t.Helper()
	b.do(chromedp.Click(fmt.Sprintf(`#heat .cell[aria-label^=%q]`, node+" / "+class)))
}
