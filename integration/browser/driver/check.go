package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// check runs every check whose name has the text that was asked for, and fails if one of them does.
func (s *stage) check(ctx context.Context) error {
	var axe string
	var all []*scene
	failed := make([]error, 3)
	var wg sync.WaitGroup
	wg.Go(func() { axe, failed[0] = fetchAxe(ctx, s.dir) })
	wg.Go(func() { all, failed[1] = s.scenes(ctx) })
	wg.Go(func() { failed[2] = s.start(ctx) })
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	var chosen []job
	for _, j := range s.jobs(ctx, all, axe) {
		if s.chosen(j.name) {
			chosen = append(chosen, j)
		}
	}
	red := s.runAll(ctx, chosen)
	s.spent.tell()
	if red > 0 {
		return fmt.Errorf("%d checks are red", red)
	}
	return ctx.Err()
}

// jobs returns all checks, those that take long first.
func (s *stage) jobs(ctx context.Context, all []*scene, axe string) (jobs []job) {
	usual, mirrored := all[1], all[len(all)-1]
	n := usual.node
	jobs = append(jobs,
		job{"a node is killed, and changes are stopped", nil, func(*lane) error { return s.nodesThatFail(ctx) }},
		job{"refresh", n, func(*lane) error { return s.refresh(ctx, n) }})
	for _, w := range ways {
		jobs = append(jobs,
			job{"actions " + w.what, n, func(*lane) error { return s.actions(ctx, n, w) }},
			job{"works " + w.what, mirrored.node, func(*lane) error { return s.changesWork(ctx, mirrored, w) }})
	}
	jobs = append(jobs,
		job{"sessions that end", nil, func(*lane) error { return s.sessionsThatEnd(ctx, n) }},
		job{"login and logout", nil, func(*lane) error { return s.loginAndLogout(ctx, n) }},
		job{"filter and open", nil, func(*lane) error { return s.filterAndOpen(n, true) }},
		job{"filter and open without scripts", nil, func(*lane) error { return s.filterAndOpen(n, false) }},
		job{"copy", nil, func(*lane) error { return s.copies(n) }},
		job{"keys", nil, func(*lane) error { return s.loggedIn(n, true, (*tab).keysDo) }})
	for _, page := range usual.pages {
		jobs = append(jobs, job{"keyboard " + page.name, nil, func(l *lane) error { return l.tabThrough(n, page) }})
	}
	for _, sc := range slices.Backward(all) { // pages without data are quick
		for _, page := range sc.pages {
			jobs = append(jobs, job{"page " + sc.name + " " + page.name, nil, func(l *lane) error { return l.lookAt(sc.node, page, axe) }})
		}
	}
	return jobs
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

// loggedIn runs a check as in does, in a window in which the user of the node is logged in.
func (s *stage) loggedIn(n *node, scripts bool, check func(*tab) error, expected ...string) error {
	return s.in(n, scripts, func(t *tab) error {
		if err := t.login(n.Token); err != nil {
			return err
		}
		return check(t)
	}, expected...)
}
