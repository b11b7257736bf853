package paging_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/bulk"
	"taskledger/engine/internal/command"
	"taskledger/engine/internal/paging"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

// owners are the owners of two shards, each with so many tasks. None answers while they are silent.
type owners struct {
	tasks  int
	silent bool
	asked  int // of the first shard
	listed func(asked int)
}

func (o *owners) shards() paging.Shards {
	return paging.Shards{
		Count:   2,
		Cluster: "c",
		Now:     time.Now,
		Ready:   func(context.Context) error { return nil },
		Ask:     o.ask,
	}
}

func (o *owners) ask(ctx context.Context, shard int, q command.Command) (command.Answer, error) {
	if o.silent {
		<-ctx.Done()
		return command.Answer{}, context.Cause(ctx)
	}
	if shard == 0 {
		if o.asked++; o.listed != nil {
			o.listed(o.asked)
		}
	}
	list := q.(*command.List)
	found := listing.Found{Next: list.From(), Head: uint64(o.tasks)}
	at := o.tasks
	if list.Before != 0 {
		at = int(list.Before) - 1
	}
	for ; at > 0 && len(found.Tasks) < int(list.Limit); at-- {
		t := &projection.Task{ID: events.TaskID("t"), Kind: &projection.Kind{Behavior: "work"}, Created: events.Ref(at), CreatedAt: events.Millis(at), Seq: 1}
		found.Tasks, found.Next = append(found.Tasks, t), listing.Place{Before: t.Created, Until: t.CreatedAt}
	}
	found.Done, found.Looked = at == 0, len(found.Tasks)
	return command.Answer{Data: command.EncodePage(found, nil, "c")}, nil
}

// No page of an ended context asks for another one: it has what was found, where the list goes on, and the cause.
func TestList_UnderAnEndedContextEndsWithItsCause(t *testing.T) {
	why := errors.New("why")
	for name, o := range map[string]*owners{"answering": {tasks: 50}, "silent": {silent: true}} {
		ctx, end := context.WithCancelCause(t.Context())
		end(why)
		page, err := o.shards().List(ctx, task.Filter{}, "")
		if !errors.Is(err, why) || page.Cursor == "" || page.Through && len(page.Missing) == 0 {
			t.Errorf("%s: %+v, %v; want a cursor and the cause", name, page, err)
		}
	}
}

// A list in pages ends with what was found and the cause, wherever its context ends.
func TestList_InPagesEndsWhereverItsContextEnds(t *testing.T) {
	const tasks, limit = 300, 20
	for until := 1; until < 20; until++ {
		ctx, end := context.WithCancelCause(t.Context())
		why := errors.New("why")
		o := &owners{tasks: tasks, listed: func(asked int) {
			if asked >= until {
				end(why)
			}
		}}
		pages, listed, failed := 0, 0, error(nil)
		for _, err := range paging.All(task.Filter{Limit: 2 * tasks}, func(f task.Filter, cursor string) (task.Page, error) {
			if pages++; pages > 100 {
				t.Fatal("the list does not end")
			}
			f.Limit = min(f.Limit, limit)
			return o.shards().List(ctx, f, cursor)
		}) {
			if failed = err; err == nil {
				listed++
			}
		}
		if !errors.Is(failed, why) || listed == 0 || listed == 2*tasks {
			t.Errorf("after %d questions: %d tasks of %d pages, %v", until, listed, pages, failed)
		}
	}
}

// What is left of a context becomes half with each page while nobody answers: it ends nevertheless, and no page is
// made without time.
func TestList_InPagesEndsWithItsDeadlineWhileNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		o, cursor := &owners{silent: true}, ""
		for pages := 0; ; pages++ {
			page, err := o.shards().List(ctx, task.Filter{}, cursor)
			if cursor = page.Cursor; errors.Is(err, context.DeadlineExceeded) && cursor != "" {
				return
			}
			if err != nil || pages > 1000 {
				t.Fatalf("page %d: %+v, %v", pages, page, err)
			}
		}
	})
}

// The cluster of a client with a store is known while nobody answers, and its cursor is taken afterwards.
func TestList_OfShardsThatAreAllSilentGoesOnWhenTheyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &owners{tasks: 3, silent: true}
		page, err := o.shards().List(t.Context(), task.Filter{}, "")
		if err != nil || len(page.Missing) != 2 || page.Cluster != "c" {
			t.Fatalf("%+v, %v", page, err)
		}
		if page, err = o.shards().List(t.Context(), task.Filter{}, page.Cursor); err != nil {
			t.Fatal(err)
		}
		o.silent = false
		if page, err = o.shards().List(t.Context(), task.Filter{}, page.Cursor); err != nil || len(page.Tasks) != 6 || page.Cursor != "" {
			t.Errorf("%+v, %v; want six tasks", page, err)
		}
	})
}

// A page tells a shard that was heard, though it has no entries, from one that was not.
func TestList_TellsTheNextEntryOfEachShardThatItHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for next, o := range map[uint64]*owners{0: {silent: true}, 1: {}, 4: {tasks: 3}} {
			page, err := o.shards().List(t.Context(), task.Filter{}, "")
			if want := []uint64{next, next}; err != nil || !slices.Equal(page.Nexts, want) {
				t.Errorf("%v, %v; want %v", page.Nexts, err, want)
			}
		}
	})
}

// operator is a bulk.Client that counts what it changes.
type operator struct {
	*owners
	changed chan struct{}
}

func (o operator) ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error) {
	return o.shards().List(ctx, f, cursor)
}

func (o operator) Change(context.Context, *task.Task, task.Operation, string) error {
	o.changed <- struct{}{}
	return nil
}

func (o operator) GetLinear(context.Context, events.TaskID) (t task.Task, err error) {
	return t, task.ErrNotFound
}

// A bulk operation waits while nobody answers for any shard.
func TestList_LetsABulkOperationWaitForShardsThatAreAllSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := operator{&owners{tasks: 3, silent: true}, make(chan struct{}, 10)}
		reports := 0
		for r, err := range bulk.Each(t.Context(), o, task.Filter{}, task.Delete, bulk.Options{}) {
			if reports++; err != nil {
				t.Fatalf("report %d: %v", reports, err)
			}
			if reports == 3 {
				o.silent = false
			}
			if (r.Cursor == "") != (r.Changed == 6) {
				t.Errorf("report %d: %+v", reports, r)
			}
		}
		if len(o.changed) != 6 {
			t.Errorf("%d tasks are changed, want 6", len(o.changed))
		}
	})
}

// A filter that would select all is refused before anybody is asked.
func TestList_RefusesATimeThatWouldBeNoBound(t *testing.T) {
	o := &owners{tasks: 3}
	_, err := o.shards().List(t.Context(), task.Filter{CreatedTo: time.Unix(0, 0)}, "")
	if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "created-to" || o.asked > 0 {
		t.Errorf("%v, and owners were asked %d times", err, o.asked)
	}
}
