package web

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
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
		{"figures show under the pointer and the cursor", testFiguresShowUnderThePointerAndTheCursor},
		{"the heat map switches its figure", testTheHeatMapSwitchesItsFigure},
		{"figures are legible on every colour of the scale", testFiguresAreLegibleOnEveryColourOfTheScale},
		{"freeze asks first and shows", testFreezeAsksFirstAndShows},
		{"trouble is told", testTroubleIsTold},
		{"a change under way is told", testAChangeUnderWayIsTold},
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

func testFiguresShowUnderThePointerAndTheCursor(t *testing.T, chromium context.Context) {
	b, backend := stage(t, chromium, fiveCities(), Config{SampleEvery: 100 * time.Millisecond}, nil)
	b.open()
	b.do(chromedp.Focus("#plot"), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowLeft))
	b.wait(`!document.querySelector('#tip').hidden && document.querySelector('#tip').innerText.includes('Sum of demand: 26,5')`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`document.querySelector('#tip').hidden`)

	b.do(chromedp.ScrollIntoView("#heat"))
	at := evaluate[map[string]float64](b, `(({ x, y }) => ({ x, y }))(document.querySelector('#heat .cell').getBoundingClientRect())`)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at["x"]+9, at["y"]+9))
	b.wait(`!document.querySelector('#tip').hidden && document.querySelector('#tip').innerText.startsWith('ams / confirmed')`)
	// And it stays while fresh data comes in.
	backend.set(func(s *scripted) { s.hold = false })
	first := b.text("#plot-legend")
	b.wait("document.querySelector('#plot-legend').innerText !== " + strconv.Quote(first))
	if evaluate[bool](b, `document.querySelector('#tip').hidden`) {
		t.Error("fresh data hid the tip under the pointer")
	}
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
	b.size(768, 1024, false)
	b.shoot("web-refused-tablet")
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
	b.size(360, 740, true)
	b.wait(`document.querySelector('#flow svg').getBoundingClientRect().width < 360`)
	b.fits()
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
