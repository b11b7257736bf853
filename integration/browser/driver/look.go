package main

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

//go:embed layout.js
var layoutScript string

// layout returns what is wrong with how the page is laid out.
func (t *tab) layout() error {
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

// look looks at a page in every width and theme, with what is folded closed and open.
func (t *tab) look(axe string) error {
	var all []error
	note := func(what string, err error) {
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", what, err))
		}
	}
	for i, th := range themes {
		if err := t.do(theme(th)); err != nil {
			return err
		}
		for _, width := range widths {
			if err := t.do(size(width)); err != nil {
				return err
			}
			what := fmt.Sprintf("%d pixels, %s", width, th)
			note(what, t.layout())
			// A theme has its colors at every width: both are looked at once.
			if width == []int64{widths[1], widths[0]}[i] {
				note(what, t.axe(axe))
			}
		}
		if err := t.eval(openAll, nil); err != nil {
			return err
		}
	}
	return errors.Join(append(all, t.do(size(usualWidth), theme("light")))...)
}

// lookAt opens a page with and without scripts and looks at it.
func lookAt(page shown, with, without *tab, axe string) error {
	allowed := page.refused()
	visit := func(t *tab) error {
		err := t.open(page.path)
		if len(allowed) > 0 && err != nil && strings.Contains(err.Error(), "status "+allowed[0][:3]) {
			return nil
		}
		return err
	}
	var all []error
	if err := visit(with); err != nil {
		return err
	}
	if !with.is(`[...document.forms].every((f) => typeof f.id === "string")`) {
		all = append(all, errors.New("a form has a field named id, so that a refresh would replace the form with what was typed"))
	}
	if err := with.look(axe); err != nil {
		all = append(all, err)
	}
	if err := with.wrong(allowed...); err != nil {
		all = append(all, err)
	}
	if err := visit(without); err != nil {
		return errors.Join(append(all, fmt.Errorf("without scripts: %w", err))...)
	}
	err := without.layout()
	if err == nil && without.is(`document.querySelector("[data-script]:not([hidden]), [data-refresh]:not([hidden] *)")`) {
		err = errors.New("something is shown that needs scripts")
	}
	if err == nil {
		err = without.wrong(allowed...)
	}
	if err != nil {
		all = append(all, fmt.Errorf("without scripts: %w", err))
	}
	return errors.Join(all...)
}
