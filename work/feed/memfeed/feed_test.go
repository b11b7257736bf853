package memfeed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work/feed"
	"taskledger/work/feed/memfeed"
)

func published(n int) *memfeed.Feed {
	f := memfeed.New(memfeed.Config{})
	for i := range n {
		f.Publish("s", []byte{byte(i)})
	}
	return f
}

// read returns the places of the next n messages.
func read(t *testing.T, s *memfeed.Source, n int) (places []uint64) {
	t.Helper()
	for range n {
		m, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, m.Place)
	}
	return places
}

func want(t *testing.T, got []uint64, want ...uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
}

func ack(t *testing.T, s *memfeed.Source, places ...uint64) {
	t.Helper()
	for _, place := range places {
		if err := s.Ack(t.Context(), feed.Message{Place: place}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSource_KeepsNewMessagesBackUntilAllThatWereDeliveredCameAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := published(6)
		dead := f.Open()
		want(t, read(t, dead, 4), 1, 2, 3, 4)
		ack(t, dead, 2)
		dead.Leave()
		s := f.Open()
		f.Redeliver(4)
		began := time.Now()
		want(t, read(t, s, 5), 1, 3, 4, 5, 6)
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("waited %s for what was unacknowledged, want the 30 s after which it comes again", waited)
		}
	})
}

func TestSource_HandsOutWhatIsRedeliveredOutOfOrderOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := published(8)
		closed := f.Open()
		want(t, read(t, closed, 5), 1, 2, 3, 4, 5)
		ack(t, closed, 1, 4)
		f.Redeliver(5, 2, 3)
		closed.Close()
		s := f.Open()
		f.Redeliver(3, 5)
		want(t, read(t, s, 3), 2, 3, 5)
		f.Redeliver(5, 2)
		want(t, read(t, s, 3), 6, 7, 8)
		ack(t, s, 2, 3, 5, 6, 7, 8)
		if left := f.Pending(); len(left) > 0 {
			t.Errorf("pending %v", left)
		}
	})
}

func TestSource_WaitsForADeliveryThatWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := published(2)
		s := f.Open()
		want(t, read(t, s, 2), 1, 2)
		f.Lose(1)
		f.Publish("s", nil)
		f.Publish("s", nil)
		want(t, read(t, s, 2), 3, 4)
	})
}

func TestSource_WaitsWhileTheFeedIsAwayAndHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := published(1)
		s := f.Open()
		f.SetAway(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("next while away: %v", err)
		}
		time.AfterFunc(time.Minute, func() { f.SetAway(false) })
		want(t, read(t, s, 1), 1)
		f.SetAway(true)
		time.AfterFunc(time.Minute, func() { f.SetAway(false) })
		ack(t, s, 1)
		want(t, f.Acknowledged(), 1)
	})
}

// A worker dies with unacknowledged messages, fewer than fill the source and more, and hundreds wait.
func TestSource_KeepsFewMessagesBackWhileOthersHaveToComeAgain(t *testing.T) {
	for _, open := range []int{1, 30, 100} {
		synctest.Test(t, func(t *testing.T) {
			f := memfeed.New(memfeed.Config{MaxPending: 100})
			for range 400 {
				f.Publish("s", nil)
			}
			dead := f.Open()
			read(t, dead, open)
			dead.Leave()
			s := f.Open()
			most := make(chan int, 1)
			time.AfterFunc(29*time.Second, func() { most <- len(f.Pending()) })
			want(t, read(t, s, 1), 1)
			if n := <-most; n > open+10 {
				t.Errorf("%d messages were pending while %d had to come again", n, open)
			}
			for place := range uint64(399) {
				ack(t, s, place+1)
				want(t, read(t, s, 1), place+2)
			}
		})
	}
}

// Four messages fill the source before their number does.
func TestSource_KeepsBack64MiBOfDataAndHeaders(t *testing.T) {
	large := strings.Repeat("x", 16<<20)
	for name, publish := range map[string]func(f *memfeed.Feed){
		"data":    func(f *memfeed.Feed) { f.Publish("s", []byte(large)) },
		"headers": func(f *memfeed.Feed) { f.PublishWith("s", map[string][]string{"Note": {large}}, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := published(1)
			dead := f.Open()
			read(t, dead, 1)
			dead.Leave()
			for range 20 {
				publish(f)
			}
			s := f.Open()
			most := make(chan int, 1)
			time.AfterFunc(29*time.Second, func() { most <- len(f.Pending()) })
			want(t, read(t, s, 1), 1)
			if n := <-most; n != 1+4 {
				t.Errorf("%s: %d messages were pending while one had to come again", name, n)
			}
		})
	}
}
