package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// nodesThatFail opens the overview of a cluster of three nodes, of which one is killed, and then stops changes that
// wait for another one, with scripts and without.
func (s *stage) nodesThatFail(ctx context.Context) error {
	first, err := s.serve(ctx, "a", "--ttl", "3s")
	if err != nil {
		return err
	}
	held, err := s.join(ctx, first, "b", longest)
	if err != nil {
		return err
	}
	last, err := s.join(ctx, first, "c", "3s")
	if err != nil {
		return err
	}
	if err := s.nodeIsKilled(first, last); err != nil {
		return err
	}
	for _, w := range ways[:2] {
		err := s.loggedIn(first, w.scripts, func(t *tab) error { return stopsChange(ctx, first, held, t, w) })
		if err != nil {
			return fmt.Errorf("a change is stopped %s: %w", w.what, err)
		}
	}
	return nil
}

// nodeIsKilled kills the last of three nodes while the overview of the first one is open.
func (s *stage) nodeIsKilled(first, last *node) error {
	return s.loggedIn(first, true, func(t *tab) error {
		const names = `[...document.querySelectorAll("[aria-labelledby=nodes] tbody tr")].map((r) => r.cells[0].innerText.trim().split(/\s+/).pop()).sort().join()`
		if err := t.until("three nodes are shown", names+` === "a,b,c"`); err != nil {
			return err
		}
		if err := t.eval(`window.before = document.querySelector("#live"); true`, nil); err != nil {
			return err
		}
		last.kill()
		if err := t.until("the node that was killed has gone", names+` === "a,b"`); err != nil {
			return err
		}
		if !t.is(`window.before === document.querySelector("#live")`) {
			return errors.New("the page was loaded anew")
		}
		return nil
	}, "503", "504") // pages and parts that ask the node that has gone
}

// join starts a node of the cluster of another one, with a TTL, and waits until that one knows it.
func (s *stage) join(ctx context.Context, first *node, name, ttl string) (*node, error) {
	n := &node{binary: first.binary, dir: first.dir}
	if err := n.start("serve", "--join", "taskledger-data", "--name", name, "--ttl", ttl); err != nil {
		return nil, err
	}
	s.atEnd(n.kill)
	return n, soon(func() error {
		var all struct {
			Nodes []struct{ Node string }
		}
		if err := first.ask(ctx, http.MethodGet, "/v1/nodes", nil, &all); err != nil {
			return err
		}
		for _, is := range all.Nodes {
			if is.Node == name {
				return nil
			}
		}
		return fmt.Errorf("node %s has not joined: %s", name, n.said.String())
	})
}
