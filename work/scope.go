package work

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/task"
	"taskledger/work/internal/threads"
)

// Info tells a function of a partition what it is called for.
type Info struct {
	Run       int64     // number of the run, 1 for the first one of the task
	Started   time.Time // when the run began, by the clock of the owner of its record
	Mode      Mode
	Partition string // id
	Bucket    Bucket // zero for Count
	Attempt   int    // number of the attempt within the life of its task, as in task.Attempt
}

// Run returns what a function of a partition is called for, by the context that it was given. It returns false for a
// context of anything else.
func Run(ctx context.Context) (Info, bool) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		return Info{}, false
	}
	return s.info, true
}

// Permit counts the item that ctx belongs to, before something is done that a Threshold limits. The permit is durable
// when Permit returns nil: then it may be done. It belongs to the item, that is to its bucket and key, and without a
// key to its ordinal in the bucket: if the item is processed again, after a loss or by a rule, it is permitted again
// and not counted twice. So items of one bucket that have the same key count once, all together. Full and Simulate
// count apart.
//
// With the limit n, n items are permitted; for one more Permit returns a *ThresholdError, and so it does for each one
// after it, and the work ends. Any error of Permit ends the attempt, whatever Process returns, and the item is not
// counted as done, skipped or failed. It returns a *store.InvalidError for a counter without a threshold, and outside
// of Process. It may be called concurrently.
func Permit(ctx context.Context, counter string) error {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok || s.item == nil {
		return refuse("permit", "the context is not that of an item")
	}
	if err := s.item.permit(ctx, counter, ""); err != nil {
		s.item.deny(err)
		return err
	}
	return nil
}

type scopeKey struct{}

// scope is the context of a function of a partition.
type scope struct {
	context.Context
	info  Info
	item  *permits // nil outside of Process
	fence uint64   // the attempt has this fencing token at least
}

// Value implements context.Context.
func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	value := s.Context.Value(key)
	if a, is := value.(*task.Attempt); is && events.Ref(s.fence) > a.Token.Ref { // as behaviors.Attempt finds it
		raised := *a
		raised.Token.Ref = events.Ref(s.fence)
		return &raised
	}
	return value
}

// permits asks for the permits of an item.
type permits struct {
	ledger     Ledger
	ask        Ask // without the counter
	partition  string
	thresholds []Threshold

	mu     sync.Mutex
	denied error // the first error of a permit
}

func (p *permits) permit(ctx context.Context, counter, reason string) error {
	at := slices.IndexFunc(p.thresholds, func(t Threshold) bool { return t.Counter == counter })
	if at < 0 {
		return refuse("counter", "%.64q, which is no threshold of partition %s in this run", counter, p.partition)
	}
	ask := p.ask
	ask.Counter, ask.Reason = counter, reason
	granted, err := p.ledger.Permit(ctx, ask)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("permit of counter %s: %w", counter, err)
	case !granted:
		return &ThresholdError{
			Partition: p.partition,
			Counter:   counter,
			Limit:     p.thresholds[at].Limit,
		}
	}
	return nil
}

func (p *permits) deny(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.denied == nil {
		p.denied = err
	}
}

// denial returns the first error of a permit of the item, nil for none.
func (p *permits) denial() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.denied
}

// itemHash returns the number that an item has in an Ask.
func itemHash[I any](bucket int64, it *threads.Item[I]) uint64 {
	b := binary.BigEndian.AppendUint64(nil, uint64(bucket))
	if it.Key == "" {
		b = binary.BigEndian.AppendUint64(append(b, 'o'), uint64(it.Ordinal))
	} else {
		b = append(append(b, 'k'), it.Key...)
	}
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}
