package works_test

import (
	"taskledger/events"
)

// hold holds an entry to the promises of works, by the fold of the harnesses. While a node is present that cannot read
// the events of works, the end of an attempt returns no bucket.
func (w *world) hold(e *events.Entry) {
	w.t.Helper()
	if w.members != nil {
		w.unread = true
	}
	if w.unread {
		return
	}
	for i := range e.Events {
		if e.Events[i].Kind().Record() != events.OfTask {
			continue
		}
		if problem, _ := w.promises.Apply(&e.Events[i]); problem != "" {
			w.t.Errorf("entry %d, %s of %s: %s", e.Number, e.Events[i].Kind(), e.Events[i].Task, problem)
		}
	}
	for _, problem := range w.promises.EndEntry() {
		w.t.Errorf("entry %d, work %s: %s", e.Number, problem.Task, problem.Text)
	}
}
