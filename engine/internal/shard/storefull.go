package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/store"
)

// append writes the entry, whose events go up to a kind, within a TTL. While the store is full it goes on for as
// long as the session lives, which needs no space: what runs can be completed once there is some.
func (o *Owner) append(ctx context.Context, data []byte, highest events.Kind) (int64, error) {
	refused := map[projection.SenderLane]uint64{}
	revision, err := o.tryAppend(ctx, data, highest, refused)
	for errors.Is(err, store.ErrFull) && ctx.Err() == nil {
		o.pending.full = true
		o.log.ErrorContext(ctx, "the store is full: nothing can be recorded until space is made and the alarm disarmed",
			"err", err)
		revision, err = o.tryAppend(ctx, data, highest, refused)
	}
	o.pending.full = false
	return revision, err
}

// tryAppend tells meanwhile who is known to wait in vain: the append itself says only at the end of its time that
// the store is full, which the looks at the store do within a second.
func (o *Owner) tryAppend(
	ctx context.Context,
	data []byte,
	highest events.Kind,
	refused map[projection.SenderLane]uint64,
) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.TTL)
	defer cancel()
	tried := make(chan struct{})
	var answering sync.WaitGroup
	answering.Add(1)
	late := time.AfterFunc(sender.BusTimeout/4, func() { // of the owner's state nothing changes while it waits here
		defer answering.Done()
		o.refuseUntil(tried, refused)
	})
	if err = o.cfg.Host.Readable(ctx, highest); err == nil {
		revision, err = o.cfg.Loader.Journal.Append(ctx, o.ownership, o.head, data)
	}
	close(tried)
	if late.Stop() {
		answering.Done()
	}
	answering.Wait()
	return revision, err
}

// giveAway hands the shard over, within a TTL. It gives up once the store is known to be full: the owner keeps the
// shard, and answers what can be answered without room.
func (o *Owner) giveAway(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.TTL)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel()
	looking.Go(func() {
		ticker := time.NewTicker(sender.BusTimeout / 4)
		defer ticker.Stop()
		for !o.cfg.Admission.Usage().Full {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		cancel()
	})
	return o.cfg.Owners.HandOver(ctx, o.ownership, target)
}

// refuseUntil answers new submits and questions while the store is full, until done is closed, before their senders
// try other ways: of a batch that was sent twice a refusal counts only when it can be recorded.
func (o *Owner) refuseUntil(done <-chan struct{}, refused map[projection.SenderLane]uint64) {
	ticker := time.NewTicker(sender.BusTimeout / 4)
	defer ticker.Stop()
	for {
		if o.pending.full || o.cfg.Admission.Usage().Full {
			o.refuseGathered(refused)
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// refuseGathered refuses, while the store is full and no turn ends, what users and operators have asked since it
// began. What it refused before it refuses again: the sender has not heard it. A batch in the entry has to wait, as
// has a barrier: the sender learns that, once a copy, so that it refuses itself what would wait behind it.
func (o *Owner) refuseGathered(refused map[projection.SenderLane]uint64) {
	if !o.cfg.Host.MayStart() {
		return // the session may be over: another owner may decide them
	}
	in := o.inbox.Take(&Mail{})
	var rest []Delivery
	var refusals []pendingReply
	refusal := command.Overload("%s", cmp.Or(o.cfg.Admission.Refusal(), command.StoreFull))
	for _, d := range in.Lanes[command.LaneSubmit] {
		lane := projection.SenderLane{Sender: d.Sender, Lane: d.Lane}
		_, done := o.decided(d.Batch)
		switch waits := done && refused[lane] != d.Number || d.Batch.Barrier() != nil; {
		case d.Stored: // whose answer needs room; its sender has learned that there is none when it posts again
			rest = append(rest, d)
			continue
		case waits && !d.warned:
			d.warned = true
			full := command.Answer{Code: command.AnswerStoreFull, Text: refusal.Text, Number: refusal.Number}
			d.Reply(d.Batch, []command.Answer{full}, false)
			fallthrough
		case waits:
			rest = append(rest, d)
			continue
		}
		refused[lane] = d.Number
		answers := slices.Repeat([]command.Answer{refusal}, len(d.Commands))
		o.remember(lane, d.Number, answers)
		refusals = append(refusals, pendingReply{d, answers})
	}
	o.replyOnceProven(refusals)
	in.Lanes[command.LaneSubmit] = rest
	in.Lanes[command.LaneQuery] = o.answerWaiting(in.Lanes[command.LaneQuery])
	for lane := range in.Lanes {
		o.inbox.putBack(uint8(lane), in.Lanes[lane])
	}
	for _, node := range in.Lost {
		o.inbox.Lose(node)
	}
}

// answerWaiting answers questions by why they have no answer, and returns the messages, whose answers need room
// themselves. The state in memory holds the entry under way, which may never be committed: only how the shard is,
// as it was before, can be told.
func (o *Owner) answerWaiting(asked []Delivery) (messages []Delivery) {
	why := fmt.Sprintf("shard %d waits for room: %s", o.ownership.Shard, command.StoreFull)
	for _, d := range asked {
		if d.Stored {
			messages = append(messages, d)
			continue
		}
		d.Reply(d.Batch, command.AnswersWithoutRoom(d.Commands, why, func(c *command.Info) command.Answer {
			if !c.Digest {
				return o.info(c)
			}
			report := command.ShardReport{Owner: o.ownership.Session.ID, Epoch: o.ownership.Revision, Problem: why}
			return command.Answer{Data: message.Encode(report)}
		}), false)
	}
	return messages
}
