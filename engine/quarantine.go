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
	p.broken[shard] = why
	p.mu.Unlock()
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
			if answers := q.answers(d.batch); answers != nil {
				d.reply(d.batch, answers, false)
			}
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

// answers returns nil for a batch with questions that wait for an owner.
func (q *quarantine) answers(b *batch) []answer {
	answers := make([]answer, len(b.commands))
	for i, c := range b.commands {
		switch c.(type) {
		case *infoCommand:
			s := ShardInfo{Owner: q.m.session.ID, Problem: "quarantined: " + q.why}
			answers[i].data = s.encode()
		case *explainCommand:
			answers[i].data = encodeExplanation(Explanation{Why: WhyQuarantined, Since: q.since, Text: fmt.Sprintf("the journal of shard %d is damaged: %s", q.shard, q.why)})
		case *getCommand:
			answers[i] = answer{code: answerUnserved, text: fmt.Sprintf("shard %d is quarantined: %s", q.shard, q.why)}
		default:
			return nil
		}
	}
	return answers
}
