package work

import (
	"context"
	"iter"
	"slices"
	"time"

	"taskledger/work/feed"
)

// Change is a change of a stream. Its source makes it.
type Change[C any] struct {
	// Key names what has changed: 1 to MaxKeyBytes bytes. Changes of one key are processed one after the other, in the
	// order in which they come.
	Key string
	// Token tells its place in the source: Changes goes on behind it when it is given the token. It has 1 to MaxTokenBytes
	// bytes, and none in a pushed stream.
	Token string
	Value C
	// Position tells that there is no change: the stream may go on behind Token from here on. So a source answers the
	// token "" if it does not know what was before.
	Position bool
}

// Stream is a partition whose items are changes that a source has in an order of its own. P is the type of the
// parameters of the work, C that of the value of a change, which has to travel as JSON. One worker processes it, and
// its functions may be called concurrently unless something else is said. A stream has either Changes, which fetches
// what has changed behind a token, or Source and Convert, to which messages are pushed.
type Stream[P, C any] struct {
	// ID names the stream in reports, as that of a Partition does.
	ID string
	// Mode says what is done with the changes. The zero value is Full. A simulation leaves the token where it was, and a
	// full stream behind it in the same run begins where the simulation began, and ends where it ended if tokens are
	// precise.
	Mode Mode
	// Imprecise tells that changes may have the same token, as those of one second: the token is recorded once all that
	// Changes yielded was processed.
	Imprecise bool
	// MoveToken lets a simulation or a dry run move the token as a full stream does.
	MoveToken bool
	// Batch is the number of changes after which a run ends, 0 = it ends with its source. Those that earlier attempts of
	// the run have recorded count. Imprecise has none.
	Batch int64
	// Idle is the time without a message after which the run of a pushed stream ends, 0 = it goes on. It counts while
	// every message is acknowledged that has come, and while the source knows that no other one waits.
	Idle time.Duration
	// Threads is the number of changes that are processed at the same time, 1 to MaxThreads. 0 stands for 1.
	Threads int64
	// Rules say what errors of changes do, at most MaxRules. Without any the first error stops the stream.
	Rules []Rule
	// Thresholds limit how often Permit permits something. Rules with RetryLater or Park exclude them.
	Thresholds []Threshold

	// Changes returns what has changed behind a token, in the order in which it changed; "" stands for no token yet. It
	// heeds its context as Partition.Items does. A pair with an error, a key and a token is a change that could not be
	// read: Rules decide about it. An error without a key and a token fails the attempt.
	Changes func(ctx context.Context, params P, token string) iter.Seq2[Change[C], error]

	// Source opens the source of a pushed stream for an attempt, which closes it.
	Source func(ctx context.Context, params P) (feed.Source, error)
	// Convert returns the changes of a message, MaxMessageChanges at most; without any the message is acknowledged. A
	// message that it refuses, by an error or a panic, is parked unless Rules decide otherwise, under the key of the first
	// change that it returns nevertheless. One goroutine of the stream at a time calls it, and attempts of its holds do
	// beside that.
	Convert func(ctx context.Context, params P, m feed.Message) ([]Change[C], error)

	// Process does the work for a change, as Partition.Process does for an item; required unless the mode is DryRun. The
	// fencing token of behaviors.Attempt grows within an attempt, so that it is above those of each hold of the key that
	// has ended, unless later changes pass the hold.
	Process func(ctx context.Context, change Change[C]) error
}

// DefineStream declares a work of streams, as Define does one of partitions. All of its streams have one token, which
// outlives its runs. At most one of them moves it: others simulate what that one does.
func DefineStream[P, C any](id string, options *Options, streams ...Stream[P, C]) *Work[P, Change[C]] {
	all := make([]Partition[P, Change[C]], 0, len(streams))
	for _, s := range streams {
		s.Rules = slices.Clone(s.Rules)
		all = append(all, Partition[P, Change[C]]{
			ID:         s.ID,
			Mode:       s.Mode,
			Process:    s.Process,
			Threads:    s.Threads,
			Rules:      s.Rules,
			Thresholds: s.Thresholds,
			flow:       &flowOf[P, C]{s},
		})
	}
	return Define(id, options, all...)
}

// flowOf implements flow.
type flowOf[P, C any] struct{ Stream[P, C] }

// form implements flow.
func (s *flowOf[P, C]) form() (f Form, moves bool) {
	switch {
	case s.Source != nil:
		f = Pushed
	case s.Imprecise:
		f = Imprecise
	default:
		f = Precise
	}
	return f, s.MoveToken && s.Mode != Full
}

// sum implements flow.
func (s *flowOf[P, C]) sum(h hasher) {
	f, _ := s.form()
	h.text("stream")
	h.number(int64(f), flag(s.MoveToken), s.Batch, int64(s.Idle))
	for _, r := range s.Rules {
		h.number(flag(r.Pass))
	}
}
