package engine

import (
	"context"
	"fmt"

	"taskledger/events"
)

// quarantine stands for a shard of this node whose journal makes no sense. It says so to who looks at the shard or at a task of
// it, and answers nothing else: what was decided before is not known, and a later owner may be able to read it.
type quarantine struct {
	m     *member
	shard int
	why   string
	since events.Millis
	inbox *inbox
}

// quarantine lets the shard be told of as damaged until the session ends.
func (p *placement) quarantine(ctx context.Context, shard int, why string) {
	p.mu.Lock()
	known := p.broken[shard] != ""
	p.broken[shard] = why
	p.mu.Unlock()
	if known {
		return
	}
	q := &quarantine{p.m, shard, why, p.m.now(), newInbox()}
	p.m.serveShard(ctx, shard, q.inbox)
	p.m.spawn(q.run)
}

func (q *quarantine) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.inbox.wake:
		}
		in := q.inbox.take(&mail{})
		if !q.mine() {
			continue
		}
		for _, d := range in.lanes[laneQuery] {
			answers, all := q.answers(d.batch)
			q.m.reply(d, answers, all)
		}
	}
}

// mine reports whether no other node serves the shard, having read it before it was damaged.
func (q *quarantine) mine() bool {
	v := q.m.view.Load()
	owner := v.Owners[q.shard].Node
	_, alive := v.Nodes[owner]
	return owner == q.m.session.ID || !alive
}

// answers reports whether every question has its answer. The others wait for an owner: they are to be asked again, lest
// those behind them wait as well.
func (q *quarantine) answers(b *batch) (answers []answer, all bool) {
	answers, all = make([]answer, len(b.commands)), true
	for i, c := range b.commands {
		switch c.(type) {
		case *infoCommand:
			s := ShardInfo{Problem: "quarantined: " + q.why}
			if v := q.m.view.Load(); v.Owners[q.shard].Node == q.m.session.ID {
				s.Owner, s.Epoch = q.m.session.ID, v.Owners[q.shard].Revision
			}
			answers[i].data = s.encode()
		case *explainCommand:
			answers[i].data = encodeExplanation(Explanation{Why: WhyQuarantined, Since: q.since, Text: fmt.Sprintf("the journal of shard %d is damaged: %s", q.shard, q.why)})
		case *getCommand:
			answers[i] = answer{code: answerUnserved, text: fmt.Sprintf("shard %d is quarantined: %s", q.shard, q.why)}
		default:
			answers[i].code, all = answerTryAgain, false
		}
	}
	return answers, all
}
