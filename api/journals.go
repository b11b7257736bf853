package api

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/events"
	"taskledger/ledger"
)

// journals serves the routes that stream events.
type journals struct {
	reader    operations.Reader
	historian operations.Historian
}

func (s journals) replay(c *Call) error {
	behavior := c.Param("behavior") // of each event: ledger.ReplayOptions would hold all tasks in memory
	var o ledger.ReplayOptions
	for name, into := range map[string]*time.Time{"from": &o.From, "to": &o.To} {
		text := c.Param(name)
		if text == "" {
			continue
		}
		var err error
		if *into, err = timeOf(name, text); err != nil {
			return err
		}
	}
	if !o.From.IsZero() && !o.To.IsZero() && o.To.Before(o.From) {
		return invalid("to", "%s is before from", c.Param("to"))
	}
	if behavior != "" {
		if err := checkBehavior(behavior); err != nil {
			return err
		}
	}
	var err error
	if o.After, err = ledger.ParsePositions("after", c.Param("after")); err != nil {
		return err
	}
	if o.Kinds, err = kindsOf(c.Param("kind")); err != nil {
		return err
	}
	ctx, cancel := c.untilEnded()
	defer cancel()
	lines := &stream{call: c}
	encode := json.NewEncoder(lines)
	for e, err := range s.historian.Ledger().Replay(ctx, o) {
		if err != nil {
			return err
		}
		if behavior != "" && e.Behavior != behavior || !mayRead(c.by, &e) {
			continue
		}
		if err := encode.Encode(view.OfEvent(e)); err != nil {
			return err
		}
	}
	return lines.end()
}

// kindsOf reads names of kinds with commas between them, none from nothing.
func kindsOf(text string) (kinds []events.Kind, err error) {
	if text == "" {
		return nil, nil
	}
	known := events.Kinds()
	for name := range strings.SplitSeq(text, ",") {
		at := slices.IndexFunc(known, func(k events.Kind) bool { return k.String() == name })
		if at < 0 {
			return nil, invalid("kind", "%.32q is no kind of event", name)
		}
		kinds = append(kinds, known[at])
	}
	return kinds, nil
}

// mayRead reports whether the token may see an event.
func mayRead(by *token.Token, e *ledger.Event) bool {
	switch {
	case !by.Limited():
		return true
	case e.Task == "" || !by.MayTask(e.Task):
		return false
	default:
		return len(by.Behaviors) == 0 || e.Behavior != "" && by.MayBehavior(e.Behavior)
	}
}

// export writes the history of a task or a whole shard, as the command verify checks it anywhere.
func (s journals) export(c *Call) error {
	id, shard := idOf(c.Param("task")), c.Param("shard")
	ctx, cancel := c.untilEnded()
	defer cancel()
	lines := &stream{call: c}
	switch {
	case (id == "") == (shard == ""):
		return invalid("task", "want it or shard")
	case id != "":
		if err := s.mayExport(c, id); err != nil {
			return err
		}
		if err := s.historian.Ledger().ExportTask(ctx, id, lines, nil); err != nil {
			return err
		}
	default:
		if c.by.Limited() {
			return problem.New(problem.Forbidden, "a shard is of the whole cluster, and the token of some of its tasks")
		}
		n, err := c.Number("shard", 0, 0, math.MaxUint16)
		if err != nil {
			return err
		}
		if err := s.historian.Ledger().ExportShard(ctx, n, lines, nil); err != nil {
			return err
		}
	}
	return lines.end()
}

// mayExport refuses an invalid id, and a task that the token is not for.
func (s journals) mayExport(c *Call, id events.TaskID) error {
	if err := checkID("id", id); err != nil {
		return err
	}
	if !c.by.MayTask(id) {
		return problem.New(problem.NotFound, "there is no task %s", id)
	}
	return known(c.ctx, c, s.reader, id, "")
}
