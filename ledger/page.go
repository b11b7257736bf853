package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"taskledger/events"
	"taskledger/ledger/internal/earlier"
	"taskledger/ledger/pagecursor"
	"taskledger/projection"
	"taskledger/projection/taskview"
	"taskledger/store"
	"taskledger/task"
)

const (
	// MaxHistoryPage is the most events of a page.
	MaxHistoryPage = 1000
	// defaultHistoryPage is the number of events of a page for which none is asked.
	defaultHistoryPage = 100
	// maxPageBytes bounds the parameters and results of a page, which ends early then.
	maxPageBytes = 4 << 20
)

// HistoryOptions say which events of a task a page has. The zero value is the first 100 of its life.
type HistoryOptions struct {
	Newest bool   // newest first; otherwise oldest first
	Limit  int    // events in a page, at most MaxHistoryPage; 0 = 100
	Total  int    // events in all pages of HistoryPages; 0 = all
	Cursor string // Next of the page before, of the same task in the same order; "" = the first page
	// Proven has behavior and node read from the journal, whatever Cursor says of them: a caller needs it that shows
	// a task only to those who may see its behavior.
	Proven bool
	// States adds the task after each event, folded from the first event on; it excludes Newest.
	States bool
	Fold   int // most events before a page that States may fold, or the page is refused; 0 = any number
}

// HistoryPage is some of the events of a task, one after the other.
type HistoryPage struct {
	Events []Event
	States []task.Task // the task after each event, if asked for, with parameters and result; without an id after Deleted
	Next   string      // the cursor of the next page; "" = there is none
}

// HistoryPage reads a page of what History yields. The cursor of a page names a life: what follows it is of that life
// also when the task has been deleted and created again. A page has fewer events than its limit when 4 MiB of
// parameters and results are reached, and where the rest cannot be read: the next page then is the error, such as
// store.ErrTrimmed.
//
// Newest first, a page takes about as many reads as it has events, and a sixteenth of that where they stand close
// together, however long the life is. Oldest first, the same holds where events stand close together or evenly. Where
// they do not, the page is found by walking back over all that follow, since an event names the one before it alone.
// The first page of a life that no owner knows takes a search of the journal besides, and a page goes back to where an
// attempt began whose end it has, once.
//
// It returns a *task.LimitError for a limit that is too large, and a *store.InvalidError for a wrong cursor.
func (l *Ledger) HistoryPage(ctx context.Context, id events.TaskID, o HistoryOptions) (HistoryPage, error) {
	o.Total = cmp.Or(o.Limit, defaultHistoryPage)
	for p, err := range l.HistoryPages(ctx, id, o) {
		return p, err
	}
	return HistoryPage{}, nil
}

// HistoryPages yields a page and those that follow it, and finds the way once for all of them.
func (l *Ledger) HistoryPages(ctx context.Context, id events.TaskID, o HistoryOptions) iter.Seq2[HistoryPage, error] {
	return func(yield func(HistoryPage, error) bool) {
		err := l.pages(ctx, id, o, func(p HistoryPage) bool { return yield(p, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(HistoryPage{}, fmt.Errorf("history of %s: %w", id, err))
		}
	}
}

func (l *Ledger) pages(ctx context.Context, id events.TaskID, o HistoryOptions, yield func(HistoryPage) bool) error {
	switch {
	case o.Limit < 0 || o.Limit > MaxHistoryPage:
		return &task.LimitError{Field: "limit", Limit: MaxHistoryPage, Got: int64(o.Limit)}
	case o.Total < 0:
		return &store.InvalidError{Field: "total", Problem: "want 1 or more, or 0 for all"}
	case o.States && o.Newest:
		return &store.InvalidError{Field: "states", Problem: "they are told oldest first only"}
	}
	at := pagecursor.Cursor{Cluster: l.cfg.Cluster.ID, Task: id, Newest: o.Newest}
	find := func() (*life, error) { return l.life(ctx, id, 0) }
	if o.Cursor != "" {
		var err error
		if at, err = pagecursor.Parse(o.Cursor, at); err != nil {
			return err
		}
		if o.Proven {
			at.Behavior, at.Node = "", ""
		}
		if o.States && o.Fold > 0 && at.Seq > uint64(o.Fold) {
			return &store.InvalidError{
				Field:   "states",
				Problem: fmt.Sprintf("%d events before the page are to be folded, the limit is %d", at.Seq, o.Fold),
			}
		}
		find = func() (*life, error) { return l.turn(ctx, at) }
	}
	f, err := find()
	if err != nil {
		return err
	}
	at.Last = f.last()
	p := &pager{
		life:   f,
		shards: l.cfg.Cluster.Shards,
		before: f.newRecall(),
		at:     at,
		limit:  cmp.Or(o.Limit, defaultHistoryPage),
		wanted: cmp.Or(o.Total, math.MaxInt),
		yield:  yield,
	}
	if at.Behavior != "" {
		p.before.met.Keep(id, earlier.Make(at.Behavior, at.Node))
	}
	if o.Newest {
		return p.newest(ctx)
	}
	if o.States {
		p.fold = projection.NewLife()
	}
	return p.oldest(ctx)
}

// pager makes pages.
type pager struct {
	*life
	shards int // of the cluster
	before *recall
	at     pagecursor.Cursor // of the page before
	limit  int
	wanted int              // events in this page and all that follow
	fold   *projection.Life // nil: no states are asked for
	yield  func(HistoryPage) bool
	size   int // bytes of parameters and results of the page under way
}

// full reports whether a page of so many events has room for no further one.
func (p *pager) full(n int) bool { return n >= min(p.limit, p.wanted) || p.size >= maxPageBytes }

// give yields a page. more tells whether another one follows at ref.
func (p *pager) give(page HistoryPage, more bool, ref events.Ref, seq uint64) error {
	p.size = 0
	k, _ := p.before.met.Of(p.id)
	p.at.Behavior, p.at.Node = k.Texts()
	if p.at.Ref, p.at.Seq = ref, seq; more {
		page.Next = p.at.String()
	}
	if p.wanted -= len(page.Events); !p.yield(page) || p.wanted == 0 {
		return errStopped
	}
	return nil
}

// newest yields pages newest first, from the cursor's event on, or from the last one.
func (p *pager) newest(ctx context.Context) error {
	for next := cmp.Or(p.at.Ref, p.last()); next != 0; {
		page, first, err := p.pageBack(ctx, next)
		if err != nil {
			return err
		}
		if next = first.Prev; next == 0 {
			return p.give(page, false, 0, 0)
		}
		if err := p.give(page, true, next, first.Seq-1); err != nil {
			return err
		}
	}
	return nil
}

// pageBack reads a page from an event back, newest first, and returns the last event of the page, which is the
// earliest, too. What is known after that event is what the page before was told to come after, or the page says it
// itself, or it walks on: for a few events which may tell it, and then as far as it takes.
func (p *pager) pageBack(ctx context.Context, from events.Ref) (page HistoryPage, first *events.Event, err error) {
	var read []*events.Event // newest first
	look := &lookup{recall: p.before, shard: p.shard, task: p.id, Search: earlier.From(p.before.met.Of(p.id))}
	left := nearEntries
	for ev, err := range p.reader.back(ctx, p.shard, p.id, from) {
		if err != nil && (len(read) == 0 || ctx.Err() != nil) {
			return page, nil, err
		}
		if err != nil {
			break // the next page meets it
		}
		if p.full(len(read)) {
			look.Take(ev)
			left--
		} else {
			read = append(read, ev)
			look.Pass(ev)
			p.size += payloadBytes(ev.Body)
		}
		if p.full(len(read)) && (left == 0 || look.Next == 0 || look.Attempt && p.untold == nil) {
			break
		}
	}
	first = read[len(read)-1]
	if err := look.far(ctx, first.Position.Ref); err != nil {
		return page, nil, err
	}
	p.before.met.Keep(p.id, look.Known)
	page.Events = make([]Event, len(read))
	for i, ev := range slices.Backward(read) {
		page.Events[i] = tell(&look.Known, ev)
	}
	return page, first, nil
}

// oldest yields pages oldest first, after the cursor's event, or from the first one.
func (p *pager) oldest(ctx context.Context) error {
	from := after{p.at.Ref, p.at.Seq}
	begin, wanted := from, uint64(p.wanted)
	if p.fold != nil {
		begin, wanted = after{}, from.seq+wanted
	}
	var page HistoryPage
	last := from
	for ev, err := range p.life.oldest(ctx, begin, wanted, p.fold != nil) {
		if err == nil && p.fold != nil {
			err = addTo(p.fold, ev)
		}
		if err != nil && len(page.Events) > 0 {
			err = cmp.Or(p.give(page, true, last.ref, last.seq), err)
		}
		if err != nil {
			return err
		}
		told, err := p.before.tell(ctx, p.shard, ev)
		if err != nil {
			return err
		}
		if ev.Position.Ref <= from.ref {
			continue
		}
		last, page.Events = after{ev.Position.Ref, ev.Seq}, append(page.Events, told)
		if p.fold != nil {
			t := p.fold.Task()
			page.States = append(page.States, taskview.Of(&t, p.shards, ev.At))
			p.size += len(t.Params) + len(t.Result)
		}
		if p.size += payloadBytes(ev.Body); !p.full(len(page.Events)) {
			continue
		}
		if err := p.give(page, last.ref < p.last(), last.ref, last.seq); err != nil {
			return err
		}
		page = HistoryPage{}
	}
	if len(page.Events) == 0 {
		return nil
	}
	return p.give(page, false, 0, 0)
}

// payloadBytes is the size of the parameters or the result that an event carries.
func payloadBytes(b events.Body) int {
	switch b := b.(type) {
	case *events.Created:
		return len(b.Params)
	case *events.Merged:
		return len(b.Params)
	case *events.Succeeded:
		return len(b.Result)
	}
	return 0
}
