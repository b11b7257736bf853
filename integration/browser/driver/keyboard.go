package main

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	//go:embed controls.js
	controlsScript string
	//go:embed focus.js
	focusScript string
)

// focus is where the focus of a page is.
type focus struct {
	At    int // its number in the order of the page; -1 = elsewhere
	What  string
	Seen  bool // it is marked, and in the window
	Radio bool
}

// keyboard goes through pages by the keyboard alone: everything that can be done has the focus once, in the order of the page,
// and it is seen where the focus is.
func (s *stage) keyboard(sc *scene) error {
	return s.in(sc.node, true, func(t *tab) error {
		if err := t.login(sc.node.Token); err != nil {
			return err
		}
		var all []error
		for _, page := range sc.pages {
			if err := t.tabThrough(page.path); err != nil {
				all = append(all, fmt.Errorf("%s: %w", page.name, err))
			}
		}
		return errors.Join(append(all, t.keysDo())...)
	}, "404 (Not Found)")
}

// tabThrough goes through a page by the tab key.
func (t *tab) tabThrough(path string) error {
	if _, err := t.load(chromedp.Navigate(t.home + path)); err != nil {
		return err
	}
	if err := t.eval(`document.querySelectorAll("[data-refresh][aria-pressed=true]").forEach((b) => b.click()); // nothing comes and goes meanwhile
		document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex"); getSelection().removeAllRanges(); true`, nil); err != nil {
		return err
	}
	var n int
	if err := t.eval(controlsScript, &n); err != nil {
		return err
	}
	reached := make([]bool, n)
	last := -1
	for range n + 5 {
		if err := t.do(chromedp.KeyEvent(kb.Tab)); err != nil {
			return err
		}
		var f focus
		if err := t.eval(focusScript, &f); err != nil {
			return err
		}
		if f.At < 0 {
			if last == n-1 {
				break // the browser's own controls are next
			}
			continue
		}
		switch {
		case reached[f.At]:
			last = n
		case f.At < last:
			return fmt.Errorf("the focus goes back to %s", f.What)
		case !f.Seen:
			return fmt.Errorf("it is not seen that the focus is on %s", f.What)
		}
		if last == n {
			break
		}
		reached[f.At] = true
		last = f.At
	}
	var missed []string
	for i, is := range reached {
		if is {
			continue
		}
		var what string
		if err := t.eval(fmt.Sprintf(`window.reach[%d].outerHTML.slice(0, 100)`, i), &what); err != nil {
			return err
		}
		missed = append(missed, what)
	}
	if len(missed) > 0 {
		return fmt.Errorf("the keyboard does not reach %s", strings.Join(missed, "; "))
	}
	return nil
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
