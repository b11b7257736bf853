package work_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work"
	"taskledger/work/feed"
	"taskledger/work/feed/memfeed"
)

// hooked is a source of which a method does something of its own before it does its work.
type hooked struct {
	*memfeed.Source
	before func(method string)
	closed atomic.Bool
}

func (h *hooked) Ack(ctx context.Context, m feed.Message) error {
	h.before("Ack")
	return h.Source.Ack(ctx, m)
}

func (h *hooked) Progress(ctx context.Context, m feed.Message) error {
	h.before("Progress")
	return h.Source.Progress(ctx, m)
}

func (h *hooked) Pending(ctx context.Context) (int64, time.Time, error) {
	h.before("Pending")
	return h.Source.Pending(ctx)
}

func (h *hooked) Mark() string {
	h.before("Mark")
	return "mark"
}

func (h *hooked) Resume(string) { h.before("Resume") }

func (h *hooked) Close() error {
	h.closed.Store(true)
	h.before("Close")
	return h.Source.Close()
}

// A method of a source that breaks neither ends the process nor keeps the attempt from ending.
func TestBadSource_WhoseMethodsBreakFailsTheAttempt(t *testing.T) {
	for how, breaks := range map[string]func(){
		"panic: broken":        func() { panic("broken") },
		"ended its goroutine":  runtime.Goexit,
		"does not return, tho": func() { time.Sleep(1000 * time.Hour) },
	} {
		for _, method := range []string{"Ack", "Progress", "Pending", "Mark", "Resume", "Close"} {
			t.Run(method+" "+how, func(t *testing.T) {
				withThreads(t, func(t *testing.T, threads int64) {
					q, r := newQueue("a", "a", "b"), newStreamRecord()
					source := &hooked{
						Source: q.Open(),
						before: func(of string) {
							if of == method {
								breaks()
							}
						},
					}
					q.source = source
					q.process = func(context.Context, string, int) error {
						time.Sleep(15 * time.Second)
						return nil
					}
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					defer cancel()
					began := time.Now()
					err := attemptStream(t, ctx, r, q.stream(threads))
					if took := time.Since(began); took > 6*time.Minute {
						t.Errorf("the attempt took %s", took)
					}
					if !source.closed.Load() {
						t.Error("the source was not closed")
					}
					hangs := strings.Contains(how, "return")
					switch {
					case method == "Close" && err != nil:
						t.Error(err)
					case method != "Close" && (err == nil || !strings.Contains(err.Error(), how)) && !(hangs && ctx.Err() != nil):
						t.Errorf("%v, want %q", err, how)
					case method != "Close" && ctx.Err() == nil && !strings.Contains(err.Error(), "behind message "):
						t.Errorf("%v, want the message behind which it came", err)
					}
					time.Sleep(2000 * time.Hour) // what was left behind ends
				})
			})
		}
	}
}

func TestBadProcess_ThatEndsItsGoroutineLeavesNothingOpen(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "a", "b"), newStreamRecord()
		source := &hooked{Source: q.Open(), before: func(string) {}}
		q.source = source
		q.process = func(context.Context, string, int) error {
			runtime.Goexit()
			return nil
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			if err := attemptStream(t, t.Context(), r, q.stream(threads)); err == nil {
				t.Error("the attempt succeeds")
			}
		}()
		<-over
		if !source.closed.Load() {
			t.Error("the source was not closed")
		}
		q.source, q.process = nil, nil
		runStream(t, newStreamRecord(), q.stream(threads))
		q.wantApplied(t, "a:[1 2] b:[3]")
	})
}

// A change fails while an acknowledgement waits for a source that is away.
func TestAsyncUpdate_AStreamThatStopsEndsWhileItsSourceIsAway(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b", "c"), newStreamRecord()
		q.process = func(_ context.Context, _ string, place int) error {
			if place == 1 {
				q.SetAway(true)
			}
			if place == 2 {
				time.Sleep(time.Second)
				return errDisk
			}
			return nil
		}
		began := time.Now()
		stopped(t, attemptStream(t, t.Context(), r, q.stream(threads)), "2.0")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		q.SetAway(false)
		q.process = nil
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, 1, 2, 3)
	})
}

func TestAsyncUpdate_TheTimeWhileTheSourceIsAwayIsNotIdle(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b"), newStreamRecord()
		q.SetAway(true)
		time.AfterFunc(time.Hour, func() { q.SetAway(false) })
		began := time.Now()
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, 1, 2)
		if took := time.Since(began); took < time.Hour+time.Minute || took > time.Hour+3*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

// A source that begins anew has another message at a place: it is no repetition of one that is held.
func TestAsyncUpdate_AnotherMessageAtThePlaceOfAHeldOneIsHeldBesides(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		r := newStreamRecord()
		for _, text := range []string{"a", "a"} {
			q := newQueue(text)
			q.process = func(context.Context, string, int) error { return errDisk }
			s := q.stream(threads)
			s.Rules = []work.Rule{{React: work.RetryLater}}
			runStream(t, r, s)
			q.wantAcked(t, 1)
			time.Sleep(time.Second)
		}
		if len(r.holds) != 1 || r.holds[0].String() != "1.0:failed 1.0:" {
			t.Errorf("holds %v", r.holds)
		}
	})
}

// dated is a source whose messages tell a time of its own.
type dated struct {
	feed.Source
	at time.Time
}

func (d dated) Next(ctx context.Context) (feed.Message, error) {
	m, err := d.Source.Next(ctx)
	m.Time = d.at
	return m, err
}

func (d dated) Again(ctx context.Context, place uint64) (feed.Message, error) {
	m, err := d.Source.Again(ctx, place)
	m.Time = d.at
	return m, err
}

func TestBadSource_OfMessagesOfAnotherAgeIsReadAndTheirHoldsAre(t *testing.T) {
	for _, year := range []int{-3, 1, 1969, 9999, 10_000, 200_000} {
		withThreads(t, func(t *testing.T, threads int64) {
			q, r := newQueue("a", "!b", "!"+strings.Repeat("x", 200<<10), "b"), newStreamRecord()
			q.source = dated{q.Open(), time.Date(year, 5, 6, 7, 8, 9, 0, time.UTC)}
			s := q.stream(threads)
			runStream(t, r, s)
			q.wantAcked(t, upTo(4)...)
			if len(r.holds) != 2 {
				t.Fatalf("holds %v", r.holds)
			}
			s.Convert = func(_ context.Context, _ int, m feed.Message) ([]change, error) {
				return []change{{Key: "z", Value: int(m.Place)}}, nil
			}
			s.Source = func(context.Context, int) (feed.Source, error) { return dated{q.Open(), q.source.(dated).at}, nil }
			for _, h := range r.holds {
				h.changes = h.changes[:1] // the others are of keys that the messages have no more
				if got := r.retry(t.Context(), work.DefineStream("sync", nil, s), h); got != "success" {
					t.Errorf("year %d: the hold of %.9s: %s", year, h, got)
				}
			}
		})
	}
}

func TestAsyncUpdate_AHoldByPlaceRefusesAnotherMessageThere(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("!"+strings.Repeat("x", 200<<10)), newStreamRecord()
		runStream(t, r, q.stream(threads))
		if len(r.holds) != 1 {
			t.Fatalf("holds %v", r.holds)
		}
		time.Sleep(time.Second)
		other := newQueue("b")
		if got := r.retry(t.Context(), work.DefineStream("sync", nil, other.stream(threads)), r.holds[0]); got == "success" {
			t.Error("another message was processed in place of the one that is held")
		}
		other.wantApplied(t, "")
	})
}

func TestAsyncUpdate_PoisonStopsAStreamWithThresholds(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "!b", "b"), newStreamRecord()
		s := q.stream(threads)
		s.Thresholds = []work.Threshold{{Counter: "deletes", Limit: 100}}
		q.process = func(ctx context.Context, _ string, _ int) error { return work.Permit(ctx, "deletes") }
		stopped(t, attemptStream(t, t.Context(), r, s), "2")
		q.wantAcked(t, 1)
		if len(r.holds) > 0 {
			t.Errorf("holds %v", r.holds)
		}
		s.Rules = []work.Rule{{Code: "poison", React: work.GoOn}}
		runStream(t, r, s)
		q.wantAcked(t, 1, 2, 3)
		q.wantApplied(t, "a:[1] b:[3]")
	})
}

// A thousand messages of a MiB are not kept in memory.
func TestAsyncUpdate_HoldsBackNoMoreThan64MiB(t *testing.T) {
	for name, publish := range map[string]func(q *queue){
		"of data":          func(q *queue) { q.publish("a" + strings.Repeat(" ", 1<<20-1)) },
		"of headers alone": func(q *queue) { q.PublishWith("changes", headers(1<<20), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, r := newQueue(), newStreamRecord()
				for range 100 {
					publish(q)
				}
				pending := 0
				q.process = func(_ context.Context, _ string, place int) error {
					if place == 1 {
						time.Sleep(time.Minute)
						pending = len(q.Pending())
					}
					return nil
				}
				s := q.stream(3)
				s.Convert = func(_ context.Context, _ int, m feed.Message) ([]change, error) {
					return []change{{Key: "a", Value: int(m.Place)}}, nil
				}
				runStream(t, r, s)
				if pending < 64 || pending > 66 {
					t.Errorf("%d messages were pending", pending)
				}
				q.wantAcked(t, upTo(100)...)
				if !slices.IsSorted(q.order) {
					t.Errorf("applied %d", q.order)
				}
			})
		})
	}
}

// headers returns headers of so many bytes.
func headers(n int) map[string][]string {
	return map[string][]string{"Note": {strings.Repeat("x", n/2-4), strings.Repeat("y", n/2-4)}}
}

// large is a source that leaves out the data of its second message.
type large struct{ *memfeed.Source }

func (l large) Next(ctx context.Context) (feed.Message, error) {
	m, err := l.Source.Next(ctx)
	if m.Place == 2 {
		m.Data, err = nil, fmt.Errorf("message 2: %w", feed.ErrTooLarge)
	}
	return m, err
}

func TestAsyncUpdate_AMessageAboveTheLimitIsParkedByItsPlace(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b", "c"), newStreamRecord()
		q.source = large{q.Open()}
		s := q.stream(threads)
		runStream(t, r, s)
		q.wantAcked(t, 1, 2, 3)
		q.wantApplied(t, "a:[1] c:[3]")
		if len(r.holds) != 1 || !strings.Contains(r.holds[0].changes[0].Message, "above the limit") {
			t.Fatalf("holds %v", r.holds)
		}
		q.source = nil
		if got := r.retry(t.Context(), work.DefineStream("sync", nil, s), r.holds[0]); got != "success" {
			t.Errorf("resumed: %s", got)
		}
		q.wantApplied(t, "a:[1] b:[2] c:[3]")
	})
}

// remembering is a source that tells how far it is acknowledged.
type remembering struct {
	*memfeed.Source
	of      *queue
	resumed *[]string
}

func (m remembering) Mark() string {
	if n := len(m.of.Acknowledged()); n > 0 {
		return fmt.Sprint(n)
	}
	return ""
}

func (m remembering) Resume(mark string) { *m.resumed = append(*m.resumed, mark) }

func TestAsyncUpdate_TheMarkOfASourceIsRecordedAndToldToTheNextOne(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b", "c"), newStreamRecord()
		var resumed []string
		s := q.stream(threads)
		s.Source = func(context.Context, int) (feed.Source, error) { return remembering{q.Open(), q, &resumed}, nil }
		s.Batch = 1
		runStream(t, r, s)
		wantToken(t, r, "1")
		s.Batch = 0
		runStream(t, r, s)
		wantToken(t, r, "3")
		if !slices.Equal(resumed, []string{"", "1"}) {
			t.Errorf("resumed %q", resumed)
		}
	})
}

// A hold asks a source for its message that panics or hangs.
func TestBadSource_OfAHoldFailsIt(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("!"+strings.Repeat("x", 200<<10)), newStreamRecord()
		runStream(t, r, q.stream(threads))
		q.source = forgetful{q.Open()}
		if got := r.retry(t.Context(), work.DefineStream("sync", nil, q.stream(threads)), r.holds[0]); got == "success" {
			t.Error("the hold succeeds")
		}
	})
}

// forgetful is a source that panics when it is asked for a message once more.
type forgetful struct{ *memfeed.Source }

func (forgetful) Again(context.Context, uint64) (feed.Message, error) { panic("broken") }
