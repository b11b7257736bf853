package check

import (
	"slices"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkRequests holds that the requests of one key, principal and behavior meet in one task, which no others share, that the first one
// makes it and the others are told that they repeat it, and that they ask for the same.
func (c *checker) checkRequests() {
	type key struct{ by, request string }
	tasks := map[key]*task{}
	for _, t := range c.sorted() {
		var of key
		for _, o := range t.operations {
			if o.Verb != history.Submit || o.By == "" || o.Task == "" {
				continue
			}
			k := key{o.By, o.Request}
			if first := tasks[k]; first != nil && first != t {
				c.accuse(once, t, 0, "request %q of %s is for task %s as well", o.Request, o.By, first.id)
			}
			if of != (key{}) && of != k {
				c.accuse(once, t, 0, "it is for request %q of %s, and for request %q of %s", of.request, of.by, o.Request, o.By)
			}
			tasks[k], of = t, k
			if o.OtherRequest && !slices.ContainsFunc(t.operations, func(other *history.Operation) bool { return otherBody(o, other) }) {
				c.accuse(once, t, 0, "request %q was refused as another one of its key, and nobody made another one", o.Request)
			}
		}
		if of != (key{}) && t.known() {
			c.checkRepeated(t, of.request)
		}
	}
}

// otherBody reports whether an operation, which may have been done, asked for something else under the key of another.
func otherBody(o, other *history.Operation) bool {
	return other.By == o.By && other.Request == o.Request && other.Body != o.Body && (other.Answer == history.OK || other.Answer == history.Unknown)
}

func (c *checker) checkRepeated(t *task, request string) {
	lives, recorded := 0, false
	for i := range t.steps {
		if ev := t.steps[i].ev; ev != nil {
			recorded = recorded || events.RequestKey(ev.RequestID) == request
			if ev.Kind() == events.KindCreated {
				lives++
			}
		}
	}
	var first *history.Operation
	for _, o := range t.operations {
		if o.Verb != history.Submit || o.By == "" || o.Answer != history.OK {
			continue
		}
		switch {
		case o.Joined != o.Repeated:
			c.accuse(once, t, 0, "request %q was told that it joined the task: %t, and that it repeats one: %t", request, o.Joined, o.Repeated)
		case o.Repeated && !recorded:
			c.accuse(acknowledged, t, 0, "request %q was told that it repeats one, and none is in the journal", request)
		case first != nil && lives == 1 && first.Body != o.Body:
			c.accuse(once, t, 0, "request %q asked for %s, and for %s", request, first.Body, o.Body)
		}
		first = o
	}
}
