package store

import (
	"context"
	"iter"
)

// Letter is a batch of commands that came by way of the store.
type Letter struct {
	Shard    int
	Sender   string
	Lane     uint8
	Revision int64 // mod revision of its mailbox key
	Batch    []byte
}

// LetterAnswer is the answer to a letter.
type LetterAnswer struct {
	Shard  int
	Lane   uint8
	Answer []byte
}

// Mailbox carries batches of commands, and the answers to them, when the bus cannot. Repetition is harmless: batches are numbered.
type Mailbox interface {
	// Post puts the batch under the one key of its shard, sender and lane, replacing what is there. If the same batch is there
	// already it is yielded again, since its answer may have been lost on another way. The number after the last shard is a box that
	// every node reads; for any other number that is no shard it wraps ErrRefused. While the store is full it wraps ErrFull, without
	// waiting for room, and ErrRefused as well if nothing of the batch was sent.
	Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error
	// Letters yields the waiting letters of a shard and every later one until ctx ends. It survives lost connections.
	Letters(ctx context.Context, shard int) iter.Seq2[Letter, error]
	// Answer removes the letter and puts its answer, or does nothing when the letter has been replaced.
	Answer(ctx context.Context, l Letter, answer []byte) error
	// AnswerAs is Answer by the owner of the shard: if it is the owner no longer, it changes nothing and wraps ErrFenced.
	AnswerAs(ctx context.Context, o Ownership, l Letter, answer []byte) error
	// Answers yields the waiting answers to a sender and every later one until ctx ends; what the consumer has seen is
	// removed from the store.
	Answers(ctx context.Context, sender string) iter.Seq2[LetterAnswer, error]
}

// Sweeper removes mail that nobody reads any more.
type Sweeper interface {
	// SweepMail removes the letters and answers of all senders that were last written at a revision up to before, page by
	// page, and returns how many, and the store's revision when it began. What is written again meanwhile stays; 0 removes
	// nothing.
	SweepMail(ctx context.Context, before int64) (swept int, revision int64, err error)
	// RemoveMail removes the letters of a sender and the answers to it. The sender must have ended for good, and have posted to
	// no other boxes than are named; none = to any. An error means that some mail may be left.
	RemoveMail(ctx context.Context, sender string, boxes ...int) error
}
