package natsbus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// order returns the places from one to another.
func order(from, to uint64) (all []uint64) {
	for ; from <= to; from++ {
		all = append(all, from)
	}
	return all
}

// A worker dies with one unacknowledged message, and hundreds wait.
func TestUpdates_KeepFewMessagesBackWhileOthersHaveToComeAgain(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.AckWait = 3 * time.Second
	u.publish(1)
	dead, conn := u.open()
	u.wantNext(dead, 1)
	conn.Close()
	u.publish(400)
	s, _ := u.open()
	u.wantNext(s, 1)
	// A batch, and one each second until the message is given up.
	if is := u.info(); is.NumAckPending > 10+1+2*3+10 {
		t.Errorf("%d messages were delivered before the first one was handed out", is.NumAckPending)
	}
	want := order(2, 401)
	u.wantNext(s, want...)
	u.ack(s, append(want, 1)...)
	u.unacknowledged(0)
}

// A worker dies with as many unacknowledged messages as its consumer gives: no other one comes before they are here.
func TestUpdates_TakeAllThatComesAgainOfADeadWorkerWhoseConsumerIsFull(t *testing.T) {
	t.Parallel()
	for _, pending := range []int{35, 60} { // in the second case others are delivered besides
		u := newUpdates(t)
		u.cfg.MaxAckPending = pending
		u.publish(35)
		dead, conn := u.open()
		u.wantNext(dead, order(1, 35)...)
		conn.Close()
		u.publish(100)
		s, _ := u.open()
		u.wantNext(s, 1)
		if is := u.info(); is.NumAckPending > min(pending, 35+10+10+2+10) {
			t.Errorf("%d messages were delivered before the first one was handed out", is.NumAckPending)
		}
		for _, place := range order(2, 135) {
			u.ack(s, place-1)
			u.wantNext(s, place)
		}
		u.ack(s, 135)
		u.unacknowledged(0)
	}
}

// Large messages fill the room before their number does. JetStream takes less than 64 KiB of headers.
func TestUpdates_KeepBack64MiBWhileOthersHaveToComeAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, batch, data, headers int }{
		{120, 200, 900 << 10, 0},
		{700, 1_000, 60 << 10, 60 << 10},
	} {
		u := newUpdates(t)
		u.cfg.AckWait, u.cfg.Batch = 3*time.Second, c.batch
		u.publish(1)
		dead, conn := u.open()
		u.wantNext(dead, 1)
		conn.Close()
		large := nats.NewMsg("files.large")
		large.Data = slices.Repeat([]byte("x"), c.data)
		if c.headers > 0 {
			large.Header.Set("Note", strings.Repeat("x", c.headers))
		}
		for range c.n {
			if _, err := u.js.PublishMsg(t.Context(), large); err != nil {
				t.Fatal(err)
			}
		}
		s, _ := u.open()
		u.wantNext(s, 1)
		if is := u.info(); is.NumAckPending > 1+64<<20/(c.data+c.headers)+2+2*3+10 {
			t.Errorf("%d messages were delivered before the first one was handed out", is.NumAckPending)
		}
		u.wantNext(s, order(2, uint64(c.n)+1)...)
	}
}
