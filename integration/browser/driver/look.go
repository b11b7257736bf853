package main

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"
)

//go:embed layout.js
var layoutScript string

// layout returns what is wrong with how the page is laid out.
func (t *tab) layout() error {
	defer t.spent.since("layout", time.Now())
	var found []string
	if err := t.eval(layoutScript, &found); err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	return errors.New(strings.Join(found, "\n    "))
}

// openAll opens every part of the page that is folded.
const openAll = `document.querySelectorAll("details").forEach((d) => { d.open = true; })`

// look looks at the page that is shown in every width, folded in light and unfolded in dark. What axe-core finds
// depends on colors and sizes by few rules: those are applied to both, once all is unfolded, and all rules once.
func (t *tab) look(axe string) error {
	var all []error
	note := func(what string, err error) {
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, pass := range []struct {
		theme  string
		widths []int64
		rules  string
	}{
		{"light", []int64{360, 1920, 1024}, visualRules},
		{"dark", []int64{1024, 1920, 360}, everyRule},
	} {
		if err := t.do(theme(pass.theme)); err != nil {
			return err
		}
		var what string
		for _, width := range pass.widths {
			if err := t.do(size(width)); err != nil {
				return err
			}
			what = fmt.Sprintf("%d pixels, %s", width, pass.theme)
			note(what, t.layout())
		}
		if err := t.eval(openAll, nil); err != nil {
			return err
		}
		note(what, t.axe(axe, pass.rules))
	}
	return errors.Join(append(all, t.do(size(usualWidth), theme("light")))...)
}

// lookAt opens a page with and without scripts and looks at it.
func (l *lane) lookAt(n *node, page shown, axe string) error {
	var all []error
	for _, scripts := range []bool{true, false} {
		err := func() error {
			t, err := l.window(windowOf{n, scripts, page.stranger})
			if err != nil {
				return err
			}
			if err := t.visit(page); err != nil {
				return err
			}
			if scripts {
				// The window waits for its next page, and does not refresh this one meanwhile.
				err = errors.Join(t.lookWith(axe), t.hide(true))
			} else {
				err = t.lookWithout(page, axe)
			}
			return errors.Join(err, t.wrong(page.noted()...))
		}()
		if err != nil {
			all = append(all, fmt.Errorf("scripts %t: %w", scripts, err))
		}
	}
	return errors.Join(all...)
}

func (t *tab) lookWith(axe string) (err error) {
	if !t.is(`[...document.forms].every((f) => typeof f.id === "string")`) {
		err = errors.New("a form has a field named id, so that a refresh would replace the form with what was typed")
	}
	return errors.Join(err, t.look(axe))
}

// differ has the names of pages that are others without scripts, by more than what scripts add to all pages.
var differ = map[string]bool{"login-of-a-stranger": true, "submit": true, "overview": true}

func (t *tab) lookWithout(page shown, axe string) error {
	err := t.layout()
	if t.is(`document.querySelector("[data-script]:not([hidden]), [data-refresh]:not([hidden] *)")`) {
		err = errors.Join(err, errors.New("something is shown that needs scripts"))
	}
	if !differ[page.name] {
		return err
	}
	// What the page has loaded does not run any more: scripts are let run for axe-core alone.
	return errors.Join(err, t.do(scripting(true)), t.axe(axe, everyRule), t.do(scripting(false)))
}
