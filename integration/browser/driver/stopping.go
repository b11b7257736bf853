package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	toStop = 64 // tasks of the change that is stopped, each of an affinity of its own, so that they are of many shards
	// longest is the longest TTL of a node: one that is held keeps its shards for so long.
	longest = "1m"
	// heldMost bounds how long a node is held for certain without losing its shards, which it renewed up to a third of its
	// TTL before. On a machine that is slower the change is stopped again.
	heldMost    = 35 * time.Second
	stopsAtMost = 5
)

var errHeldTooLong = errors.New("a node was held for too long to keep its shards for certain")

// stopsChange stops, by the button of its page, a change that waits for the shards of a node that is held.
func stopsChange(ctx context.Context, first, held *node, t *tab, w way) (err error) {
	for n := range stopsAtMost {
		err = stopsOne(ctx, first, held, t, fmt.Sprintf("stop-%s%d-", w.name, n))
		if !errors.Is(err, errHeldTooLong) {
			return err
		}
	}
	return err
}

// stopsOne stops a change of tasks of its own: those of the shards of the other nodes were deleted by then, and those
// of the held one stay, also when it answers again.
func stopsOne(ctx context.Context, first, held *node, t *tab, prefix string) error {
	filter := "affinity-prefix=" + prefix
	for i := range toStop {
		if err := first.submit(ctx, toSubmit{Behavior: "noop", ID: fmt.Sprintf("%s%d/0", prefix, i), DelayMs: 86_400_000}); err != nil {
			return err
		}
	}
	err := all(
		func() error { return t.open("/ui/matching?operation=delete&" + filter) },
		func() error {
			if !t.is(fmt.Sprintf(`document.querySelector("main").innerText.includes("%d tasks match")`, toStop)) {
				return fmt.Errorf("%s: not %d tasks match", t.where(), toStop)
			}
			return nil
		},
		func() error { return t.click("[name=exactly]") }, // else it counts again, before it changes any
	)
	if err != nil {
		return err
	}
	changed, err := t.stopsWhile(held)
	if err != nil {
		return err
	}
	if changed == 0 || changed >= toStop {
		return fmt.Errorf("it was to be stopped in the middle, and has changed %d of %d tasks", changed, toStop)
	}
	var left int
	if err := soon(func() (err error) { left, err = first.countWhole(ctx, filter); return err }); err != nil {
		return err
	}
	if left != toStop-changed {
		return fmt.Errorf("a change that was stopped says that it has deleted %d of %d tasks, and %d are left", changed, toStop, left)
	}
	return all(
		func() error { return t.open(t.where()) },
		func() error { return t.shows("#live", "It was stopped") },
		func() error {
			if now, err := t.changed(); err != nil || now != changed {
				return fmt.Errorf("a change that was stopped at %d tasks has changed %d: %w", changed, now, err)
			}
			return nil
		},
	)
}

// stopsWhile sends the form of a change while a node is held, waits until the page says that nobody answers for its
// shards, presses Stop, and returns how many tasks the page says were changed. The node then goes on.
func (t *tab) stopsWhile(held *node) (changed int, err error) {
	began := time.Now()
	if err := held.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return 0, err
	}
	defer func() {
		goesOn := held.cmd.Process.Signal(syscall.SIGCONT)
		if time.Since(began) > heldMost {
			err = errHeldTooLong
		}
		err = errors.Join(err, goesOn)
	}()
	err = all(
		func() error { return t.follow("form[action='/ui/jobs'] button") },
		func() error { return t.shows("#live", "These shards are waited for") },
		func() error { return t.shows("#live", "It runs") },
		func() error { return t.follow(`form[action$="/stop"] button`) },
		func() error { return t.shows("#live", "It was stopped") },
		func() error { return t.shows("#live", fmt.Sprintf("of about %d", toStop)) },
		func() error {
			if t.is(`document.querySelector('form[action$="/stop"]')`) {
				return errors.New("a change that was stopped still has the button")
			}
			changed, err = t.changed()
			return err
		},
	)
	return changed, err
}

// changed returns how many tasks the page of a change says were changed.
func (t *tab) changed() (n int, err error) {
	var text string
	if err := t.eval(`document.querySelector("[aria-labelledby=report] tbody tr:first-child td.n").innerText`, &text); err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(text))
}

// countWhole counts the tasks that a filter selects; it is an error that one cannot be asked for.
func (n *node) countWhole(ctx context.Context, filter string) (int, error) {
	var page struct {
		Tasks   []struct{ ID string }
		Missing []struct{ Shard int }
	}
	if err := n.ask(ctx, http.MethodGet, "/v1/tasks?limit=1000&"+filter, nil, &page); err != nil {
		return 0, err
	}
	if len(page.Missing) > 0 {
		return 0, fmt.Errorf("of %d shards the tasks are not told", len(page.Missing))
	}
	return len(page.Tasks), nil
}
