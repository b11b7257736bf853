package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/store"
)

// saying makes a message of another node.
func saying(node string, count uint64, clock events.Millis, shard, ready int) []byte {
	var w wire.Writer
	w.Array(5)
	w.Text(node)
	w.Uint(count)
	w.Int(int64(clock))
	w.Int(0)
	w.Array(1)
	w.Array(3)
	w.Int(int64(shard))
	w.Text(benchBehavior)
	w.Int(int64(ready))
	return w.B
}

// keyed is the membership in which the far node's key has the load, written at a revision.
func keyed(load []byte, modified int64) *store.Membership {
	v := present(modified, selfID, farID)
	n := v.Nodes[farID]
	n.ID, n.Load, n.Modified = farID, load, modified
	v.Nodes[farID] = n
	return &v
}

// sees is told of a membership.
func (b *bench) sees(v *store.Membership) {
	b.m.view.Store(v)
	b.m.load.see()
}

// Two others are needed to tell whose clock is wrong, and one wrong clock of three is never that of who sees it.
func TestClock_IsOffWhenMostOthersAreFarFromIt(t *testing.T) {
	const far = 2 * clockLimit
	for _, c := range []struct {
		drifts []time.Duration
		ahead  time.Duration
		off    bool
	}{
		{nil, 0, false},
		{[]time.Duration{far}, -far, false},
		{[]time.Duration{0, far}, 0, false},
		{[]time.Duration{0, -far}, 0, false},
		{[]time.Duration{far, far}, -far, true},
		{[]time.Duration{-far, -far}, far, true},
		{[]time.Duration{far, -far}, 0, false},
		{[]time.Duration{0, far, far}, 0, false}, // two of four: neither side is most
		{[]time.Duration{0, -far, -far}, 0, false},
		{[]time.Duration{0, far, far, far}, -far, true},
		{[]time.Duration{0, 0, far}, 0, false},
		{[]time.Duration{0, 0, far, far}, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, -1)
			b.sees(new(present(1, selfID)))
			for i, drift := range c.drifts {
				b.m.load.peers[fmt.Sprint(i)] = &peer{present: true, at: time.Now(), clock: b.m.now().Add(drift)}
			}
			if got := b.m.load.compare(); got.off != c.off || got.ahead != c.ahead || !got.all {
				t.Errorf("others are %v ahead: %+v, want %s, off %v", c.drifts, got, c.ahead, c.off)
			}
		})
	}
}

// What was told of a clock goes on with time, and counts for a minute; a clock that jumps here is seen in what was heard before.
func TestClock_OfOthersGoesOnSinceItWasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, -1)
		b.sees(keyed(nil, 1))
		b.m.load.hear(saying(farID, 1, benchStart, 1, 1))
		pass := func(d time.Duration) {
			time.Sleep(d)
			b.time = b.time.Add(d)
		}
		pass(50 * time.Second)
		if c := b.m.load.compare(); c.ahead != 0 {
			t.Errorf("after 50s of both clocks this one is %s ahead", c.ahead)
		}
		b.time = b.time.Add(time.Hour)
		if c := b.m.load.compare(); c.ahead != time.Hour {
			t.Errorf("after a jump of an hour this clock is %s ahead", c.ahead)
		}
		pass(11 * time.Second)
		if c := b.m.load.compare(); c.ahead != 0 {
			t.Errorf("after a minute it still counts: this clock is %s ahead", c.ahead)
		}
	})
}

// The bytes of a node key that are read again are no news: neither the backlog nor the clock in them is.
func TestLoad_KeyThatIsReadAgainIsNotHeardAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, -1)
		wantBacklog := func(when string, n int) {
			t.Helper()
			if got := b.m.load.readyAt(3, farID, time.Time{})[benchBehavior]; got != n {
				t.Errorf("%s: backlog %d, want %d", when, got, n)
			}
		}
		b.sees(keyed(saying(farID, 4, benchStart, 3, 7), 1)) // as old as this session, or older
		wantBacklog("written before this session began", 0)
		if c := b.m.load.compare(); c.all {
			t.Error("a clock from before this session began counts as heard")
		}
		news := keyed(saying(farID, 5, benchStart, 3, 7), 2)
		b.sees(news)
		wantBacklog("news", 7)
		for range 3 {
			time.Sleep(loadAge / 2)
			b.time = b.time.Add(loadAge / 2)
			b.sees(news)
			b.m.load.hear(saying(farID, 4, benchStart, 3, 9))
		}
		wantBacklog("read again for longer than it is believed", 0)
		if c := b.m.load.compare(); !c.all || c.ahead != 0 {
			t.Errorf("the clock in old bytes is %s behind", c.ahead)
		}
	})
}

// Messages of sessions that have ended, or that nobody has seen, count for nothing and are forgotten.
func TestLoad_OfSessionsThatAreNotPresentCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, -1)
		view := keyed(nil, 1)
		for range 100 {
			recorded := fmt.Sprint("recorded", rand.Uint64())
			b.m.load.hear(saying(recorded, 1, benchStart.Add(-time.Hour), 3, 7))
			b.sees(view)
			if c := b.m.load.compare(); c.off || c.ahead != 0 || b.m.load.readyAt(3, recorded, time.Time{}) != nil {
				t.Fatalf("heard of who is not present: %+v, ready %v", c, b.m.load.readyAt(3, recorded, time.Time{}))
			}
			time.Sleep(10 * time.Second)
		}
		if n := len(b.m.load.peers); n > 1+int(clockAge/(10*time.Second))+1 {
			t.Errorf("%d sessions are remembered", n)
		}
	})
}

// A message stays far below what NATS and etcd take, whatever waits; it tells of what waits most.
func TestLoad_TellsTheLongestBacklogsWhenThereAreTooMany(t *testing.T) {
	b := newBench(t, -1)
	all := map[string]int{}
	for i := range 40_000 {
		all[fmt.Sprintf("behavior-%d", i)] = i + 1
	}
	b.own.backlog.Store(&all)
	data := b.m.load.message()
	if len(data) > maxLoadBytes+100 {
		t.Errorf("message has %d bytes", len(data))
	}
	m, err := command.ReadTold[loadMessage](data)
	if err != nil {
		t.Fatal(err)
	}
	toldOf, least := m.ready()[0], len(all)
	for ready := range maps.Values(toldOf) {
		least = min(least, ready)
	}
	if len(toldOf) < 3000 || least != len(all)-len(toldOf)+1 {
		t.Errorf("%d of %d backlogs are told, the least of %d", len(toldOf), len(all), least)
	}
}

func TestLoad_ThatNoNodeTellsIsRefused(t *testing.T) {
	sound := backlogRow{3, "work", 7}
	for want, rows := range map[string][]backlogRow{
		"load of shard -1: ": {sound, {-1, "work", 1}},
		fmt.Sprintf("load of shard %d: ", store.MaxShards): {sound, {store.MaxShards, "work", 1}},
		": -1 tasks ready":         {sound, {3, "work", -1}},
		": 2147483648 tasks ready": {sound, {3, "work", math.MaxInt32 + 1}},
		fmt.Sprintf("a behavior of %d bytes", events.MaxBehaviorBytes+1): {sound, {3, strings.Repeat("x", events.MaxBehaviorBytes+1), 1}},
		fmt.Sprintf("load of %d rows", maxBacklogRows+1):                 slices.Repeat([]backlogRow{sound}, maxBacklogRows+1),
	} {
		_, err := command.ReadTold[loadMessage](message.Encode(loadMessage{"n", 1, 1, 0, rows}))
		if !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	most := loadMessage{"n", 1, 1, 0, slices.Repeat([]backlogRow{{store.MaxShards - 1, strings.Repeat("x", events.MaxBehaviorBytes), math.MaxInt32}}, maxBacklogRows)}
	if _, err := command.ReadTold[loadMessage](message.Encode(most)); err != nil {
		t.Errorf("the most there is: %v", err)
	}
}
