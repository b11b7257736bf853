package store

import (
	"context"
	"iter"
)

// MailboxBatch is a batch of commands that a sender has posted.
type MailboxBatch struct {
	Shard    int
	Sender   string
	Lane     uint8
	Revision int64 // mod revision of its mailbox key
	Batch    []byte
}

// MailboxAnswer is the answer to a batch.
type MailboxAnswer struct {
	Shard  int
	Lane   uint8
	Answer []byte
}

// Mailbox carries batches of commands, and the answers to them, when the bus cannot. Repetition is harmless,
// because batches are numbered by their sender.
type Mailbox interface {
	// Post puts the batch under the one key of its shard, sender and lane, and replaces what is there. If the same
	// batch is there already, it is yielded again, since its answer may have been lost on another way. The number
	// after the last shard is a mailbox that every node reads; any other number that is no shard is refused with
	// ErrRefused. While the store is full, Post wraps ErrFull, without waiting for room, and ErrRefused as well if
	// nothing of the batch was sent.
	Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error
	// Batches yields the waiting batches of a shard and every later one until ctx ends. It survives lost connections.
	Batches(ctx context.Context, shard int) iter.Seq2[MailboxBatch, error]
	// Answer removes the batch and puts its answer. If the batch has been replaced, it does nothing.
	Answer(ctx context.Context, b MailboxBatch, answer []byte) error
	// AnswerAs is Answer by the owner of the shard: if o is no longer the owner, it changes nothing and wraps
	// ErrFenced.
	AnswerAs(ctx context.Context, o Ownership, b MailboxBatch, answer []byte) error
	// Answers yields the waiting answers to a sender and every later one until ctx ends. An answer that the
	// consumer has seen is removed from the store.
	Answers(ctx context.Context, sender string) iter.Seq2[MailboxAnswer, error]
}

// Sweeper removes batches and answers that nobody reads any more.
type Sweeper interface {
	// SweepMailboxes removes the batches and answers of all senders that were last written at a revision up to
	// before, page by page. It returns how many it removed, and the store's revision when it began. What is written
	// again meanwhile stays. If before is 0, nothing is removed.
	SweepMailboxes(ctx context.Context, before int64) (swept int, revision int64, err error)
	// RemoveMailboxes removes the batches of a sender and the answers to it. The sender must have ended for good,
	// and must have posted to no other mailboxes than those of the given shards; none = to any. After an error some
	// batches may be left.
	RemoveMailboxes(ctx context.Context, sender string, shards ...int) error
}
