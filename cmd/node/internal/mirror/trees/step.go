package trees

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"time"

	"taskledger/work"
	"taskledger/work/segmentation"
)

// bucketsForWorker is the least number of buckets for each worker, so that none is without one for long.
const bucketsForWorker = 4

// step says what a partition does with the entries of a tree.
type step struct {
	id    string
	mode  work.Mode
	tree  *os.Root
	wants func(entry) bool // selects the entries
	// fates selects those of the target by what becomes of them. nil: it does not matter.
	fates         []fate
	childrenFirst bool
	// unreadable selects the directories that cannot be read: each is an item that fails.
	unreadable bool
	// process carries out an entry by its path. It says why it has left it out.
	process func(ctx context.Context, at string) (skipped string, err error)
	counter string // counts what it changes; "" = nothing does
	limit   *int64 // of the counter; nil = any number
}

// Item is an entry that a partition processes.
type Item struct {
	Path string // relative to the tree, with slashes
	// Err is the error with which the item fails, as it could not be read; nil = it is processed.
	Err error
}

func isEntry(entry) bool       { return true }
func isFile(e entry) bool      { return !e.isDir() }
func isDirectory(e entry) bool { return e.isDir() }
func isNoPart(e entry) bool    { return !isPart(e) }

// partition makes a partition of a step.
func (p *Pair) partition(s step, l Limits) work.Partition[Params, Item] {
	of := work.Partition[Params, Item]{
		ID:      s.id,
		Mode:    s.mode,
		Key:     func(it Item) string { return it.Path },
		Process: s.carryOut,
		Rules: []work.Rule{{
			Code:    CodeChanged,
			React:   work.Retry,
			Times:   3,
			Backoff: 100 * time.Millisecond,
		}},
	}
	of.Items = func(ctx context.Context, params Params, b work.Bucket) iter.Seq2[Item, error] {
		return p.items(ctx, s, params, b)
	}
	if s.fates == nil { // else the count would take as long as the work
		of.Count = func(ctx context.Context, params Params) (int64, error) { return p.count(ctx, s, params) }
	}
	if s.counter != "" {
		limit := int64(math.MaxInt64)
		if s.limit != nil {
			limit = *s.limit
		}
		of.Thresholds = []work.Threshold{
			{Counter: s.counter, Limit: limit},
			{Counter: CounterUntouched, Limit: math.MaxInt64},
		}
	}
	if !s.childrenFirst {
		of.Segmentation = segmentation.Plan{
			Kind:      segmentation.Prefix,
			Alphabets: []string{"0-9a-f"},
			Depth:     depth(l.Workers),
		}
		of.Workers, of.Threads = l.Workers, l.Threads
	}
	return of
}

// depth returns the number of hexadecimal digits by which the items for so many workers are cut.
func depth(workers int64) int64 {
	digits := int64(1)
	for buckets := int64(16); buckets < bucketsForWorker*workers; buckets *= 16 {
		digits++
	}
	return digits
}

// carryOut processes an item. One that fails is counted by the counter like one that is done, unless it asks for no
// permit.
func (s step) carryOut(ctx context.Context, it Item) error {
	skipped, err, counter := "", it.Err, s.counter
	if _, part := cutPart(it.Path); err != nil || part && counter == CounterDeletes {
		counter = CounterUntouched
	}
	if err == nil {
		skipped, err = s.process(ctx, it.Path)
	}
	switch {
	case err != nil && s.counter != "":
		if denied := work.Permit(ctx, counter); denied != nil {
			return denied
		}
		return err
	case err != nil:
		return err
	case skipped != "":
		return work.Skip(skipped)
	}
	return nil
}

// items yields the items of a bucket. An entry of the target that cannot be looked up in the source stays: a directory
// of the source that cannot be read is an item that fails, and nothing below it is deleted.
func (p *Pair) items(ctx context.Context, s step, params Params, b work.Bucket) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := p.check(params); err != nil {
			yield(Item{}, err)
			return
		}
		inside := p.inside
		if s.fates == nil {
			inside = nil
		}
		for e, err := range walk(ctx, s.tree, s.childrenFirst, inside) {
			it := Item{Path: e.path}
			selected := false
			switch {
			case err != nil || !b.Contains(hash(e.path)):
			case e.unreadable != nil:
				selected, it.Err = s.unreadable, fmt.Errorf("the directory cannot be read: %w", e.unreadable)
			case s.wants(e):
				selected = s.fates == nil || p.meets(s.fates, e)
			}
			if (selected || err != nil) && !yield(it, err) {
				return
			}
		}
	}
}

// meets reports whether an entry of the target has one of some fates.
func (p *Pair) meets(fates []fate, e entry) bool {
	is, err := p.fateOf(e)
	return err == nil && slices.Contains(fates, is)
}

// count counts the items of all buckets.
func (p *Pair) count(ctx context.Context, s step, params Params) (n int64, err error) {
	for _, err := range p.items(ctx, s, params, work.Bucket{}) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// hash returns more hexadecimal digits of the hash of a path than a bucket asks for.
func hash(at string) string {
	sum := sha256.Sum256([]byte(at))
	return hex.EncodeToString(sum[:8])
}
