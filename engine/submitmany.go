package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"taskledger/engine/internal/sender"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// abreast bounds the requests of one SubmitMany that are planned by name, or have their parameters combined, at once.
const abreast = 16

// Result reports the outcome of one request of SubmitMany. Its Future is never nil: after an error its Wait returns
// that error.
type Result struct {
	*Future
	Err error // what Submit would have returned
}

// SubmitMany is Submit for up to 1,000 requests, and returns a result for each, in their order, when the last of
// them is known. If there are more it submits none: each has a *task.LimitError. The requests to one shard travel
// and are decided in their order, up to 192 KiB of them in one batch and one entry, and tasks of one affinity are
// in one shard. An error of one request concerns no other, unless o says so.
func (c *Client) SubmitMany(ctx context.Context, requests []task.Request, o task.ManyOptions) []Result {
	m := &many{Client: c, ctx: ctx, all: make([]one, len(requests))}
	for i := range m.all {
		m.all[i].many, m.all[i].Request = m, &requests[i]
	}
	c.ids.Submitting.Add(int64(len(requests)))
	defer c.ids.Submitting.Add(-int64(len(requests)))
	err := m.prepare(o)
	if err == nil {
		err = c.gate.pass(ctx)
	}
	for i := range m.all {
		m.all[i].err = cmp.Or(m.all[i].err, err)
	}
	m.send()
	return m.results()
}

// many are the requests of one SubmitMany.
type many struct {
	*Client
	ctx context.Context
	all []one
}

// one is a request of many, and what came of it.
type one struct {
	*task.Request
	submission
	many  *many
	err   error // nothing is sent
	reply sender.Reply
}

// prepare plans, names and checks the requests. It returns an error if none may be sent.
func (m *many) prepare(o task.ManyOptions) error {
	if n := len(m.all); n > events.MaxRequestTasks {
		return &task.LimitError{Field: "requests", Limit: events.MaxRequestTasks, Got: int64(n)}
	}
	var away errgroup.Group
	away.SetLimit(abreast)
	for i := range m.all {
		s := &m.all[i]
		plan := func() error {
			s.submission, s.err = m.plan(m.ctx, s.Request)
			return nil
		}
		if s.Behavior != nil {
			_ = plan()
		} else {
			away.Go(plan)
		}
	}
	_ = away.Wait()
	if o.RequestKey != "" {
		if err := m.share(o.RequestKey); err != nil {
			return err
		}
	}
	for i := range m.all {
		if s := &m.all[i]; s.err == nil {
			m.name(m.ctx, s.cmd, s.RequestKey)
			s.err = check(s.cmd)
		}
	}
	if o.RequestKey != "" || o.AllValid {
		return m.invalid()
	}
	return nil
}

// invalid returns why none is sent if one request is refused here; nil if none is.
func (m *many) invalid() error {
	at := slices.IndexFunc(m.all, func(s one) bool { return s.err != nil })
	if at < 0 {
		return nil
	}
	return fmt.Errorf("%w: request %d: %w", task.ErrNoneSubmitted, at, m.all[at].err)
}

// share makes the requests one, of a key.
func (m *many) share(key string) error {
	if err := m.invalid(); err != nil {
		return err
	}
	asked, about := make([]events.Request, len(m.all)), map[events.TaskID]int{}
	for i := range m.all {
		s := &m.all[i]
		asked[i] = s.cmd.Asked(s.Request)
		if s.RequestKey != "" {
			problem := fmt.Sprintf("request %d has one of its own beside that of all", i)
			return &store.InvalidError{Field: "request key", Problem: problem}
		}
		if other, twice := about[s.cmd.Task]; twice && s.cmd.Task != "" {
			problem := fmt.Sprintf("requests %d and %d of one key name task %s", other, i, s.cmd.Task)
			return &store.InvalidError{Field: "id", Problem: problem}
		}
		about[s.cmd.Task] = i
	}
	id, of, n := events.RequestsID(key, asked), events.TaskID(""), 0
	for i := range m.all {
		s := &m.all[i]
		s.cmd.RequestID = id
		if s.cmd.Task != "" {
			continue
		}
		if n == 0 {
			of = events.TaskOfRequest(m.principal(m.ctx), s.cmd.Behavior, key)
		}
		s.cmd.Task, s.err = events.TaskInRequest(of, n)
		n++
	}
	return nil
}

// send sends the remaining submissions, and returns when all of them are answered or given up.
func (m *many) send() {
	var sent []*one
	var commands []sender.Submission
	for i := range m.all {
		if s := &m.all[i]; s.err == nil {
			sent = append(sent, s)
			commands = append(commands, sender.Submission{Shard: s.shard(), Command: s.cmd})
		}
	}
	for i, reply := range m.sender.AskMany(m.ctx, commands) {
		sent[i].reply = reply
	}
}

func (s *one) shard() int { return s.cmd.Task.Shard(s.many.cfg.Shards) }

// results returns the results. Parameters of one shard are combined one after the other: they may be about one task.
func (m *many) results() []Result {
	all := make([]Result, len(m.all))
	merging := map[int][]int{}
	for i := range m.all {
		if s := &m.all[i]; s.err == nil && s.reply.Err == nil && combines(s.reply.Answer) {
			merging[s.shard()] = append(merging[s.shard()], i)
		} else {
			all[i] = s.result()
		}
	}
	var shards errgroup.Group
	shards.SetLimit(abreast)
	for _, in := range merging {
		shards.Go(func() error {
			for _, i := range in {
				all[i] = m.all[i].result()
			}
			return nil
		})
	}
	_ = shards.Wait()
	return all
}

func (s *one) result() Result {
	switch {
	case s.err == nil:
		f, err := s.many.conclude(s.many.ctx, s.submission, s.reply.Answer, s.reply.Err)
		return Result{f, err}
	case s.cmd == nil:
		return Result{failedFuture(s.ID, s.err), s.err}
	}
	return Result{failedFuture(s.cmd.Task, s.err), s.err}
}
