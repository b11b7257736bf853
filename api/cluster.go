package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection/listing"
	"taskledger/projection/settings"
	"taskledger/store"
)

// Behaviors are the tasks, counted, and the behaviors that are paused.
type Behaviors struct {
	Counts  []listing.Count  `json:"counts"`
	Paused  []settings.Pause `json:"paused"`
	Missing []Missing        `json:"missing,omitempty"` // shards whose tasks are not counted
	Partial bool             `json:"partial,omitempty"` // only the newest tasks are counted: all are too many for a token with a prefix
}

// Nodes are the members.
type Nodes struct {
	Nodes []view.Node `json:"nodes"`
}

// Shards are the journals and their owners.
type Shards struct {
	Shards []engine.ShardInfo `json:"shards"`
}

// Health says how a node is.
type Health struct {
	Status string `json:"status"` // ok, or why it is not
}

// Version is that of a node.
type Version struct {
	Version string `json:"version"`
}

func (c *Call) behaviors() error {
	var counts listing.Counts
	var partial bool
	var err error
	if c.by.Prefix == "" {
		counts, err = c.api.reader.Counts(c.ctx, "")
	} else {
		counts, partial, err = c.countListed()
	}
	if err != nil {
		return err
	}
	paused, err := c.api.observer.Settings(c.ctx)
	if err != nil {
		return err
	}
	answer := Behaviors{Counts: []listing.Count{}, Paused: []settings.Pause{}, Missing: missing(counts.Missing), Partial: partial}
	its := map[string]bool{}
	for _, n := range counts.Rows {
		if c.by.MayBehavior(n.Behavior) {
			its[n.Behavior] = true
			answer.Counts = append(answer.Counts, n)
		}
	}
	for _, p := range paused.Pauses() {
		if !c.by.MayBehavior(p.Behavior) || c.by.Prefix != "" && !its[p.Behavior] {
			continue
		}
		if c.by.Limited() { // the operator and the reason concern the whole cluster
			p.By, p.Reason = "", ""
		}
		answer.Paused = append(answer.Paused, p)
	}
	return c.JSON(http.StatusOK, answer)
}

const (
	// maxCounted is how many pages are listed to count tasks, and countWithin after which time no further one is: an answer has room for one
	// more that waits for a shard.
	maxCounted  = 200
	countWithin = 4 * time.Second
)

// countListed lists the tasks of the token's prefix to count them: owners keep no counts by prefix. It reports whether it has left some out.
func (c *Call) countListed() (counts listing.Counts, partial bool, err error) {
	if err := c.enter(); err != nil { // a page is large, though the counts are not
		return counts, false, err
	}
	defer c.leave()
	f, _ := narrowed(engine.Filter{Limit: 1000}, c.by.Prefix, c.by.Behaviors)
	at, begun := now(), time.Now()
	cursor := ""
	for range maxCounted {
		page, err := c.api.reader.ListPage(c.ctx, f, cursor)
		if err != nil {
			return counts, false, err
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			substatus, _ := t.Substatus(at)
			counts.Rows = append(counts.Rows, listing.Count{Behavior: t.Kind.Behavior, Status: t.Status, Substatus: substatus, Tasks: 1})
		}
		counts.Rows = listing.Sum(counts.Rows)
		for _, m := range page.Missing {
			if !slices.ContainsFunc(counts.Missing, func(other listing.Missing) bool { return other.Shard == m.Shard }) {
				counts.Missing = append(counts.Missing, m)
			}
		}
		if cursor = page.Cursor; page.Through || cursor == "" {
			return counts, false, nil
		}
		if time.Since(begun) > countWithin {
			break
		}
	}
	return counts, true, nil
}

// PauseRequest says why a behavior is paused.
type PauseRequest struct {
	Reason
	Force bool `json:"force,omitempty"` // also one that no node runs yet
}

// pause pauses a behavior, or lets it go on.
func pause(verb operations.Verb) func(*Call) error {
	return func(c *Call) error {
		var p PauseRequest
		if err := c.optional(&p); err != nil {
			return err
		}
		if err := p.check(); err != nil {
			return err
		}
		behavior := c.r.PathValue("behavior")
		if err := events.ValidateBehavior(behavior); err != nil {
			return &store.InvalidError{Field: "behavior", Problem: err.Error()}
		}
		if !p.Force { // a mistyped name must not be taken silently
			if err := c.knownBehavior(verb, behavior); err != nil {
				return err
			}
		}
		if _, err := c.api.operator.Operate(c.ctx, verb, behavior, p.Reason.Reason); err != nil {
			return err
		}
		c.begin(http.StatusNoContent)
		return nil
	}
}

// knownBehavior refuses a behavior that no node runs. One that is paused goes on nevertheless.
func (c *Call) knownBehavior(verb operations.Verb, behavior string) error {
	nodes, err := c.api.observer.Nodes(c.ctx)
	if err != nil || operations.Runs(nodes, behavior) {
		return err
	}
	if verb == operations.Pause {
		return problem.New(problem.UnknownBehavior, "no node runs %s; with force it is paused before it is deployed", behavior)
	}
	now, err := c.api.observer.Settings(c.ctx)
	if err != nil || slices.ContainsFunc(now.Pauses(), func(p settings.Pause) bool { return p.Behavior == behavior }) {
		return err
	}
	return problem.New(problem.UnknownBehavior, "no node runs %s, and it is not paused", behavior)
}

func (c *Call) nodes() error {
	all, err := c.api.observer.Nodes(c.ctx)
	if err != nil {
		return err
	}
	answer := Nodes{[]view.Node{}}
	for _, n := range all {
		answer.Nodes = append(answer.Nodes, view.OfNode(n))
	}
	return c.JSON(http.StatusOK, answer)
}

func (c *Call) shards() error {
	all, err := c.api.observer.Shards(c.ctx)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Shards{all})
}

func (c *Call) checkpoint() error {
	p, err := c.api.historian.Ledger().Checkpoint(c.ctx)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Checkpoint{p, p.String()})
}

// Checkpoint is the chain hashes of all journals.
type Checkpoint struct {
	ledger.Checkpoint
	Text string `json:"text"` // the same as the command verify reads it from a file
}

func (c *Call) replay() error {
	behavior := c.Param("behavior") // events tell theirs: ledger.ReplayOptions would hold all tasks in memory
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
		return &store.InvalidError{Field: "to", Problem: fmt.Sprintf("%s is before from", c.Param("to"))}
	}
	if behavior != "" {
		if err := events.ValidateBehavior(behavior); err != nil {
			return &store.InvalidError{Field: "behavior", Problem: err.Error()}
		}
	}
	var err error
	if o.After, err = ledger.ParsePositions("after", c.Param("after")); err != nil {
		return err
	}
	ctx, cancel := c.untilEnded()
	defer cancel()
	lines := &stream{call: c}
	encode := json.NewEncoder(lines)
	for e, err := range c.api.historian.Ledger().Replay(ctx, o) {
		if err != nil {
			return err
		}
		if behavior != "" && e.Behavior != behavior || c.by.Limited() && (e.Task == "" || !c.by.MayTask(e.Task) || len(c.by.Behaviors) > 0 && (e.Behavior == "" || !c.by.MayBehavior(e.Behavior))) {
			continue
		}
		if err := encode.Encode(view.OfEvent(e)); err != nil {
			return err
		}
	}
	return lines.end()
}

// export writes the history of a task or a whole shard, as the command verify checks it anywhere.
func (c *Call) export() error {
	id, shard := idOf(c.Param("task")), c.Param("shard")
	ctx, cancel := c.untilEnded()
	defer cancel()
	lines := &stream{call: c}
	switch {
	case (id == "") == (shard == ""):
		return &store.InvalidError{Field: "task", Problem: "want it or shard"}
	case id != "":
		if err := c.mayKnow(id); err != nil {
			return err
		}
		if err := c.api.historian.Ledger().ExportTask(ctx, id, lines, nil); err != nil {
			return err
		}
	default:
		if c.by.Limited() {
			return problem.New(problem.Forbidden, "a shard is of the whole cluster, and the token of some of its tasks")
		}
		n, err := c.number("shard", 0, 0, math.MaxUint16)
		if err != nil {
			return err
		}
		if err := c.api.historian.Ledger().ExportShard(ctx, n, lines, nil); err != nil {
			return err
		}
	}
	return lines.end()
}

// figures tells what the node measures.
func (c *Call) figures() error {
	if c.api.metrics == nil {
		return problem.New(problem.NotFound, "the node measures nothing")
	}
	page := &page{call: c, header: http.Header{}, status: http.StatusOK}
	c.api.metrics.ServeHTTP(page, c.r)
	if !c.begun && page.err == nil {
		_, page.err = page.Write(nil)
	}
	return page.err
}

// page is an answer that a handler writes at once. Its bytes are of the budget for large answers, and a reader that
// takes none of them is cut off.
type page struct {
	call   *Call
	header http.Header
	status int
	err    error
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *page) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *page) Write(data []byte) (int, error) {
	done, err := p.call.made(len(data))
	if err != nil {
		p.err = err
		return 0, err
	}
	defer done()
	if !p.call.begun {
		maps.Copy(p.call.w.Header(), p.header)
		p.call.begin(p.status)
	}
	p.call.send(data)
	return len(data), nil
}

func (c *Call) health() error { return c.JSON(http.StatusOK, Health{"ok"}) }

func (c *Call) version() error { return c.JSON(http.StatusOK, Version{c.api.version}) }

func (c *Call) ready() error {
	if why := c.api.ready(); why != "" {
		// The reason may hold addresses of the store, as errors of it do.
		if by := c.api.tokens.Find(Secret(c.r)); by == nil || by.Limited() || !by.Role.Allows(token.Viewer) {
			why = "not ready"
		}
		return c.JSON(http.StatusServiceUnavailable, Health{why})
	}
	return c.JSON(http.StatusOK, Health{"ok"})
}

func (c *Call) openAPI() error {
	c.w.Header().Set("Content-Type", c.route.Type)
	c.begin(http.StatusOK)
	_, _ = c.w.Write(c.api.doc) // it fails when the client has gone
	return nil
}
