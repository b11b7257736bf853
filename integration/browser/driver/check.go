package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// check runs every check whose name has the text that was asked for, and fails if one of them does.
func (s *stage) check(ctx context.Context) error {
	axe, err := fetchAxe(ctx, s.dir)
	if err != nil {
		return err
	}
	all, err := s.scenes(ctx)
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	usual := all[1].node
	checks := []struct {
		name string
		run  func() error
	}{
		{"login and logout", func() error { return s.loginAndLogout(ctx, usual) }},
		{"sessions that end", func() error { return s.sessionsThatEnd(ctx, usual) }},
		{"filter and open", func() error { return s.filterAndOpen(usual, true) }},
		{"filter and open without scripts", func() error { return s.filterAndOpen(usual, false) }},
		{"refresh", func() error { return s.refresh(ctx, usual) }},
		{"copy", func() error { return s.copies(usual) }},
		{"actions", func() error { return s.actions(ctx, usual, true) }},
		{"actions without scripts", func() error { return s.actions(ctx, usual, false) }},
		{"keyboard", func() error { return s.keyboard(all[1]) }},
		{"a node is killed", func() error { return s.nodeIsKilled(ctx) }},
	}
	var failed []error
	run := func(name string, check func() error) {
		if !s.chosen(name) {
			return
		}
		began := time.Now()
		if err := check(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			fmt.Printf("red after %.1f s: %s: %s\n", time.Since(began).Seconds(), name, err)
			return
		}
		fmt.Printf("green after %.1f s: %s\n", time.Since(began).Seconds(), name)
	}
	for _, c := range checks {
		run(c.name, c.run)
	}
	for _, sc := range all {
		with, without, err := s.bothTabs(sc.node)
		if err != nil {
			return err
		}
		for _, page := range sc.pages {
			run("page "+sc.name+" "+page.name, func() error { return lookAt(page, with, without, axe) })
		}
		with.close()
		without.close()
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d checks are red", len(failed))
	}
	return ctx.Err()
}

// bothTabs opens a window with scripts and one without, in which the user of the node is logged in.
func (s *stage) bothTabs(n *node) (with, without *tab, err error) {
	with, err = s.tab(n.URL, true)
	if err == nil {
		without, err = s.tab(n.URL, false)
	}
	for _, t := range []*tab{with, without} {
		if err == nil {
			err = t.login(n.Token)
		}
	}
	return with, without, err
}

// in runs a check in a window of its own, which must have done nothing wrong but what is expected.
func (s *stage) in(n *node, scripts bool, check func(*tab) error, expected ...string) error {
	t, err := s.tab(n.URL, scripts)
	if err != nil {
		return err
	}
	defer t.close()
	return errors.Join(check(t), t.wrong(expected...))
}
