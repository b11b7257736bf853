package engine

import (
	"context"
	"errors"
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/store"
)

// serveShard lets batches reach an owner over the bus and through the store while ctx lasts.
func (m *member) serveShard(ctx context.Context, of int, in *shard.Inbox) {
	m.spawn(func(context.Context) { m.readMailbox(ctx, of, in) })
	if m.bus == nil {
		return
	}
	err := m.bus.Subscribe(ctx, sender.Subject(of), "", func(msg store.Message) {
		b, err := commands.Table.DecodeBatch(msg.Data)
		if err != nil {
			m.log.WarnContext(ctx, "batch cannot be read", "shard", of, "err", err)
			return
		}
		in.Put(b, func(b *command.Batch, answers []command.Answer, recorded bool) {
			m.sender.Hint(msg.Reply, "", command.EncodeAnswerMessage(of, b, answers, recorded))
		})
	})
	if err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "shard is reached through the store only", "shard", of, "err", err)
	}
}

// readMailbox takes the batches that come through the store until ctx ends. If their stream ends before, so does
// the session: this process cannot serve the shard.
func (m *member) readMailbox(ctx context.Context, of int, in *shard.Inbox) {
	defer func() {
		if ctx.Err() == nil {
			m.end(fmt.Errorf("mailbox of shard %d %w", of, errEndedEarly))
		}
	}()
	var failing notice.Onset
	for l, err := range m.mailbox.Batches(ctx, of) {
		if failing.Begins(err) {
			m.log.WarnContext(ctx, "mailbox messages are delayed", "shard", of, "err", err)
		}
		if err != nil {
			continue
		}
		b, err := commands.Table.DecodeBatch(l.Batch)
		if err != nil || b.Sender != l.Sender || b.Lane != l.Lane {
			m.log.WarnContext(ctx, "mailbox message cannot be read", "shard", l.Shard, "sender", l.Sender, "err", err)
			continue
		}
		in.Deliver(shard.Delivery{
			Batch:  b,
			Stored: true,
			Posted: l.Revision,
			Reply: func(b *command.Batch, answers []command.Answer, recorded bool) {
				if answers == nil {
					return // a posted batch needs no acknowledgement
				}
				m.spawn(func(ctx context.Context) {
					answer := command.EncodeAnswerMessage(l.Shard, b, answers, recorded)
					if err := m.answerMailbox(ctx, in, l, answer); err != nil && ctx.Err() == nil {
						m.log.WarnContext(ctx, "answer is delayed until it is asked for again",
							"shard", l.Shard, "sender", l.Sender, "err", err)
					}
				})
			},
		})
	}
}

func (m *member) answerMailbox(ctx context.Context, in *shard.Inbox, l store.MailboxBatch, answer []byte) error {
	if o := in.Fence(); o != nil {
		return m.mailbox.AnswerAs(ctx, *o, l, answer)
	}
	return m.mailbox.Answer(ctx, l, answer)
}

// serveBus takes what comes for this node.
func (m *member) serveBus(ctx context.Context) error {
	if m.bus == nil {
		<-ctx.Done()
		return nil
	}
	err := errors.Join(
		m.servePlans(ctx),
		m.node.answers.serve(ctx, m.bus, m.session.ID),
		m.bus.Subscribe(ctx, "node."+m.session.ID+".cancel", "", func(msg store.Message) {
			if c, err := command.ReadMessage[cancelMessage](msg.Data); err == nil {
				m.exec.Cancel(int(c.Shard), c.Started, worker.CancelledBy(c.By, c.Reason))
			}
		}))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	<-ctx.Done()
	return nil
}

// cancelMessage asks a node to end an attempt.
type cancelMessage struct {
	Shard   int64
	Task    events.TaskID
	Started events.Ref // names the attempt
	By      string     // the principal that has cancelled the task
	Reason  string
}
