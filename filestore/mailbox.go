package filestore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"taskledger/store"
)

const (
	// boxBytes counts what a box takes beside what was put into it: its key, and the tables that hold it.
	boxBytes       = 256
	maxSenderBytes = 128
	inSender       = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"
)

// validSender reports whether a sender's id can name a mailbox.
func validSender(id string) bool {
	return id != "" && len(id) <= maxSenderBytes && strings.Trim(id, inSender) == ""
}

// Post is described in store.Mailbox.
func (s *Store) Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error {
	if err := s.post(ctx, box{shard, sender, lane}, batch); err != nil {
		return fmt.Errorf("post commands of %q for shard %d (lane %d): %w", sender, shard, lane, err)
	}
	return nil
}

func (s *Store) post(ctx context.Context, at box, batch []byte) error {
	if at.shard != s.cluster.Shards { // the box that every node reads
		if err := s.checkShard(at.shard); err != nil {
			return err
		}
	}
	if !validSender(at.sender) || len(batch) == 0 {
		return fmt.Errorf("%w: malformed sender or empty batch", store.ErrRefused)
	}
	if err := checkValue(batch); err != nil {
		return err
	}
	if err := s.write(ctx, s.reserve); err != nil {
		return err
	}
	s.lock()
	defer s.mu.Unlock()
	if err := s.mailFits(boxBytes+len(batch)-weight(s.batches, at), s.maxMail/4*3); err != nil {
		return err
	}
	s.set(s.batches, at, batch)
	s.tell(topic{of: ofBatches, shard: at.shard})
	return nil
}

// mailFits returns an error where the boxes grow beyond a bound. What is posted leaves some room, so that each batch
// can be answered, also by more than it has. The caller holds mu.
func (s *Store) mailFits(grow, most int) error {
	if grow > 0 && s.mail+grow > most {
		return fmt.Errorf("%w: %w: the mailboxes take %d bytes, at most %d", store.ErrRefused, store.ErrFull, s.mail, most)
	}
	return nil
}

// weight returns the bytes that a box takes; none where there is none.
func weight(boxes map[box]posted, at box) int {
	p, is := boxes[at]
	if !is {
		return 0
	}
	return boxBytes + len(p.data)
}

// set puts a value into a box. The caller holds mu.
func (s *Store) set(boxes map[box]posted, at box, data []byte) {
	s.mail += boxBytes + len(data) - weight(boxes, at)
	boxes[at] = posted{s.next(), bytes.Clone(data)}
}

// remove empties a box. The caller holds mu.
func (s *Store) remove(boxes map[box]posted, at box) {
	s.mail -= weight(boxes, at)
	delete(boxes, at)
}

// found pairs a box with what was found in it.
type found struct {
	box
	posted
}

// look returns what was put after a revision into the boxes that belong, by sender and lane from the beginning on,
// else in the order in which it came.
func look(boxes map[box]posted, after int64, belongs func(box) bool) (all []found) {
	for at, p := range boxes {
		if p.revision > after && belongs(at) {
			all = append(all, found{at, p})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		if after > 0 {
			return cmp.Compare(a.revision, b.revision)
		}
		return cmp.Or(cmp.Compare(a.sender, b.sender), cmp.Compare(a.shard, b.shard), cmp.Compare(a.lane, b.lane))
	})
	return all
}

// watch yields what is in the boxes that belong, and whatever comes, until ctx ends or yield returns false.
func (s *Store) watch(
	ctx context.Context, boxes map[box]posted, t topic, belongs func(box) bool, yield func(found) bool,
) {
	defer s.forget(t)
	for after := int64(0); ; {
		s.lock()
		all, more := look(boxes, after, belongs), s.await(t)
		after = s.revision
		s.mu.Unlock()
		for _, f := range all {
			f.data = bytes.Clone(f.data)
			if ctx.Err() != nil || !yield(f) {
				return
			}
		}
		if !pause(ctx, more, awhile) {
			return
		}
	}
}

// Batches is described in store.Mailbox.
func (s *Store) Batches(ctx context.Context, shard int) iter.Seq2[store.MailboxBatch, error] {
	return func(yield func(store.MailboxBatch, error) bool) {
		belongs := func(at box) bool { return at.shard == shard }
		s.watch(ctx, s.batches, topic{of: ofBatches, shard: shard}, belongs, func(f found) bool {
			return yield(store.MailboxBatch{
				Shard:    shard,
				Sender:   f.sender,
				Lane:     f.lane,
				Revision: f.revision,
				Batch:    f.data,
			}, nil)
		})
	}
}

// Answer is described in store.Mailbox.
func (s *Store) Answer(ctx context.Context, b store.MailboxBatch, answer []byte) error {
	return s.answer(ctx, b, answer, func() error { return nil })
}

// AnswerAs is described in store.Mailbox.
func (s *Store) AnswerAs(ctx context.Context, o store.Ownership, b store.MailboxBatch, answer []byte) error {
	if err := s.checkOwnership(o); err != nil {
		return err
	}
	return s.answer(ctx, b, answer, func() error { return s.fenced(o) })
}

func (s *Store) answer(ctx context.Context, b store.MailboxBatch, answer []byte, may func() error) error {
	wrap := func(err error) error {
		return fmt.Errorf("answer %q for shard %d (lane %d): %w", b.Sender, b.Shard, b.Lane, err)
	}
	if b.Revision <= 0 || !validSender(b.Sender) {
		return wrap(fmt.Errorf("%w: not a posted batch", store.ErrRefused))
	}
	if err := checkValue(answer); err != nil {
		return wrap(err)
	}
	if err := s.write(ctx, s.reserve); err != nil {
		return wrap(err)
	}
	s.lock()
	defer s.mu.Unlock()
	at := box{b.Shard, b.Sender, b.Lane}
	if s.batches[at].revision != b.Revision {
		if err := may(); err != nil {
			return wrap(err)
		}
		return nil // it was replaced, or answered before
	}
	if err := may(); err != nil {
		return wrap(err)
	}
	grow := boxBytes + len(answer) - weight(s.batches, at) - weight(s.answers, at)
	if err := s.mailFits(grow, s.maxMail); err != nil {
		return wrap(err)
	}
	s.remove(s.batches, at)
	s.set(s.answers, at, answer)
	s.tell(topic{of: ofAnswers, sender: b.Sender})
	return nil
}

// Answers is described in store.Mailbox.
func (s *Store) Answers(ctx context.Context, sender string) iter.Seq2[store.MailboxAnswer, error] {
	return func(yield func(store.MailboxAnswer, error) bool) {
		if !validSender(sender) {
			yield(store.MailboxAnswer{}, fmt.Errorf("answers to %q: %w: malformed sender", sender, store.ErrRefused))
			return
		}
		belongs := func(at box) bool { return at.sender == sender }
		s.watch(ctx, s.answers, topic{of: ofAnswers, sender: sender}, belongs, func(f found) bool {
			wanted := yield(store.MailboxAnswer{Shard: f.shard, Lane: f.lane, Answer: f.data}, nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.answers[f.box].revision == f.revision {
				s.remove(s.answers, f.box)
			}
			return wanted
		})
	}
}

// SweepMailboxes is described in store.Sweeper.
func (s *Store) SweepMailboxes(ctx context.Context, before int64) (swept int, revision int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, fmt.Errorf("sweep mailboxes: %w", err)
	}
	s.lock()
	defer s.mu.Unlock()
	for _, boxes := range []map[box]posted{s.batches, s.answers} {
		for at, p := range boxes {
			if p.revision <= before {
				s.remove(boxes, at)
				swept++
			}
		}
	}
	return swept, s.revision, nil
}

// RemoveMailboxes is described in store.Sweeper.
func (s *Store) RemoveMailboxes(ctx context.Context, sender string, shards ...int) error {
	err := ctx.Err()
	if !validSender(sender) {
		err = fmt.Errorf("%w: malformed sender", store.ErrRefused)
	}
	if err != nil {
		return fmt.Errorf("remove mailboxes of %q: %w", sender, err)
	}
	s.lock()
	defer s.mu.Unlock()
	for at := range s.batches {
		if at.sender == sender && (len(shards) == 0 || slices.Contains(shards, at.shard)) {
			s.remove(s.batches, at)
		}
	}
	for at := range s.answers {
		if at.sender == sender {
			s.remove(s.answers, at)
		}
	}
	return nil
}
