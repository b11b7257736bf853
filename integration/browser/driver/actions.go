package main

import (
	"context"
	"errors"
	"fmt"
)

// way says how somebody uses a page.
type way struct {
	name          string // of the data that this one changes
	what          string
	scripts, keys bool
}

var ways = []way{
	{"scripts", "with scripts", true, false},
	{"hand", "without scripts", false, false},
	{"keys", "by keys", true, true},
}

// actions changes tasks, behaviors, schedules and collections by the buttons of pages.
func (s *stage) actions(ctx context.Context, n *node, w way) error {
	return s.loggedIn(n, w.scripts, func(t *tab) error {
		t.keys = w.keys
		return all(
			func() error { return changeOne(ctx, n, t, w) },
			func() error { return changeSelected(t, w) },
			func() error { return changeMatching(t, w) },
			func() error { return submitOne(t, w) },
			func() error { return seeStates(t, w) },
			func() error { return pauseBehavior(t, w) },
			func() error { return steerChosen(t, w, "/ui/schedules", "nightly-report") },
			func() error { return steerOne(t, w, "nightly-report") },
			func() error { return steerChosen(t, w, "/ui/collections", "shop_orders") },
		)
	}, "412 (Precondition Failed)", "400 (Bad Request)")
}

// all does one thing after the other until one fails.
func all(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// changeOne suspends a task, and then sends the form of a page that is older than its last change.
func changeOne(ctx context.Context, n *node, t *tab, w way) error {
	id := "change." + w.name + "/0"
	return all(
		func() error { return t.open("/ui/tasks/" + pathOf(id)) },
		func() error { return t.fill(`form.change input[name=reason]`, "seen in a browser") },
		func() error { return t.follow(`form.change button[value=suspend]`) },
		func() error {
			return t.until("the page shows that the task was suspended", `document.querySelector("#live").innerText.includes("seen in a browser")`)
		},
		func() error { // the page does not see what comes now
			return t.eval(`document.querySelector("[data-refresh]") && document.querySelector("[data-refresh]").click(); true`, nil)
		},
		func() error { return n.verb(ctx, id, "resume", nil) },
		func() error { return t.follow(`form.change button[value=resume]`) },
		func() error {
			if !t.is(`document.querySelector("[role=alert]")`) {
				return errors.New("it is not told that the task has changed since it was seen")
			}
			return nil
		},
	)
}

// changeSelected suspends two tasks that are selected.
func changeSelected(t *tab, w way) error {
	return all(
		func() error { return t.open("/ui/tasks?affinity=change." + w.name) },
		func() error {
			if w.scripts {
				return t.click(`button[data-all=true]`)
			}
			return errors.Join(t.click("tbody tr:nth-child(1) input"), t.click("tbody tr:nth-child(2) input"), t.click("tbody tr:nth-child(3) input"))
		},
		func() error { return t.follow(`fieldset.change button[value=suspend]`) },
		func() error {
			if !t.is(`document.querySelector("main").innerText.includes("3 of 3 done")`) {
				return fmt.Errorf("%s: not three of three were changed", t.where())
			}
			return nil
		},
		func() error { return t.follow("main .button") },
		func() error {
			return t.until("the list shows that they are suspended", `document.querySelector("#live").innerText.match(/suspended/g).length >= 3`)
		},
	)
}

// changeMatching resumes all tasks that match a filter, which runs in the node, and is looked at.
func changeMatching(t *tab, w way) error {
	return all(
		func() error { return t.open("/ui/tasks?affinity=change." + w.name) },
		func() error { return t.click("details.card > summary") },
		func() error { return t.fill("#all-operation", "Resume") },
		func() error { return t.follow("details.card form button") },
		func() error {
			if !t.is(`document.querySelector("main").innerText.includes("3 tasks match")`) {
				return fmt.Errorf("%s: not three tasks match", t.where())
			}
			return nil
		},
		func() error { return t.follow("form[action='/ui/jobs'] button") },
		func() error {
			for range 100 {
				if t.is(`document.querySelector("#live").innerText.includes("It is done")`) {
					return nil
				}
				if !w.scripts {
					if err := t.open(t.where()); err != nil {
						return err
					}
				}
			}
			return t.until("the change is done", `document.querySelector("#live").innerText.includes("It is done")`)
		},
	)
}

// submitOne submits a task with parameters that cannot be, which the form keeps, and mends them.
func submitOne(t *tab, w way) error {
	return all(
		func() error { return t.open("/ui/submit") },
		func() error { return t.fill("#s-behavior", "sleep") },
		func() error { return t.fill("#s-id", "submitted/"+w.name) },
		func() error {
			return t.eval(`document.querySelector("#s-params").value = '{"duration":"1ms"'; true`, nil)
		},
		func() error { return t.follow("form.submit button.main") },
		func() error {
			if !t.is(`document.querySelector("#s-params").value.includes('"1ms"') && document.querySelector("#s-params").ariaInvalid === "true"`) {
				return errors.New("parameters that cannot be are not kept, or not marked")
			}
			return nil
		},
		func() error {
			return t.eval(`document.querySelector("#s-params").value = '{"duration":"1ms"}'; true`, nil)
		},
		func() error { return t.follow("form.submit button.main") },
		func() error {
			if at := t.where(); at != "/ui/tasks/submitted~"+w.name {
				return fmt.Errorf("the submit leads to %s", at)
			}
			return nil
		},
	)
}

// seeStates looks at a task as it was after an event.
func seeStates(t *tab, w way) error {
	const second = `document.querySelector("#state").innerText.includes("After event 2")`
	return all(
		func() error { return t.open("/ui/tasks/upload~0/state?seq=3") },
		func() error {
			if !w.scripts {
				return all(func() error { return t.eval(`document.querySelector("#seq").value = "2"; true`, nil) },
					func() error { return t.follow("#state form button") })
			}
			return t.eval(`const slide = document.querySelector("#slide"); slide.value = 2; slide.dispatchEvent(new Event("input", { bubbles: true })); true`, nil)
		},
		func() error { return t.until("the state after the second event is shown", second) },
	)
}
