package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/store"
)

// TaskPage is a page of a list.
type TaskPage struct {
	Tasks []view.Task `json:"tasks"`
	// Cursor asks for the next page, which may be empty and have one; "" = there is none.
	Cursor string `json:"cursor,omitempty"`
	// Missing are the shards that did not answer: what they hold is not in the page.
	Missing []Missing `json:"missing,omitempty"`
}

// Missing is a shard that did not answer.
type Missing struct {
	Shard  int    `json:"shard"`
	Detail string `json:"detail"`
}

// HistoryPage is some of the events of a task.
type HistoryPage struct {
	Events []view.Event `json:"events"`
	States []view.Task  `json:"states,omitempty"` // the task after each
	Cursor string       `json:"cursor,omitempty"` // asks for the next page; "" = there is none
}

// maxFolded is how many events are folded for the state after one of them, or before a page for the states of the page: more would take longer
// than an answer may.
const maxFolded = 100_000

func missing(all []listing.Missing) (shown []Missing) {
	for _, m := range all {
		shown = append(shown, Missing{m.Shard, problem.Of(m.Err).Error()})
	}
	return shown
}

func now() events.Millis { return events.MillisOf(time.Now()) }

// visible reports that the token may know of a task, or that it is not found.
func (c *Call) visible(t *projection.Task) error {
	if t.Kind != nil && !c.by.MayBehavior(t.Kind.Behavior) {
		return problem.New(problem.NotFound, "there is no task %s", t.ID)
	}
	return nil
}

func (c *Call) get() error {
	wait, waits, err := c.wait()
	if err != nil {
		return err
	}
	forgotten, err := c.flag("forgotten")
	if err != nil {
		return err
	}
	if at, seq := c.Param("at"), c.Param("seq"); at != "" || seq != "" {
		if waits || forgotten {
			return &store.InvalidError{Field: "wait", Problem: "it and forgotten are of the task as it is, not of at or seq"}
		}
		return c.state(at, seq)
	}
	read := c.api.reader.Get
	if forgotten {
		read = c.api.reader.GetForgotten
	}
	t, err := read(c.ctx, c.id)
	if err == nil {
		err = c.visible(&t)
	}
	if err != nil {
		return err
	}
	ended := t.Final()
	if waits && !ended {
		ended = c.await(c.api.submitter.Attach(c.id), wait, &view.Outcome{}) // this waits for the end of the run: a repeating task is never final
		if c.lapsed.Load() {
			return lapsed()
		}
		if t, err = read(c.ctx, c.id); err == nil {
			err = c.visible(&t) // it may have been deleted, and created anew
		}
		if err != nil {
			return err
		}
	}
	version := c.api.historian.Ledger().Version(&t)
	at := now()
	substatus, _ := t.Substatus(at) // which changes with time alone
	tag := strconv.Quote(version.String() + "." + substatus.String())
	c.w.Header().Set("ETag", "W/"+tag)
	if !waits && isAmong(c.r.Header.Values("If-None-Match"), tag) {
		c.begin(http.StatusNotModified)
		return nil
	}
	status := http.StatusOK
	if waits && !ended {
		status = http.StatusAccepted
		c.w.Header().Set("Retry-After", "1")
	}
	return c.JSON(status, view.OfTask(t, version, at))
}

// isAmong reports whether the values of the header If-None-Match name a tag, weak or not, or any.
func isAmong(values []string, tag string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// timeOf reads a time. Stored, the beginning of 1970 is none, so that a time has to be after it.
func timeOf(name, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return at, &store.InvalidError{Field: name, Problem: fmt.Sprintf("%.40q: want a time such as 2026-11-21T12:00:00Z", text)}
	case events.MillisOf(at) <= 0:
		return at, &store.InvalidError{Field: name, Problem: fmt.Sprintf("%.40q: want a time after 1970-01-01T00:00:00Z", text)}
	}
	return at, nil
}

// state shows a task as it was.
func (c *Call) state(at, seq string) error {
	var then time.Time
	var n uint64
	var err error
	switch {
	case at != "" && seq != "":
		return &store.InvalidError{Field: "seq", Problem: "want it or at"}
	case at != "":
		if then, err = timeOf("at", at); err != nil {
			return err
		}
	default:
		if n, err = strconv.ParseUint(seq, 10, 64); err != nil || n == 0 {
			return &store.InvalidError{Field: "seq", Problem: fmt.Sprintf("%.32q: want 1 or more", seq)}
		}
		if n > maxFolded {
			return &store.InvalidError{Field: "seq", Problem: fmt.Sprintf("%d events are to be folded, the limit is %d", n, maxFolded)}
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, answerWithin)
	defer cancel()
	if err := c.enter(); err != nil {
		return err
	}
	l := c.api.historian.Ledger()
	var t projection.Task
	when := events.MillisOf(then)
	if n > 0 {
		t, err = l.StateAfter(ctx, c.id, n)
		when = t.Changed()
	} else {
		t, err = l.StateAt(ctx, c.id, then)
	}
	if err == nil {
		err = c.visible(&t)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view.OfTask(t, l.Version(&t), when))
}

// filter makes a filter of its fields, and narrows it to what the token may know of. It reports false where nothing is left.
func (c *Call) filter(value func(field string) string) (f engine.Filter, left bool, err error) {
	names, _ := listing.Fields()
	for _, name := range names {
		text := value(name)
		if text == "" {
			continue
		}
		if err := f.Set(name, text); err != nil {
			return f, false, &store.InvalidError{Field: name, Problem: strings.TrimPrefix(err.Error(), name+": ")}
		}
	}
	if f.Node != "" && !store.IsSessionID(f.Node) {
		return f, false, &store.InvalidError{Field: "node", Problem: "want the id of a session, as nodes have it"}
	}
	f, left = narrowed(f, c.by.Prefix, c.by.Behaviors)
	return f, left && (f.Behavior == "" || c.by.MayBehavior(f.Behavior)), nil
}

// narrowed adds what a token is limited to. It reports false where no task is left.
func narrowed(f engine.Filter, prefix string, behaviors []string) (engine.Filter, bool) {
	switch {
	case f.Affinity != "" && !strings.HasPrefix(f.Affinity, prefix):
		return f, false
	case prefix == "" || strings.HasPrefix(f.AffinityPrefix, prefix):
	case strings.HasPrefix(prefix, f.AffinityPrefix):
		f.AffinityPrefix = prefix
	default:
		return f, false
	}
	if len(behaviors) == 1 && f.Behavior == "" {
		f.Behavior = behaviors[0]
	}
	return f, true
}

func (c *Call) list() error {
	limit, err := c.number("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	f, left, err := c.filter(c.Param)
	if err != nil {
		return err
	}
	answer := TaskPage{Tasks: []view.Task{}}
	if !left {
		return c.JSON(http.StatusOK, answer)
	}
	f.Limit = limit
	page, err := c.api.reader.ListPage(c.ctx, f, c.Param("cursor"))
	if err != nil {
		return err
	}
	l := c.api.historian.Ledger()
	for _, t := range page.Tasks {
		if c.visible(&t) == nil {
			answer.Tasks = append(answer.Tasks, view.OfTask(t, l.Version(&t), now()))
		}
	}
	answer.Missing = missing(page.Missing)
	if !page.Through || len(page.Missing) > 0 {
		answer.Cursor = page.Cursor
	}
	return c.JSON(http.StatusOK, answer)
}

func (c *Call) history() error {
	states, err := c.flag("states")
	if err != nil {
		return err
	}
	limit, err := c.number("limit", 100, 1, ledger.MaxHistoryPage)
	if err != nil {
		return err
	}
	order := c.Param("order")
	if order != "" && order != "oldest" && order != "newest" {
		return &store.InvalidError{Field: "order", Problem: fmt.Sprintf("%.32q: want oldest or newest", order)}
	}
	l := c.api.historian.Ledger()
	page, err := l.HistoryPage(c.ctx, c.id, ledger.HistoryOptions{Newest: order == "newest", Limit: limit, Cursor: c.Param("cursor"), States: states, Fold: maxFolded,
		Proven: len(c.by.Behaviors) > 0})
	if err != nil {
		return err
	}
	answer := HistoryPage{Events: make([]view.Event, len(page.Events)), Cursor: page.Next}
	for i, e := range page.Events {
		if e.Behavior != "" && !c.by.MayBehavior(e.Behavior) || e.Behavior == "" && len(c.by.Behaviors) > 0 {
			return problem.New(problem.NotFound, "there is no task %s", c.id)
		}
		answer.Events[i] = view.OfEvent(e)
	}
	for i := range page.States {
		t := &page.States[i]
		answer.States = append(answer.States, view.OfTask(*t, l.Version(t), page.Events[i].At))
	}
	return c.JSON(http.StatusOK, answer)
}

func (c *Call) explain() error {
	if err := c.known(c.id, ""); err != nil {
		return err
	}
	e, err := c.api.reader.Explain(c.ctx, c.id)
	if err != nil {
		return err
	}
	if c.by.Limited() && e.Why == engine.WhyPaused { // the operator and the reason concern the whole cluster
		e.Text = "its behavior is paused"
	}
	return c.JSON(http.StatusOK, e)
}

// mayKnow refuses an id that is none, and a task that the token is not for.
func (c *Call) mayKnow(id events.TaskID) error {
	if err := id.Validate(); err != nil {
		return &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	if !c.by.MayTask(id) {
		return problem.New(problem.NotFound, "there is no task %s", id)
	}
	return c.known(id, "")
}

// known refuses a task of another behavior than those of the token.
func (c *Call) known(id events.TaskID, verb operations.Verb) error {
	if len(c.by.Behaviors) == 0 {
		return nil
	}
	get := c.api.reader.Get
	if verb == operations.Retry { // of a task that is forgotten, too
		get = c.api.reader.GetForgotten
	}
	t, err := get(c.ctx, id)
	if err != nil {
		return err
	}
	return c.visible(&t)
}

// Reason says why.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

func (r *Reason) check() error {
	if err := events.CheckReason(r.Reason); err != nil {
		return &store.InvalidError{Field: "reason", Problem: err.Error()}
	}
	return nil
}

// optional reads a body that may be left out.
func (c *Call) optional(into any) error {
	if c.route.MaxBody == 0 || c.r.ContentLength == 0 {
		return nil
	}
	return c.Read(into)
}

// reason reads why, which may be left out.
func (c *Call) reason() (why Reason, err error) {
	if err = c.optional(&why); err == nil {
		err = why.check()
	}
	return why, err
}

// operate changes one task.
func operate(verb operations.Verb) func(*Call) error {
	return func(c *Call) error {
		why, err := c.reason()
		if err == nil {
			err = c.known(c.id, verb)
		}
		anew := false
		if err == nil {
			anew, err = c.api.operator.Operate(c.ctx, verb, string(c.id), why.Reason)
		}
		switch {
		case err != nil:
			return err
		case anew:
			return c.JSON(http.StatusOK, ChangedTask{ID: c.id, NewLife: true})
		}
		c.begin(http.StatusNoContent)
		return nil
	}
}
