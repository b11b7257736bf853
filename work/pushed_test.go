package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/work"
	"taskledger/work/feed"
	"taskledger/work/feed/memfeed"
)

// queue is a feed of messages, each of which lists the keys that have changed, and what was applied of them: the place
// of the message, by key.
type queue struct {
	*memfeed.Feed
	source  feed.Source // in place of one of the feed, unless it is nil
	process func(ctx context.Context, key string, place int) error

	mu      sync.Mutex
	applied map[string][]int
	order   []int
}

func newQueue(messages ...string) *queue {
	q := &queue{
		Feed:    memfeed.New(memfeed.Config{}),
		applied: map[string][]int{},
	}
	q.publish(messages...)
	return q
}

// publish publishes messages, each of keys with a space between.
func (q *queue) publish(messages ...string) {
	for _, m := range messages {
		q.Publish("changes", []byte(m))
	}
}

func convert(_ context.Context, _ int, m feed.Message) (all []change, err error) {
	if text, poison := strings.CutPrefix(string(m.Data), "!"); poison {
		if text != "" {
			all = []change{{Key: text}}
		}
		return all, behaviors.Code("poison", fmt.Errorf("message %d is poison", m.Place), nil)
	}
	for key := range strings.FieldsSeq(string(m.Data)) {
		all = append(all, change{Key: key, Value: int(m.Place)})
	}
	return all, nil
}

func (q *queue) stream(threads int64) stream {
	return stream{
		Threads: threads,
		Idle:    time.Minute,
		Source: func(context.Context, int) (feed.Source, error) {
			if q.source != nil {
				return q.source, nil
			}
			return q.Open(), nil
		},
		Convert: convert,
		Process: func(ctx context.Context, c change) error {
			time.Sleep(time.Millisecond)
			if q.process != nil {
				if err := q.process(ctx, c.Key, c.Value); err != nil {
					return err
				}
			}
			q.mu.Lock()
			defer q.mu.Unlock()
			q.applied[c.Key] = append(q.applied[c.Key], c.Value)
			q.order = append(q.order, c.Value)
			return nil
		},
	}
}

func (q *queue) wantAcked(t *testing.T, places ...uint64) {
	t.Helper()
	if got := q.Acknowledged(); !slices.Equal(got, places) {
		t.Errorf("acknowledged %d, want %d", got, places)
	}
}

func (q *queue) wantApplied(t *testing.T, want string) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if got := fmt.Sprint(q.applied); got != "map["+want+"]" {
		t.Errorf("applied %s, want %s", got, want)
	}
}

func upTo(n uint64) (all []uint64) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

func TestAsyncUpdate_TenMessagesMakeTenUsers(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue(), newStreamRecord()
		for i := range 10 {
			q.publish(fmt.Sprint("u", i))
		}
		runStream(t, r, q.stream(threads))
		wantItems(t, r, work.Counts{Done: 10})
		wantToken(t, r, "")
		q.wantAcked(t, upTo(10)...)
		if len(q.applied) != 10 || len(q.order) != 10 {
			t.Errorf("applied %v", q.applied)
		}
		if m := r.moves[len(r.moves)-1]; m.Open != 0 {
			t.Errorf("the last move is %+v", m)
		}
	})
}

func TestAsyncUpdate_AMessageOfNoChangesIsAcknowledgedAndOneOfManyWhenAllAreDone(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("", "a b a", "b c"), newStreamRecord()
		q.process = func(_ context.Context, key string, place int) error {
			if key == "a" {
				time.Sleep(time.Second)
				if slices.Contains(q.Acknowledged(), 2) {
					t.Error("the message was acknowledged with an open change")
				}
			}
			if key == "b" && place == 3 && !slices.Contains(q.Acknowledged(), 2) {
				t.Error("a change passes the message before it, of whose key it is, which is not acknowledged")
			}
			return nil
		}
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, 1, 2, 3)
		q.wantApplied(t, "a:[2 2] b:[2 3] c:[3]")
		wantItems(t, r, work.Counts{Done: 5})
	})
}

func TestAsyncUpdate_AnErrorStopsItAndTheMessageComesAgain(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b", "c", "d"), newStreamRecord()
		q.process = func(_ context.Context, key string, _ int) error {
			if key == "b" {
				return errDisk
			}
			return nil
		}
		for range 2 {
			stopped(t, attemptStream(t, t.Context(), r, q.stream(threads)), "2.0")
			if slices.Contains(q.Acknowledged(), 2) {
				t.Error("the message was acknowledged")
			}
		}
		q.process = nil
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, upTo(4)...)
		q.wantApplied(t, "a:[1] b:[2] c:[3] d:[4]")
		wantItems(t, r, work.Counts{Done: 4})
	})
}

// A worker dies with ten unacknowledged messages, which come again in any order.
func TestAsyncUpdate_KeepsTheOrderOfKeysAcrossRedelivery(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue(), newStreamRecord()
		for i := range 40 {
			q.publish([]string{"a", "b", "a c"}[i%3])
		}
		dead := q.Open()
		for range 10 {
			if _, err := dead.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		dead.Leave()
		q.Redeliver(9, 3, 10, 1, 4)
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, upTo(40)...)
		for key, places := range q.applied {
			if !slices.IsSorted(places) {
				t.Errorf("key %s: %d", key, places)
			}
		}
		wantItems(t, r, work.Counts{Done: 53})
	})
}

// The time for an acknowledgement runs out in mid-processing: the source hears that the message is in progress.
func TestAsyncUpdate_AChangeThatTakesLongIsReportedInProgress(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "a", "b"), newStreamRecord()
		q.process = func(_ context.Context, key string, place int) error {
			if place == 1 {
				time.Sleep(5 * time.Minute)
			}
			return nil
		}
		s := q.stream(threads)
		s.Idle = 10 * time.Minute
		runStream(t, r, s)
		q.wantAcked(t, 1, 2, 3)
		q.wantApplied(t, "a:[1 2] b:[3]")
		for place := range uint64(3) {
			if m, err := q.Open().Again(t.Context(), place+1); err != nil || m.Delivered != 1 {
				t.Errorf("message %d was delivered %d times, %v", m.Place, m.Delivered, err)
			}
		}
	})
}

func TestAsyncUpdate_ParksPoisonWithItsMessageAndResumesIt(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "!", "!b", "b", "a"), newStreamRecord()
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, upTo(5)...)
		wantItems(t, r, work.Counts{Done: 2, Failed: 2, Skipped: 1})
		if len(r.holds) != 2 {
			t.Fatalf("holds %v", r.holds)
		}
		slices.SortFunc(r.holds, func(a, b *hold) int { return strings.Compare(a.key, b.key) })
		first, second := r.holds[0], r.holds[1]
		if first.key != "#2" || !first.parked || first.String() != "2:poison" || second.key != "b" || second.String() != "3:poison 4.0:" {
			t.Fatalf("holds %+v, %+v", first, second)
		}
		var data struct {
			Place   uint64 `json:"place"`
			Message struct {
				Subject string `json:"subject"`
				Data    []byte `json:"data"`
			} `json:"message"`
		}
		if err := json.Unmarshal(second.changes[0].Data, &data); err != nil {
			t.Fatal(err)
		}
		if data.Place != 3 || data.Message.Subject != "changes" || string(data.Message.Data) != "!b" {
			t.Errorf("%s", second.changes[0].Data)
		}
		s := q.stream(threads)
		if got := r.retry(t.Context(), work.DefineStream("sync", nil, s), second); got != "retry poison" {
			t.Errorf("resumed without a remedy: %s", got)
		}
		s.Convert = func(ctx context.Context, p int, m feed.Message) ([]change, error) {
			return []change{{Key: "b", Value: int(m.Place)}}, nil
		}
		if got := r.retry(t.Context(), work.DefineStream("sync", nil, s), second); got != "success" {
			t.Errorf("resumed: %s", got)
		}
		q.wantApplied(t, "a:[1 5] b:[3 4]")
		if len(r.wrong) > 0 {
			t.Errorf("%q", r.wrong)
		}
	})
}

func TestAsyncUpdate_WhatIsTooLongToBeHeldIsHeldByItsPlace(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		f := memfeed.New(memfeed.Config{})
		f.Publish("s", []byte("!"+strings.Repeat("x", 200<<10)))
		f.Publish("s", []byte("k"+strings.Repeat("y", 200<<10)))
		f.Publish("s", []byte("k"))
		broken := true
		var applied []int
		w := work.DefineStream("sync", nil, work.Stream[int, string]{
			Threads: threads,
			Idle:    time.Minute,
			Rules:   []work.Rule{{Code: "busy", React: work.RetryLater}},
			Source:  func(context.Context, int) (feed.Source, error) { return f.Open(), nil },
			Convert: func(_ context.Context, _ int, m feed.Message) ([]work.Change[string], error) {
				if m.Data[0] == '!' && broken {
					return nil, errDisk
				}
				return []work.Change[string]{{Key: string(m.Data[:1]), Value: string(m.Data)}}, nil
			},
			Process: func(_ context.Context, c work.Change[string]) error {
				if broken {
					return behaviors.Code("busy", errDisk, nil)
				}
				applied = append(applied, len(c.Value))
				return nil
			},
		})
		r := newStreamRecord()
		a := r.attempt()
		if _, err := w.Attempt(t.Context(), a, 0, work.Attempt{Stream: a}); err != nil || len(r.wrong) > 0 || len(r.holds) != 2 {
			t.Fatalf("%v, %q, %v", err, r.wrong, r.holds)
		}
		broken = false
		for _, h := range r.holds {
			for _, c := range h.changes {
				if len(c.Data) > 1000 {
					t.Errorf("%d bytes are held", len(c.Data))
				}
			}
			if got := r.retry(t.Context(), w, h); got != "success" {
				t.Errorf("hold of %s: %s", h.key, got)
			}
		}
		slices.Sort(applied)
		if !slices.Equal(applied, []int{1, 200<<10 + 1, 200<<10 + 1}) {
			t.Errorf("applied %d", applied)
		}
	})
}

func TestAsyncUpdate_RetriesLaterAndALaterChangeOfTheMessageFollows(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a b a", "a", "c"), newStreamRecord()
		broken := true
		q.process = func(_ context.Context, key string, place int) error {
			if key == "a" && broken {
				return errDisk
			}
			return nil
		}
		s := q.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		runStream(t, r, s)
		q.wantAcked(t, 1, 2, 3)
		wantItems(t, r, work.Counts{Done: 2, Failed: 1, Skipped: 2})
		if len(r.holds) != 1 || r.holds[0].String() != "1.0:failed 1.2: 2.0:" {
			t.Fatalf("holds %v", r.holds)
		}
		broken = false
		if got := r.retry(t.Context(), work.DefineStream("sync", nil, s), r.holds[0]); got != "success" {
			t.Error(got)
		}
		q.wantApplied(t, "a:[1 1 2] b:[1] c:[3]")
	})
}

// A change that was held before its worker died, and whose message comes again, is held once.
func TestAsyncUpdate_AHeldChangeThatComesAgainIsHeldOnce(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b"), newStreamRecord()
		q.process = func(context.Context, string, int) error { return errDisk }
		s := q.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		q.SetAway(false)
		source := &deaf{Source: q.Open()}
		q.source = source
		if err := attemptStream(t, t.Context(), r, s); err == nil || !strings.Contains(err.Error(), "acknowledging message") {
			t.Fatalf("%v", err)
		}
		q.source = nil
		runStream(t, r, s)
		q.wantAcked(t, 1, 2)
		for _, h := range r.holds {
			if len(h.changes) != 1 {
				t.Errorf("hold %v", h)
			}
		}
	})
}

// deaf is a source that takes no acknowledgement.
type deaf struct{ feed.Source }

func (*deaf) Ack(context.Context, feed.Message) error { return errDisk }

func TestAsyncUpdate_SuspendedGivesItsMessagesBack(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue(), newStreamRecord()
		for i := range 30 {
			q.publish(fmt.Sprint("k", i%7))
		}
		ctx, suspend := context.WithCancelCause(t.Context())
		q.process = func(ctx context.Context, _ string, place int) error {
			if place == 12 {
				suspend(errSuspended)
			}
			return ctx.Err()
		}
		if err := attemptStream(t, ctx, r, q.stream(threads)); !errors.Is(err, errSuspended) {
			t.Fatal(err)
		}
		if done := r.items().Done; int(done) != len(q.Acknowledged()) || done < 9 || done > 16 {
			t.Errorf("%d are done, and %d acknowledged", done, q.Acknowledged())
		}
		q.process = nil
		began := time.Now()
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, upTo(30)...)
		wantItems(t, r, work.Counts{Done: 30})
		if took := time.Since(began); took > 61*time.Second {
			t.Errorf("the messages came again after %s", took)
		}
		for key, places := range q.applied {
			if !slices.IsSorted(places) {
				t.Errorf("key %s: %d", key, places)
			}
		}
	})
}

func TestAsyncUpdate_ASourceThatIsAwayForAMinuteLosesNothing(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b"), newStreamRecord()
		asked := 0
		q.source = &absent{
			Source: q.Open(),
			until:  time.Now().Add(time.Minute),
			asked:  &asked,
		}
		time.AfterFunc(30*time.Second, func() { q.publish("a", "c") })
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, upTo(4)...)
		q.wantApplied(t, "a:[1 3] b:[2] c:[4]")
		if asked > 70 {
			t.Errorf("it was asked %d times", asked)
		}
	})
}

// absent is a source that is away until a time.
type absent struct {
	feed.Source
	until time.Time
	asked *int
}

func (s *absent) Next(ctx context.Context) (feed.Message, error) {
	*s.asked++
	if time.Now().Before(s.until) {
		return feed.Message{}, fmt.Errorf("no connection: %w", feed.ErrAway)
	}
	return s.Source.Next(ctx)
}

func TestAsyncUpdate_AnUnacknowledgedMessageHoldsBackItsKeyAlone(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("slow"), newStreamRecord()
		for i := range 600 {
			q.publish([]string{"slow", "x", "y", "z"}[i%4])
		}
		begun := time.Now()
		q.process = func(_ context.Context, key string, place int) error {
			if place == 1 && threads > 1 {
				time.Sleep(5 * time.Second)
			} else if key == "z" && time.Since(begun) > 4*time.Second {
				t.Errorf("change %d of another key waits", place)
			}
			return nil
		}
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, upTo(601)...)
		for key, places := range q.applied {
			if !slices.IsSorted(places) {
				t.Errorf("key %s: %d", key, places)
			}
		}
	})
}

func TestAsyncUpdate_HoldsBackAThousandThenFetchesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, r := newQueue(), newStreamRecord()
		for range 1_500 {
			q.publish("a")
		}
		pending := 0
		q.process = func(_ context.Context, key string, place int) error {
			if place == 1 {
				time.Sleep(time.Hour)
				pending = len(q.Pending())
			}
			return nil
		}
		s := q.stream(3)
		runStream(t, r, s)
		if pending < 1_000 || pending > 1_010 {
			t.Errorf("%d messages were pending", pending)
		}
		q.wantAcked(t, upTo(1_500)...)
		if !slices.IsSorted(q.applied["a"]) || len(q.order) != 1_500 {
			t.Errorf("applied %d", q.order)
		}
	})
}

func TestAsyncUpdate_FetchesTenMessagesThatMayRun(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue(), newStreamRecord()
		for i := range 100 {
			q.publish(fmt.Sprint("k", i))
		}
		q.process = func(_ context.Context, _ string, place int) error {
			time.Sleep(time.Second)
			if n := int64(len(q.Pending())); n > 2*threads+12 { // those that end, and one that is handed over
				t.Errorf("%d messages are pending while change %d is processed", n, place)
			}
			return nil
		}
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, upTo(100)...)
	})
}

func TestAsyncUpdate_ABatchEndsWithItsMessage(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a b c", "d e f", "g"), newStreamRecord()
		s := q.stream(threads)
		s.Batch = 4
		runStream(t, r, s)
		wantItems(t, r, work.Counts{Done: 6})
		q.wantAcked(t, 1, 2)
		runStream(t, r, s)
		q.wantAcked(t, 1, 2, 3)
	})
}

func TestAsyncUpdate_AMessageOfTooManyChangesIsPoison(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		var most, more strings.Builder
		for i := range work.MaxMessageChanges + 1 {
			fmt.Fprintf(&more, "k%d ", i)
			if i > 0 {
				fmt.Fprintf(&most, "k%d ", i)
			}
		}
		q, r := newQueue(most.String(), more.String()), newStreamRecord()
		runStream(t, r, q.stream(threads))
		wantItems(t, r, work.Counts{Done: work.MaxMessageChanges, Failed: 1})
		q.wantAcked(t, 1, 2)
		if len(r.holds) != 1 || !strings.Contains(r.holds[0].changes[0].Message, "501 changes exceed the limit of 500") {
			t.Errorf("holds %v", r.holds)
		}
	})
}

func TestBadSource_IsToldWithItsPosition(t *testing.T) {
	for name, c := range map[string]struct {
		next func(n int) (feed.Message, error)
		want string
	}{
		"errs": {func(n int) (feed.Message, error) {
			if n < 3 {
				return feed.Message{Place: uint64(n), Data: []byte("a")}, nil
			}
			return feed.Message{}, fmt.Errorf("the consumer is deleted: %w", feed.ErrClosed)
		}, "behind message 2: the consumer is deleted"},
		"repeats": {func(n int) (feed.Message, error) {
			return feed.Message{Place: uint64(min(n, 2)), Data: []byte("a")}, nil
		}, "behind message 2: message 2, which is not a later one"},
		"has no place": {func(n int) (feed.Message, error) { return feed.Message{}, nil }, "behind message 0: message 0"},
		"panics": {func(n int) (feed.Message, error) {
			if n == 3 {
				panic("broken")
			}
			return feed.Message{Place: uint64(n), Data: []byte("a")}, nil
		}, "behind message 2: the iterator: panic: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			withThreads(t, func(t *testing.T, threads int64) {
				q, r := newQueue(), newStreamRecord()
				from := &scripted{next: c.next}
				q.source = from
				err := attemptStream(t, t.Context(), r, q.stream(threads))
				items, is := errors.AsType[*work.ItemsError](err)
				if !is || items.Partition != "1" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %s", err, c.want)
				}
				if !from.closed {
					t.Error("the source was not closed")
				}
			})
		})
	}
}

// scripted is a source whose n-th message, from 1 on, a function returns.
type scripted struct {
	next   func(n int) (feed.Message, error)
	n      int
	closed bool
}

func (s *scripted) Next(context.Context) (feed.Message, error) {
	s.n++
	return s.next(s.n)
}

func (*scripted) Ack(context.Context, feed.Message) error      { return nil }
func (*scripted) Progress(context.Context, feed.Message) error { return nil }

func (*scripted) Again(context.Context, uint64) (feed.Message, error) {
	return feed.Message{}, feed.ErrNotFound
}

func (s *scripted) Close() error {
	s.closed = true
	return nil
}

func TestBadSource_ThatCannotBeOpenedFailsTheAttempt(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for name, open := range map[string]func(context.Context, int) (feed.Source, error){
			"errs":   func(context.Context, int) (feed.Source, error) { return nil, errDisk },
			"nil":    func(context.Context, int) (feed.Source, error) { return nil, nil },
			"panics": func(context.Context, int) (feed.Source, error) { panic("broken") },
		} {
			s := newQueue("a").stream(threads)
			s.Source = open
			err := attemptStream(t, t.Context(), newStreamRecord(), s)
			if _, is := errors.AsType[*work.ItemsError](err); !is || !strings.Contains(err.Error(), "changes of stream 1: iterator: opening the source") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
