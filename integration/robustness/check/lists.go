package check

import (
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkLists holds that a list tells no task twice, none that there never was, and all that were there when it began and have stayed.
func (c *checker) checkLists() {
	for i := range c.run.Operations {
		if o := &c.run.Operations[i]; o.Verb == history.List && o.Answer == history.OK {
			c.checkList(o)
		}
	}
}

func (c *checker) checkList(o *history.Operation) {
	told, stale := map[history.Life]bool{}, o.Call-c.run.Info.TTLMs*int64(time.Millisecond) // an owner may not know for so long that it is none
	for _, l := range o.Listed {
		t := c.task(l.Task)
		switch _, lived := t.lives(o.Behavior)[l.Created]; {
		case told[l]:
			c.accuse(listed, t, l.Created.Entry(), "the list of client %d tells it twice", o.Client)
		case t.known() && !lived:
			c.accuse(listed, t, l.Created.Entry(), "the list of client %d, of behavior %q, tells a life that it never had", o.Client, o.Behavior)
		}
		told[l] = true
	}
	for _, t := range c.sorted() {
		for life, since := range t.lives(o.Behavior) {
			if t.known() && since != 0 && since <= stale && !told[history.Life{Task: t.id, Created: life}] {
				c.accuse(listed, t, life.Entry(), "the list of client %d, of behavior %q, has left it out", o.Client, o.Behavior)
			}
		}
	}
}

// lives returns the lives of the task with a behavior, "" for any, and since when the one that it has at the end lasts; 0 = not known, or over.
func (t *task) lives(behavior string) map[events.Ref]int64 {
	all := map[events.Ref]int64{}
	for i := range t.steps {
		switch ev := t.steps[i].ev; {
		case ev == nil || ev.Kind() == events.KindDeleted:
			for life := range all {
				all[life] = 0
			}
		case ev.Kind() == events.KindCreated && (behavior == "" || behavior == t.steps[i].state.behavior):
			all[ev.Position.Ref] = t.committed(i)
		}
	}
	return all
}
