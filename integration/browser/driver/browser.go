package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// openBrowser starts a browser with an empty profile. It runs until close.
func openBrowser(ctx context.Context, profile string) (browser context.Context, closeIt func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.UserDataDir(profile),
		chromedp.WSURLReadTimeout(2*time.Minute),
	)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	ctx, end := chromedp.NewContext(ctx)
	closeIt = func() {
		_ = chromedp.Cancel(ctx) // it waits for the browser; one that has died has ended
		end()
		stop()
	}
	if err := chromedp.Do(ctx); err != nil {
		closeIt()
		return nil, nil, fmt.Errorf("start Chromium: %w", err)
	}
	return ctx, closeIt, nil
}

// tab is a window with cookies of its own, and what has gone wrong in it.
type tab struct {
	ctx     context.Context
	close   context.CancelFunc
	home    string // address of the node that it may ask
	scripts bool   // of its pages run
	keys    bool   // what is to be clicked is focused, and a key pressed
	spent   *spent

	mu       sync.Mutex
	requests []string // to the node, since the last look
	problems []string
}

// tab opens a window for the pages of a node. Without scripts it runs none of a page.
func (s *stage) tab(home string, scripts bool) (*tab, error) {
	t := &tab{home: home, scripts: scripts, spent: &s.spent}
	t.ctx, t.close = chromedp.NewContext(s.browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.hear))
	if err := chromedp.Do(t.ctx); err != nil { // the window lives as long as this context
		t.close()
		return nil, fmt.Errorf("open a window: %w", err)
	}
	err := t.do(
		send(network.Enable, network.EnableParams{}),
		send(log.Enable, cdp.Empty{}),
		scripting(scripts),
		// A window among others takes keys, and marks where the focus is, as the only one does.
		send(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		size(usualWidth), theme("light"))
	if err != nil {
		t.close()
		return nil, fmt.Errorf("open a window: %w", err)
	}
	return t, nil
}

// send makes an action of a command of the protocol.
func send[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cmd, params)
		return err
	})
}

func scripting(on bool) chromedp.Action[chromedp.Void] {
	return send(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// hear takes down what a page must not do.
func (t *tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, t.home+"/") {
			t.problems = append(t.problems, "a request elsewhere: "+e.Request.URL)
		}
		t.requests = append(t.requests, e.Request.Method+" "+strings.TrimPrefix(e.Request.URL, t.home))
	case *network.EventWebSocketCreated:
		t.problems = append(t.problems, "a connection elsewhere: "+e.URL)
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		t.problems = append(t.problems, fmt.Sprintf("an exception: %.500s", text))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			text, _ := json.Marshal(e.Args)
			t.problems = append(t.problems, fmt.Sprintf("console, %s: %.500s", e.Type, text))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			t.problems = append(t.problems, fmt.Sprintf("log, %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		t.problems = append(t.problems, "a dialog: "+e.Message)
	}
}

// asked returns the requests since the last call, and forgets them.
func (t *tab) asked() (requests []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	requests, t.requests = t.requests, nil
	return requests
}

// wrong returns what has gone wrong since the last call, and forgets it. What has one of some parts is expected.
func (t *tab) wrong(expected ...string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left []string
	for _, p := range t.problems {
		if !hasOne(p, expected) {
			left = append(left, p)
		}
	}
	t.problems = nil
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(left, "\n  "))
}

func hasOne(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// stepWithin bounds one thing that a browser is asked for.
const stepWithin = 90 * time.Second

// do makes the browser do one thing after the other.
func (t *tab) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, stepWithin)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// load does what leads to another page, waits for it, and returns its status.
func (t *tab) load(steps ...chromedp.Action[chromedp.Void]) (status int64, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, stepWithin)
	defer cancel()
	resp, err := chromedp.RunResponse(ctx, steps...)
	if err != nil || resp == nil {
		return 0, err
	}
	return resp.Status, nil
}

// open opens a page of the node.
func (t *tab) open(path string) error { return t.visit(shown{path: path}) }

// eval evaluates a script in the page, and decodes what it returns, unless into is nil.
func (t *tab) eval(script string, into any) error {
	ctx, cancel := context.WithTimeout(t.ctx, stepWithin)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](script, chromedp.EvalAwaitPromise))
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// is reports whether a script says true of the page; false, too, where another page is just coming.
func (t *tab) is(script string) bool {
	var is bool
	return t.eval("Boolean("+script+")", &is) == nil && is
}

// timeout bounds how long a page may take to become what it should be.
const timeout = 60 * time.Second

// until waits until a script says true of the page.
func (t *tab) until(what, script string) error {
	for end := time.Now().Add(timeout); !t.is(script); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s: not so after %s: %s", t.where(), timeout, what)
		}
	}
	return nil
}

// where returns the address of the page, from the root of the node on.
func (t *tab) where() (path string) {
	_ = t.eval("location.pathname + location.search", &path) // for errors alone
	return path
}

// pressing makes an action that clicks what a selector finds first, or presses the key that does the same.
func (t *tab) pressing(selector string) chromedp.Action[chromedp.Void] {
	if !t.keys {
		return chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
	}
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		focus := fmt.Sprintf(`(() => { const e = document.querySelector(%q); if (e) e.focus(); return !e || e !== document.activeElement ? "" : e.type === "checkbox" ? " " : "\r"; })()`, selector)
		key, err := chromedp.Run(ctx, chromedp.Evaluate[string](focus))
		if err != nil {
			return err
		}
		if key == "" {
			return errors.New("it does not take the focus")
		}
		_, err = chromedp.KeyEvent(key)(ctx, target)
		return err
	})
}

// click clicks what a selector finds first.
func (t *tab) click(selector string) error {
	if err := t.do(t.pressing(selector)); err != nil {
		return fmt.Errorf("%s: click %s: %w", t.where(), selector, err)
	}
	return nil
}

// follow clicks what leads to another page, and waits for it.
func (t *tab) follow(selector string) error {
	if _, err := t.load(t.pressing(selector)); err != nil {
		return fmt.Errorf("%s: follow %s: %w", t.where(), selector, err)
	}
	return nil
}

// fill types a text into a field.
func (t *tab) fill(selector, text string) error {
	if err := t.do(chromedp.SendKeys(chromedp.CSS(selector), text)); err != nil {
		return fmt.Errorf("%s: type into %s: %w", t.where(), selector, err)
	}
	return nil
}

// login begins a session with the secret of a token.
func (t *tab) login(secret string) error {
	if err := t.open("/ui/login"); err != nil {
		return err
	}
	if err := t.fill("#token", secret); err != nil {
		return err
	}
	if err := t.follow("form.login button"); err != nil {
		return err
	}
	return t.until("somebody is logged in", `document.querySelector("form.who")`)
}

// widths has one of a phone, of a small window and of a wide one.
var widths = []int64{360, 1024, 1920}

const usualWidth = 1024

func size(width int64) chromedp.Action[chromedp.Void] {
	return send(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width:             width,
		Height:            800,
		DeviceScaleFactor: 1,
	})
}

var themes = []string{"light", "dark"}

func theme(name string) chromedp.Action[chromedp.Void] {
	return send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}
