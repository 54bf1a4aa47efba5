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

// serve runs a server until the test ends.
func serve(t *testing.T, cfg Config, b Backend) *Server {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	s, err := New(cfg, b)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s
}

// run runs s until the test ends.
func run(t *testing.T, s *Server) {
	t.Helper()
	t.Cleanup(runUntil(t, s))
}

// runUntil runs s until the function it returns is called.
func runUntil(t *testing.T, s *Server) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// stage is a server with five minutes of history and a browser on its page. The
// script stands still, so that figures can be read.
func stage(t *testing.T, chromium context.Context, sc scene, cfg Config, mend func(*api.Status)) (*browser, *scripted) {
	t.Helper()
	b := newTab(t, chromium)
	backend := &scripted{scene: sc, sec: 300, hold: true, ready: true, mend: mend}
	cfg.Listen = "127.0.0.1:0"
	s, err := New(cfg, backend)
	if err != nil {
		t.Fatal(err)
	}
	prefill(s, backend)
	run(t, s)
	b.url = "http://" + s.Addr() + "/"
	return b, backend
}

// TestDashboard drives the page in Chromium: one browser, a tab for each claim.
func TestDashboard(t *testing.T) {
	chromium := startBrowser(t)
	for _, c := range []struct {
		claim string
		test  func(*testing.T, context.Context)
	}{
		{"the dashboard shows the cluster", testTheDashboardShowsTheCluster},
		{"a cell explains itself", testACellExplainsItself},
		{"the heat map switches its figure", testTheHeatMapSwitchesItsFigure},
		{"figures are legible on every colour of the scale", testFiguresAreLegibleOnEveryColourOfTheScale},
		{"freeze asks first and shows", testFreezeAsksFirstAndShows},
		{"trouble is told", testTroubleIsTold},
		{"the silence of the node shows", testTheSilenceOfTheNodeShows},
		{"the dashboard works with a token", testTheDashboardWorksWithAToken},
		{"a phone needs no sideways scrolling", testAPhoneNeedsNoSidewaysScrolling},
		{"many nodes and budgets stay usable", testManyNodesAndBudgetsStayUsable},
		{"figures read well", testFiguresReadWell},
	} {
		t.Run(c.claim, func(t *testing.T) { c.test(t, chromium) })
	}
}

func testTheDashboardShowsTheCluster(t *testing.T, chromium context.Context) {
	b, _ := stage(t, chromium, fiveCities(), Config{}, nil)
	b.open()
	b.wait(`document.querySelector('.line-demand').getAttribute('d').length > 2000`) // the history

	for _, c := range []struct{ claim, selector, want string }{
		{"the verdict comes first", "#verdict-line", "Budget kept under overload: demand is 133\u00a0% of the limit"},
		{"the sums stand against the limit", "#tiles [data-key=budget]", "shares 20,000/s of 20,000/s"},
		{"views are compared", "#tiles [data-key=views]", "Views agree"},
		{"members are counted", "#tiles [data-key=members]", "5 of 5 live"},
		{"readiness has its reason", "#tiles [data-key=node]", "its share is in force"},
		{"the plot has a title", "#plot-title", "origin: shares and demand"},
		{"the legend has the figures", "#plot-legend", "Limit 20,000/s"},
		{"the axis has a unit", "#plot .axis-title", "per second"},
		{"loans are summed", "#flow-sum", "5,696/s on loan"},
		{"loans name both sides", "#flow", "fra"},
		{"members have an age", "#members", "151\u00a0ms"},
		{"this node's share is explained", "#node-share", "base in force"},
	} {
		if got := b.text(c.selector); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s reads %q, want it to contain %q", c.claim, c.selector, got, c.want)
		}
	}
	if got := b.text("#heat tbody tr:last-child th"); got != hostileName {
		t.Errorf("a hostile name reads %q, want it shown as the text it is", got)
	}
	if n := evaluate[int](b, `document.querySelectorAll('img[src="x"]').length`); n != 0 {
		t.Errorf("a hostile name became %d elements", n)
	}
	if title := evaluate[string](b, `document.title`); title != "✓ ams · Subak" {
		t.Errorf("the tab's title is %q", title)
	}
	b.quiet()
}

func testACellExplainsItself(t *testing.T, chromium context.Context) {
	b, backend := stage(t, chromium, fiveCities(), Config{}, nil)
	b.open()
	b.clickCell("lon", "uncleared")
	b.wait(`document.querySelectorAll('#explain-body .words li').length === 3`)
	if got := b.text("#explain-title"); got != "Why lon / uncleared?" {
		t.Errorf("the title is %q", got)
	}
	if got := b.text("#explain-body"); !strings.Contains(got, "nothing unused is left in the budget") || !strings.Contains(got, "7,761/s") {
		t.Errorf("the explanation reads %q", got)
	}
	backend.set(func(s *scripted) {
		if got := strings.Join(s.explained, " "); got != "origin|uncleared|lon" {
			t.Errorf("the page asked for %q", got)
		}
	})
	b.scheme("light")
	b.shoot("web-light")
	b.scheme("dark")
	b.shoot("web-dark")
	b.size(360, 740, true)
	b.wait(`document.querySelector('#flow svg').getBoundingClientRect().width < 360 && document.querySelector('#plot svg').getBoundingClientRect().width < 360`)
	b.shoot("web-phone")

	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`document.querySelector('#explain-body').innerText.startsWith('Choose a cell')`)
	b.clickCell(hostileName, "confirmed")
	b.wait(`document.querySelector('#explain-title').innerText.includes('onerror')`)
	b.quiet()
}

func testTheHeatMapSwitchesItsFigure(t *testing.T, chromium context.Context) {
	b, _ := stage(t, chromium, fiveCities(), Config{}, nil)
	b.open()
	cell := `#heat .cell[aria-label^="lon / uncleared"]`
	for _, c := range []struct{ metric, want string }{{"demand", "18.0k"}, {"target", "11.2k"}, {"refused", "6.78k"}} {
		b.do(chromedp.Click(`#heat-metric [data-value="` + c.metric + `"]`))
		b.wait(`document.querySelector('#heat').dataset.metric === '` + c.metric + `'`)
		if got := b.text(cell); got != c.want {
			t.Errorf("%s of lon / uncleared reads %q, want %q", c.metric, got, c.want)
		}
	}
	b.do(chromedp.Click(`#heat-order [data-value="high"]`))
	b.wait(`document.querySelector('#heat tbody th').innerText.startsWith('lon')`)
	// The keyboard alone: into the table, one cell on, and open it.
	b.do(chromedp.Focus(`#heat .cell[tabindex="0"]`), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelectorAll('#explain-body .words li').length === 3`)
	b.quiet()
}

func testFiguresAreLegibleOnEveryColourOfTheScale(t *testing.T, chromium context.Context) {
	b, _ := stage(t, chromium, fiveCities(), Config{}, nil)
	b.open()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		worst := evaluate[map[string]float64](b, `(async () => {
			const { paint } = await import('/ui/heat.js');
			const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
			const luminance = (colour) => {
				pen.fillStyle = colour;
				pen.fillRect(0, 0, 1, 1);
				const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
				return 0.2126 * r + 0.7152 * g + 0.0722 * b;
			};
			const worst = {};
			const cell = document.querySelector('#heat .cell');
			for (const metric of ['demand', 'target', 'refused']) {
				document.querySelector('#heat').dataset.metric = metric;
				for (let v = 0; v <= 1.001; v += 0.02) {
					paint(cell, v);
					const style = getComputedStyle(cell);
					const [a, b] = [luminance(style.color), luminance(style.backgroundColor)].sort((x, y) => y - x);
					const contrast = (a + 0.05) / (b + 0.05);
					if (!(contrast >= worst[metric])) worst[metric] = contrast;
				}
			}
			return worst;
		})()`)
		for metric, contrast := range worst {
			t.Logf("%s %s: contrast at least %.2f", scheme, metric, contrast)
			if contrast < 4.2 {
				t.Errorf("%s, %s: contrast falls to %.2f, want 4.2 or more", scheme, metric, contrast)
			}
		}
	}
	b.quiet()
}

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
	for name, sc := range map[string]scene{"five cities": fiveCities(), "crowd": crowd()} {
		t.Run(name, func(t *testing.T) {
			b, _ := stage(t, chromium, sc, Config{}, func(st *api.Status) {
				st.Members[1].Name = strings.Repeat("very-long-name", 12)
				st.Budgets[0].Cells[1].Node = st.Members[1].Name
				st.Reason = strings.Repeat("because", 30)
			})
			b.size(360, 740, true)
			b.open()
			b.wait(`document.querySelector('#flow svg') && document.querySelector('.line-demand').getAttribute('d').length > 100`)
			wide := evaluate[string](b, `(() => {
				const limit = document.documentElement.clientWidth;
				const scrolls = (e) => e && (e.closest('.scroll') || e.closest('.tip') || e.closest('svg') || e.closest('.skip'));
				return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > limit + 0.5 && !scrolls(e))
					.map((e) => e.tagName + '#' + e.id + '.' + e.className).join(' ');
			})()`)
			if wide != "" {
				t.Errorf("wider than the phone: %s", wide)
			}
			if over := evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over != 0 {
				t.Errorf("the page is %d px wider than the phone", over)
			}
			b.quiet()
		})
	}
}

func testManyNodesAndBudgetsStayUsable(t *testing.T, chromium context.Context) {
	b, _ := stage(t, chromium, crowd(), Config{}, func(st *api.Status) {
		st.Digests, st.Frozen = 2, true
		st.Members[7].Live, st.Members[7].Gossip, st.Members[7].AgeMillis = false, "dead", 45000
		st.Members[9].Agrees = false
	})
	b.open()
	b.wait(`document.querySelector('.line-demand').getAttribute('d').length > 2000`)
	if n := evaluate[int](b, `document.querySelectorAll('#heat .cell').length`); n != 400 {
		t.Errorf("%d cells, want 400", n)
	}
	if got := b.text("#members tbody tr"); !strings.Contains(got, "pop-007") {
		t.Errorf("the first member is %q, want the one in trouble", got)
	}
	b.shoot("web-crowd")
	b.do(chromedp.Click(`#budgets button:nth-child(6)`))
	b.wait(`document.querySelector('#plot-title').innerText === 'egress-05: shares and demand' && document.querySelector('.line-demand').getAttribute('d').length > 2000`)
	if hash := evaluate[string](b, `location.hash`); hash != "#budget=egress-05" {
		t.Errorf("the address ends in %q", hash)
	}
	b.do(chromedp.Reload())
	b.wait(`document.querySelector('#plot-title')?.innerText === 'egress-05: shares and demand'`)
	draw := evaluate[float64](b, `(async () => {
		const { Heat } = await import('/ui/heat.js');
		const status = await (await fetch('/v1/status')).json();
		const heat = new Heat(document.createElement('table'), () => {});
		heat.draw(status.budgets[0], '');
		const start = performance.now();
		for (let i = 0; i < 20; i++) heat.draw(status.budgets[0], '');
		return (performance.now() - start) / 20;
	})()`)
	t.Logf("redrawing 400 cells takes %.1f ms", draw)
	b.size(360, 740, true)
	b.shoot("web-crowd-phone")
	b.quiet()
}

func testFiguresReadWell(t *testing.T, chromium context.Context) {
	b, _ := stage(t, chromium, fiveCities(), Config{}, nil)
	b.open()
	for _, c := range []struct{ call, want string }{
		{`rate(20000, '/s')`, "20,000/s"},
		{`rate(0.35, '/s')`, "0.35/s"},
		{`rate(5242880, 'B/s')`, "5.24\u00a0MB/s"},
		{`shortRate(18000, '/s')`, "18.0k/s"},
		{`shortRate(12, 'B/s')`, "12\u00a0B/s"},
		{`short(0)`, "0"}, {`short(0.01)`, "<0.1"}, {`short(3.14159)`, "3.1"}, {`short(999.4)`, "999"}, {`short(999.6)`, "1.00k"},
		{`short(999600)`, "1.00M"}, {`short(-1500)`, "\u22121.50k"}, {`short(NaN)`, "?"},
		{`trim(20000)`, "20k"}, {`trim(2500)`, "2.5k"}, {`trim(100)`, "100"},
		{`span(240)`, "240\u00a0ms"}, {`span(3200)`, "3.2\u00a0s"}, {`span(61000)`, "1\u00a0min"}, {`span(-1)`, "?"}, {`span(12000000)`, "3\u00a0h 20\u00a0min"},
		{`name('a\u202eb\u0000c')`, "a\u25a1b\u25a1c"}, {`name('')`, "(no name)"}, {`name('x'.repeat(200)).length + ''`, "80"},
		{`ticks(26500, 4).join()`, "0,10000,20000,30000"}, {`ticks(0, 4).join()`, "0,1"}, {`ticks(0.3, 4).join()`, "0,0.1,0.2,0.3"},
		{`names(['a', 'b', 'c', 'd', 'e', 'f'])`, "a, b, c, d and 2 more"},
	} {
		got := evaluate[string](b, `import('/ui/format.js').then(({ rate, shortRate, short, trim, span, name, names, ticks }) => `+c.call+`)`)
		if got != c.want {
			t.Errorf("%s = %q, want %q", c.call, got, c.want)
		}
	}
	b.quiet()
}
