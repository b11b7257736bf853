package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/progress"
)

const (
	// searchPage is the number of events that are read at once for a page, and searchEvents bounds those of a page.
	searchPage   = 200
	searchEvents = 5000
)

// WorkFailures returns a page of the buckets of a work's last run that had failed items, the one that ended last first,
// as the journal tells them: at most limit, 1 to progress.MaxPage, 0 standing for that. The cursor of a page asks for
// the one after it, "" for the first. A page looks at 5,000 events at most, and may be empty and have a cursor. The
// totals count the whole run.
//
// It returns task.ErrNotFound as Work does, store.ErrTrimmed where the events are no longer held, a *task.LimitError
// for a limit and a *store.InvalidError for a cursor that are wrong: one of an earlier run is.
func (o Operations) WorkFailures(
	ctx context.Context, id events.TaskID, cursor string, limit int,
) (page progress.FailurePage, err error) {
	if limit < 0 || limit > progress.MaxPage {
		return page, &task.LimitError{Field: "limit", Limit: progress.MaxPage, Got: int64(limit)}
	}
	w, err := o.Work(ctx, id)
	if err != nil {
		return page, err
	}
	page = progress.FailurePage{
		Task:        id,
		Run:         w.Run,
		FailedItems: w.Items.Failed,
		Buckets:     []progress.Failures{},
	}
	for i := range w.Partitions {
		page.FailedBuckets += w.Partitions[i].Buckets.Failed
	}
	s, err := searchIn(&w, cursor)
	if err != nil || page.FailedItems == 0 {
		return page, err
	}
	err = s.read(ctx, o.c.Ledger(), id, cmp.Or(limit, progress.MaxPage), &page)
	return page, err
}

// search is where a search for failures has come to.
type search struct {
	progress.Walk
	run     string // names the run
	history string // cursor of the page of the history that is read next
}

// searchIn returns the search that a cursor stands for, in a work as it is now.
func searchIn(w *progress.Work, cursor string) (s search, err error) {
	s.run = fmt.Sprintf("%d.%d", w.Run, w.PlannedAt)
	s.Version = w.Version.Ref
	for i := range w.Partitions {
		p := &w.Partitions[i]
		s.Partitions = append(s.Partitions, p.ID)
		if p.StartedAt != 0 {
			s.Current = i + 1
		}
	}
	if cursor == "" {
		return s, nil
	}
	rest, of := strings.CutPrefix(cursor, s.run+".")
	parts := strings.SplitN(rest, ".", 3)
	if !of || len(parts) != 3 {
		return s, &store.InvalidError{Field: "cursor", Problem: "it is none of the errors of this run"}
	}
	version, err := strconv.ParseUint(parts[0], 10, 64)
	current, wrong := strconv.Atoi(parts[1])
	if err := cmp.Or(err, wrong); err != nil || current < 0 || version > uint64(s.Version) {
		return s, &store.InvalidError{Field: "cursor", Problem: "it is none of the errors of this run"}
	}
	s.Version, s.Current, s.history = events.Ref(version), current, parts[2]
	return s, nil
}

// cursor returns what searchIn reads.
func (s *search) cursor() string {
	return fmt.Sprintf("%s.%d.%d.%s", s.run, uint64(s.Version), s.Current, s.history)
}

// read fills a page.
func (s *search) read(
	ctx context.Context, l *ledger.Ledger, id events.TaskID, limit int, page *progress.FailurePage,
) error {
	for looked := 0; looked < searchEvents; {
		part, err := l.HistoryPage(ctx, id, ledger.HistoryOptions{Newest: true, Limit: searchPage, Cursor: s.history})
		switch {
		case errors.Is(err, store.ErrTrimmed) && len(page.Buckets) > 0: // the next page tells it
			page.Cursor = s.cursor()
			return nil
		case err != nil:
			return err
		}
		looked += len(part.Events)
		for i := range part.Events {
			ev := &part.Events[i].Event
			if f, is := s.Take(ev); is {
				page.Buckets = append(page.Buckets, f)
			}
			if s.Over {
				return nil
			}
			s.Version = min(s.Version, ev.Position.Ref-1)
			if len(page.Buckets) == limit {
				page.Cursor = s.cursor()
				return nil
			}
		}
		if s.history = part.Next; s.history == "" {
			return nil
		}
	}
	page.Cursor = s.cursor()
	return nil
}
