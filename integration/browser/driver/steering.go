package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// pauseBehavior lets a behavior go on that is paused, and pauses it again.
func pauseBehavior(t *tab, w way) error {
	const row = `[id="b-http"]`
	why := "the partner moves, " + w.name
	return all(
		func() error { return t.open("/ui/behaviors") },
		func() error { return t.follow(row + ` form[action$="/unpause"] button`) },
		func() error { return t.shows(row, "runs") },
		func() error { return t.click(row + " summary") },
		func() error { return t.fill("[id=reason-http]", why) },
		func() error { return t.follow(row + ` form[action$="/pause"] button`) },
		func() error { return t.shows(row, why) },
	)
}

// steerChosen pauses, resumes and runs a schedule, or a collection, that is chosen in a list.
func steerChosen(t *tab, w way, list, name string) error {
	row := fmt.Sprintf(`[id="c-%s"]`, name)
	why := "not this week, " + w.name
	choose := func() error { return t.click(row + " input") }
	return all(
		func() error { return t.open(list) },
		choose,
		func() error { return t.fill("#reason", why) },
		func() error { return t.follow("button[value=pause]") },
		func() error { return t.shows(row, why) },
		choose,
		func() error { return t.follow("button[value=resume]") },
		func() error { return t.lacks(row, "paused") },
		choose,
		func() error { return t.follow("button[value=run]") },
		func() error {
			if at := t.where(); at != list {
				return fmt.Errorf("the run leads to %s", at)
			}
			return nil
		},
	)
}

// steerOne pauses, resumes and runs a schedule on its own page.
func steerOne(t *tab, w way, name string) error {
	const state, runs = "[aria-label=State]", "[aria-labelledby=runs]"
	why := "not this month, " + w.name
	var before int
	return all(
		func() error { return t.open("/ui/schedules/" + name) },
		func() error { return t.fill("#reason", why) },
		func() error { return t.follow("button[value=pause]") },
		func() error { return t.shows(state, why) },
		func() error { return t.follow("button[value=resume]") },
		func() error { return t.lacks(state, "paused") },
		func() error {
			return t.eval(`document.querySelectorAll("[aria-labelledby=runs] tbody tr").length`, &before)
		},
		func() error { return t.follow("button[value=run]") },
		func() error {
			return t.untilHere("one more run is shown", fmt.Sprintf(`document.querySelectorAll("%s tbody tr").length > %d`, runs, before))
		},
	)
}

// changesWork suspends and resumes the stream of a mirror by its task. Of the work that has made the trees equal, which
// has ended, it resets what counters have counted, and the run, and runs it again.
func (s *stage) changesWork(ctx context.Context, sc *scene, w way) error {
	stream, ended := sc.works[0], sc.works[1]
	if !strings.HasSuffix(stream, "-follow") {
		stream, ended = ended, stream
	}
	const state = "[aria-label=State]"
	return s.loggedIn(sc.node, w.scripts, func(t *tab) error {
		t.keys = w.keys
		return all(
			func() error { return soon(func() error { return changeStream(t, stream, "suspend") }) },
			func() error { return t.shows(state, "suspended") },
			func() error { return soon(func() error { return changeStream(t, stream, "resume") }) },
			func() error { return t.lacks(state, "suspended") },
			func() error { return t.open("/ui/work/" + pathOf(ended)) },
			func() error { return t.follow("button[value=thresholds]") },
			func() error { return t.click("[aria-labelledby=change] summary") },
			func() error { return t.follow("button[value=run]") },
			func() error { return t.shows(state, ", reset") },
			func() error { return t.open("/ui/tasks/" + pathOf(ended)) },
			func() error { return t.follow(`form.change button[value=retry]`) },
			func() error { return t.open("/ui/work/" + pathOf(ended)) },
			func() error { return t.shows(state, "complete") },
			func() error { return sc.node.await(ctx, ended, succeeded) },
		)
	}, "412 (Precondition Failed)", "503 (Service Unavailable)") // the shard of the task may be asked for too long
}

// changeStream changes a task that always runs. What its stream records may come between the page and the form, and is
// told then.
func changeStream(t *tab, id, operation string) error {
	button := fmt.Sprintf(`form.change button[value=%s]`, operation)
	return all(
		func() error { return t.open("/ui/tasks/" + pathOf(id)) },
		func() error {
			if !t.is(fmt.Sprintf(`document.querySelector(%q)`, button)) {
				return nil // it was done, though an answer was lost
			}
			return t.follow(button)
		},
		func() error {
			if t.is(`document.querySelector("[role=alert]")`) {
				return errors.New("the task has changed since it was seen")
			}
			return nil
		},
	)
}

// shows waits until a part of the page has a text.
func (t *tab) shows(selector, text string) error {
	return t.untilHere(fmt.Sprintf("%s shows %q", selector, text), fmt.Sprintf(`document.querySelector(%q).innerText.includes(%q)`, selector, text))
}

// lacks waits until a part of the page has not a text.
func (t *tab) lacks(selector, text string) error {
	return t.untilHere(fmt.Sprintf("%s shows %q no more", selector, text), fmt.Sprintf(`!document.querySelector(%q).innerText.includes(%q)`, selector, text))
}

// untilHere waits as until does, and without scripts opens the page anew meanwhile.
func (t *tab) untilHere(what, script string) error {
	if t.scripts {
		return t.until(what, script)
	}
	return soon(func() error {
		if t.is(script) {
			return nil
		}
		return errors.Join(t.open(t.where()), errors.New(t.where()+": not so: "+what))
	})
}
