package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed controls.js
var controlsScript string

// focus tells where the focus of a page is.
type focus struct {
	At   int // its number in the order of the page; -1 = elsewhere
	What string
	Seen bool // it is marked, and in the window
}

// tabThrough goes through a page by the tab key alone: everything that can be done has the focus once, in the order of
// the page, and it is seen where the focus is.
func (l *lane) tabThrough(of *node, page shown) error {
	t, err := l.window(windowOf{of, true, page.stranger})
	if err != nil {
		return err
	}
	if err := t.visit(page); err != nil {
		return err
	}
	// Nothing comes and goes meanwhile, and the focus is before the page.
	if err := t.eval(`document.querySelectorAll("[data-refresh][aria-pressed=true]").forEach((b) => b.click());
		document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex"); getSelection().removeAllRanges(); true`, nil); err != nil {
		return err
	}
	var n int
	if err := t.eval(controlsScript, &n); err != nil {
		return err
	}
	if err := t.do(chromedp.KeyEvent(strings.Repeat(kb.Tab, n+5))); err != nil {
		return err
	}
	var stops []focus
	if err := t.eval(`window.stops`, &stops); err != nil {
		return err
	}
	missed, err := inOrder(stops, n)
	if err != nil {
		return err
	}
	var what []string
	if err := t.eval(fmt.Sprintf(`%s.map((i) => window.reach[i].outerHTML.slice(0, 100))`, missed), &what); err != nil {
		return err
	}
	if len(what) > 0 {
		err = fmt.Errorf("the keyboard does not reach %s", strings.Join(what, "; "))
	}
	return errors.Join(err, t.wrong(page.noted()...))
}

// inOrder returns, as a list in JSON, which of so many controls had not the focus at one of the stops, and an error
// unless the stops are in the order of the page and seen.
func inOrder(stops []focus, of int) (missed string, err error) {
	reached := make([]bool, of)
	last := -1
each:
	for _, f := range stops {
		switch {
		case f.At < 0 && last < of-1:
			continue
		case f.At < 0, reached[f.At]: // the browser's own controls, or the first again
			break each
		case f.At < last:
			return "", fmt.Errorf("the focus goes back to %s", f.What)
		case !f.Seen:
			return "", fmt.Errorf("it is not seen that the focus is on %s", f.What)
		default:
			reached[f.At], last = true, f.At
		}
	}
	left := []int{}
	for i, is := range reached {
		if !is {
			left = append(left, i)
		}
	}
	text, err := json.Marshal(left)
	return string(text), err
}

// keysDo uses by keys what others click.
func (t *tab) keysDo() error {
	if err := t.open("/ui/tasks"); err != nil {
		return err
	}
	keys := func(keys string) error { return t.do(chromedp.KeyEvent(keys)) }
	at := func(what, is string) error {
		if !t.is(is) {
			return fmt.Errorf("by keys: %s: not so", what)
		}
		return nil
	}
	return errors.Join(
		keys(kb.Tab),
		at("the first stop is the link to the content", `document.activeElement.matches(".skip") && document.activeElement.getBoundingClientRect().left >= 0`),
		keys(kb.Enter),
		at("it leads there", `document.activeElement.id === "main" || location.hash === "#main"`),
		t.eval(`document.querySelector("form.card summary").focus(); true`, nil),
		keys(" "),
		at("the filter opens", `document.querySelector("form.card details").open`),
		t.eval(`document.querySelector("input[name=column]").focus(); window.was = document.activeElement.checked; true`, nil),
		keys(" "),
		at("a column is chosen", `document.activeElement.checked !== window.was`),
		t.eval(`document.querySelector("#find").focus(); true`, nil),
		keys("upload/0"),
		func() error { _, err := t.load(chromedp.KeyEvent(kb.Enter)); return err }(),
		at("the task is opened", `location.pathname === "/ui/tasks/upload~0"`),
	)
}
