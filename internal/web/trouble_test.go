package web

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"subak/internal/api"
)

func testFreezeAsksFirstAndShows(t *testing.T, chromium context.Context) {
	b, backend := stage(t, chromium, fiveCities(), Config{}, nil)
	frozen := func() (on bool) {
		backend.set(func(s *scripted) { on = s.frozen })
		return on
	}
	b.open()
	b.do(chromedp.Click("#freeze"), chromedp.WaitVisible("#confirm-yes"))
	b.shoot("web-confirm")
	if frozen() {
		t.Fatal("frozen before anyone confirmed")
	}
	b.do(chromedp.Click("#confirm-no"), chromedp.WaitNotVisible("#confirm"))
	if frozen() {
		t.Fatal("frozen though cancelled")
	}
	b.do(chromedp.Click("#freeze"), chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes"), chromedp.WaitVisible("#frozen"))
	if !frozen() {
		t.Fatal("the page shows a freeze that the node does not know of")
	}
	if got := b.text("#verdict-line"); !strings.Contains(got, "this node is frozen") {
		t.Errorf("the verdict reads %q", got)
	}
	b.quiet()

	backend.set(func(s *scripted) { s.freezeErr = errors.New("the loop is stopped") })
	b.do(chromedp.Click("#freeze"), chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes"))
	b.wait(`document.querySelector('#confirm-error').innerText.includes('Not done: the loop is stopped')`)
	b.quiet("500")
}

func testTroubleIsTold(t *testing.T, chromium context.Context) {
	b, backend := stage(t, chromium, fiveCities(), Config{SampleEvery: 100 * time.Millisecond}, func(st *api.Status) {
		st.Digests = 2
		st.Members[1].Agrees, st.Members[1].Digest = false, "00c0ffee"
		st.Members[2].Live, st.Members[2].Gossip, st.Members[2].AgeMillis = false, "dead", 8000
		st.Ready, st.Reason = false, "base not proved"
	})
	b.open()
	for selector, want := range map[string]string{
		"#verdict-line":             "Budget kept, but 2 different views, 4 of 5 live, this node is not ready",
		"#tiles [data-key=views]":   "differ from this node: fra",
		"#tiles [data-key=members]": "not live: lon",
		"#tiles [data-key=node]":    "base not proved",
		"#members tbody tr":         "lon",
	} {
		if got := b.text(selector); !strings.Contains(got, want) {
			t.Errorf("%s reads %q, want it to contain %q", selector, got, want)
		}
	}
	// Shares over the limit in one snapshot may be rows of different age; shares
	// that stay over it are what this page is for.
	backend.set(func(s *scripted) {
		s.mend = func(st *api.Status) { st.Budgets[0].SumShare = 21000 }
	})
	b.wait(`document.querySelector('#verdict-line').innerText === 'Over budget: origin'`)
	b.shoot("web-over")
	b.quiet()
}

func testAChangeUnderWayIsTold(t *testing.T, chromium context.Context) {
	b, backend := stage(t, chromium, fiveCities(), Config{SampleEvery: 100 * time.Millisecond}, nil)
	b.open()
	facts := func() string { return b.text("#node-facts") }
	if got := facts(); !strings.Contains(got, "none under way") || !strings.Contains(got, "says what is in force") {
		t.Errorf("in quiet times the facts read %q", got)
	}
	backend.set(func(s *scripted) {
		s.mend = func(st *api.Status) {
			st.Epoch.Active = false
			st.Change = "epoch 4-9f31c2aa00000000 is not in force here yet; it waits for fra, " + hostileName
			st.FileDiffers = []string{"node fra: weight 80 -> 60", "budget origin: limit 20000/s -> 10000/s", "3", "4"}
		}
	})
	b.wait(`document.querySelector('#node-facts').innerText.includes('it waits for fra, <img src=x onerror=alert(1)>')`)
	if got := facts(); !strings.Contains(got, "node fra: weight 80 -> 60") || !strings.Contains(got, "and 1 more") || !strings.Contains(got, "acknowledged, not active") {
		t.Errorf("the facts read %q", got)
	}
	b.shoot("web-change")
	backend.set(func(s *scripted) {
		s.mend = func(st *api.Status) {
			st.Ready, st.Member, st.Reason = false, false, "the epoch in force does not list this node"
		}
	})
	b.wait(`document.querySelector('#verdict-line').innerText.includes('not ready and no member')`)
	backend.set(func(s *scripted) {
		s.mend = func(st *api.Status) { st.Ready, st.Provisional, st.Epoch = false, true, api.Epoch{} }
	})
	b.wait(`document.querySelector('#node-facts').innerText.includes('not known yet')`)
	b.quiet()
}

func testTheSilenceOfTheNodeShows(t *testing.T, chromium context.Context) {
	b := newTab(t, chromium)
	backend := &scripted{scene: fiveCities(), sec: 300, ready: true}
	s, err := New(Config{Listen: "127.0.0.1:0"}, backend)
	if err != nil {
		t.Fatal(err)
	}
	stop := runUntil(t, s)
	b.url = "http://" + s.Addr() + "/"
	b.open()
	b.quiet()
	stop()
	b.wait(`document.querySelector('#link').innerText === 'Connection lost'`)
	if got := b.text("#lost"); !strings.Contains(got, "last data") || !strings.Contains(got, "s ago") {
		t.Errorf("the banner reads %q, want the age of the last data", got)
	}
	if got := b.text("#verdict-line"); !strings.HasPrefix(got, "Last known: ") {
		t.Errorf("the verdict reads %q, as if it were fresh", got)
	}
	b.shoot("web-lost")

	again := serve(t, Config{Listen: s.Addr()}, backend)
	if again.Addr() != s.Addr() {
		t.Fatalf("the second server listens on %s, want %s", again.Addr(), s.Addr())
	}
	b.wait(`document.querySelector('#link').innerText === 'Live' && document.querySelector('#lost').hidden`)
	b.quiet("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
}

func testTheDashboardWorksWithAToken(t *testing.T, chromium context.Context) {
	b, _ := stage(t, chromium, fiveCities(), Config{Token: "correct horse"}, nil)
	b.do(chromedp.Navigate(b.url), chromedp.WaitVisible("#token"))
	b.shoot("web-login")
	b.do(chromedp.SendKeys("#token", "wrong"+kb.Enter))
	b.wait(`document.querySelector('#login-error').innerText === 'This token is not accepted.'`)
	b.do(chromedp.SendKeys("#token", "correct horse"+kb.Enter))
	b.wait(`document.querySelector('#link').innerText === 'Live'`)
	b.do(chromedp.Click("#freeze"), chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes"), chromedp.WaitVisible("#frozen"))
	b.clickCell("lon", "uncleared")
	b.wait(`document.querySelectorAll('#explain-body .words li').length === 3`)
	if url := evaluate[string](b, `location.href + document.cookie`); strings.Contains(url, "horse") {
		t.Errorf("the token is in the address or a cookie: %s", url)
	}
	b.do(chromedp.Reload())
	b.wait(`document.querySelector('#link').innerText === 'Live'`) // the tab remembers
	b.do(chromedp.Click("#sign-out"), chromedp.WaitVisible("#token"))
	b.do(chromedp.Reload(), chromedp.WaitVisible("#token")) // and forgets
	b.quiet("401")
}

func testAPhoneNeedsNoSidewaysScrolling(t *testing.T, chromium context.Context) {
	b, _ := stage(t, chromium, fiveCities(), Config{}, func(st *api.Status) {
		st.Members[1].Name = strings.Repeat("very-long-name", 12)
		st.Budgets[0].Cells[1].Node = st.Members[1].Name
		st.Reason = strings.Repeat("because", 30)
	})
	b.size(360, 740, true)
	b.open()
	b.wait(`document.querySelector('#flow svg') && document.querySelector('.line-demand').getAttribute('d').length > 100`)
	b.fits()
	b.quiet()
}

// fits fails if anything sticks out of the viewport sideways, but for what
// scrolls in its own box.
func (b *browser) fits() {
	b.t.Helper()
	wide := evaluate[string](b, `(() => {
		const limit = document.documentElement.clientWidth;
		const scrolls = (e) => e.closest('.scroll, .tip, svg, .skip');
		return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > limit + 0.5 && !scrolls(e))
			.map((e) => e.tagName + '#' + e.id + '.' + e.className).join(' ');
	})()`)
	if wide != "" {
		b.t.Errorf("wider than the viewport: %s", wide)
	}
	if over := evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over != 0 {
		b.t.Errorf("the page is %d px wider than the viewport", over)
	}
}
