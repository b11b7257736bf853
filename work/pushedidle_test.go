package work_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"taskledger/work"
	"taskledger/work/feed"
)

// A worker dies with one unacknowledged message, which comes again after 30 s: the others wait for it.
func TestAsyncUpdate_TheTimeWhileMessagesAreKeptBackIsNotIdle(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b", "a", "c", "d"), newStreamRecord()
		dead := q.Open()
		if _, err := dead.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		dead.Leave()
		s := q.stream(threads)
		s.Idle = 5 * time.Second
		began := time.Now()
		runStream(t, r, s)
		q.wantAcked(t, upTo(5)...)
		q.wantApplied(t, "a:[1 3] b:[2] c:[4] d:[5]")
		if took := time.Since(began); took < 35*time.Second || took > 50*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// A change rests for an hour by its rule, and messages of other keys come meanwhile, rarely.
func TestAsyncUpdate_TheTimeWhileAChangeRestsIsNotIdle(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b"), newStreamRecord()
		q.process = func(_ context.Context, key string, _ int) error {
			if key == "a" && len(q.Acknowledged()) < 7 {
				return errDisk
			}
			return nil
		}
		s := q.stream(threads)
		s.Rules = []work.Rule{{React: work.Retry, Times: 1, Backoff: time.Hour}}
		go func() {
			for range 6 {
				time.Sleep(5 * time.Minute)
				q.publish("c")
			}
		}()
		runStream(t, r, s)
		q.wantAcked(t, upTo(8)...)
		if !slices.Equal(q.order, []int{2, 3, 4, 5, 6, 7, 8, 1}) {
			t.Errorf("applied %d", q.order)
		}
	})
}

// A message comes after the time of the stream, which begins when the one before is acknowledged.
func TestAsyncUpdate_IsIdleOnceAllIsAcknowledged(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a"), newStreamRecord()
		q.process = func(context.Context, string, int) error {
			time.Sleep(10 * time.Minute)
			return nil
		}
		time.AfterFunc(10*time.Minute+30*time.Second, func() { q.publish("b") })
		began := time.Now()
		runStream(t, r, q.stream(threads))
		q.wantAcked(t, 1, 2)
		if took := time.Since(began).Truncate(time.Second); took != 21*time.Minute+30*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// undecided is a source that needs a time before it knows whether messages wait.
type undecided struct {
	feed.Source
	needs time.Duration
	asked int
}

func (u *undecided) Next(ctx context.Context) (feed.Message, error) {
	u.asked++
	select {
	case <-time.After(u.needs):
		return u.Source.Next(ctx)
	case <-ctx.Done():
		return feed.Message{}, errors.Join(feed.ErrUnsettled, context.Cause(ctx))
	}
}

func TestAsyncUpdate_GivesItsSourceTheTimeToFindOutWhetherMessagesWait(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a", "b"), newStreamRecord()
		from := &undecided{Source: q.Open(), needs: 5 * time.Second}
		q.source = from
		s := q.stream(threads)
		s.Idle = time.Millisecond
		runStream(t, r, s)
		q.wantAcked(t, 1, 2)
		if from.asked > 50 {
			t.Errorf("it was asked %d times", from.asked)
		}
	})
}
