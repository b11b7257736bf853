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
	"taskledger/projection/settings"
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
	w.Text(workBehavior)
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
func (p *post) sees(v *store.Membership) {
	p.view.Store(v)
	p.load.see()
}

// Two others are needed to tell whose clock is wrong, and one wrong clock of three is never that of whoever sees it.
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
			p := newPost(t)
			p.sees(new(present(1, selfID)))
			for i, drift := range c.drifts {
				p.load.peers[fmt.Sprint(i)] = &peer{present: true, at: time.Now(), clock: p.now().Add(drift)}
			}
			if got := p.load.compare(); got.off != c.off || got.ahead != c.ahead || !got.all {
				t.Errorf("others are %v ahead: %+v, want %s, off %v", c.drifts, got, c.ahead, c.off)
			}
		})
	}
}

// What was told of a clock goes on with time, and counts for a minute; a clock that jumps here is seen in what was
// heard before.
func TestClock_OfOthersGoesOnSinceItWasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.sees(keyed(nil, 1))
		p.load.hear(saying(farID, 1, p.now(), 1, 1))
		time.Sleep(50 * time.Second)
		if c := p.load.compare(); c.ahead != 0 {
			t.Errorf("after 50s of both clocks this one is %s ahead", c.ahead)
		}
		p.cfg.Now = func() time.Time { return time.Now().Add(time.Hour) }
		if c := p.load.compare(); c.ahead != time.Hour {
			t.Errorf("after a jump of an hour this clock is %s ahead", c.ahead)
		}
		time.Sleep(11 * time.Second)
		if c := p.load.compare(); c.ahead != 0 {
			t.Errorf("after a minute it still counts: this clock is %s ahead", c.ahead)
		}
	})
}

// The bytes of a node key that are read again are no news: neither the backlog nor the clock in them is.
func TestLoad_KeyThatIsReadAgainIsNotHeardAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		begin := p.now()
		wantBacklog := func(when string, n int) {
			t.Helper()
			if got := p.load.readyAt(3, farID, time.Time{})[workBehavior]; got != n {
				t.Errorf("%s: backlog %d, want %d", when, got, n)
			}
		}
		p.sees(keyed(saying(farID, 4, begin, 3, 7), 1)) // as old as this session, or older
		wantBacklog("written before this session began", 0)
		if c := p.load.compare(); c.all {
			t.Error("a clock from before this session began counts as heard")
		}
		news := keyed(saying(farID, 5, begin, 3, 7), 2)
		p.sees(news)
		wantBacklog("news", 7)
		for range 3 {
			time.Sleep(loadAge / 2)
			p.sees(news)
			p.load.hear(saying(farID, 4, begin, 3, 9))
		}
		wantBacklog("read again for longer than it is believed", 0)
		if c := p.load.compare(); !c.all || c.ahead != 0 {
			t.Errorf("the clock in old bytes is %s behind", c.ahead)
		}
	})
}

// Messages of sessions that have ended, or that nobody has seen, count for nothing and are forgotten.
func TestLoad_OfSessionsThatAreNotPresentCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		view := keyed(nil, 1)
		for range 100 {
			recorded := fmt.Sprint("recorded", rand.Uint64())
			p.load.hear(saying(recorded, 1, p.now().Add(-time.Hour), 3, 7))
			p.sees(view)
			if c := p.load.compare(); c.off || c.ahead != 0 || p.load.readyAt(3, recorded, time.Time{}) != nil {
				t.Fatalf("heard of who is not present: %+v, ready %v", c, p.load.readyAt(3, recorded, time.Time{}))
			}
			time.Sleep(10 * time.Second)
		}
		if n := len(p.load.peers); n > 1+int(clockAge/(10*time.Second))+1 {
			t.Errorf("%d sessions are remembered", n)
		}
	})
}

// A message stays far below what NATS and etcd take, whatever waits; it tells of what waits most.
func TestLoad_TellsTheLongestBacklogsWhenThereAreTooMany(t *testing.T) {
	p := newPost(t)
	const behaviors, most = 2200, 4 // tasks of one
	all := map[string]int{}
	var tasks []owned
	for i := range behaviors {
		behavior := fmt.Sprintf("%0*d", events.MaxBehaviorBytes, i)
		all[behavior] = 1 + i%most
		tasks = append(tasks, slices.Repeat([]owned{{behavior: behavior}}, all[behavior])...)
	}
	p.owning(0, tasks...)
	data := p.load.message()
	if len(data) > maxLoadBytes+100 {
		t.Errorf("message has %d bytes", len(data))
	}
	m, err := command.ReadLenient[loadMessage](data)
	if err != nil {
		t.Fatal(err)
	}
	toldOf, least := m.ready()[0], most
	for behavior, ready := range toldOf {
		if ready != all[behavior] {
			t.Errorf("of %s %d tasks are told, want %d", behavior, ready, all[behavior])
		}
		least = min(least, ready)
		delete(all, behavior)
	}
	longest := slices.Max(append(slices.Collect(maps.Values(all)), 0))
	if len(toldOf) < 2000 || longest > least {
		t.Errorf("%d of %d backlogs are told, the least of %d, and one of %d is not", len(toldOf), behaviors, least, longest)
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
		_, err := command.ReadLenient[loadMessage](message.Encode(loadMessage{"n", 1, 1, 0, rows}))
		if !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	most := loadMessage{"n", 1, 1, 0, slices.Repeat([]backlogRow{{store.MaxShards - 1, strings.Repeat("x", events.MaxBehaviorBytes), math.MaxInt32}}, maxBacklogRows)}
	if _, err := command.ReadLenient[loadMessage](message.Encode(most)); err != nil {
		t.Errorf("the most there is: %v", err)
	}
}

// What must not start needs no slot: free ones would be offered for it again and again.
func TestBacklog_LeavesOutWhatIsPaused(t *testing.T) {
	p := newPost(t, &stub{workBehavior})
	for paused, ready := range map[string]int{"": 1, workBehavior: 0, "another": 1} {
		var known settings.State
		if paused != "" {
			pause := &events.Event{Seq: 1, Body: &events.Paused{Behavior: paused}, Position: events.Position{Ref: 1}}
			if err := known.Fold(pause); err != nil {
				t.Fatal(err)
			}
		}
		p.settings.known.Store(&known)
		own := p.owning(0, owned{behavior: workBehavior})
		if told := own.Backlog()[workBehavior]; told != ready {
			t.Errorf("while %q is paused %d tasks are told of, want %d", paused, told, ready)
		}
	}
}

// What an owner told before it was found not to answer says nothing of it since.
func TestLoad_ToldBeforeATimeCountsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.sees(keyed(nil, 1))
		wantBacklog := func(when string, after time.Time, n int) {
			t.Helper()
			if got := (workerHost{p.member}).ReadyAt(3, farID, after)[workBehavior]; got != n {
				t.Errorf("%s: backlog %d, want %d", when, got, n)
			}
		}
		p.load.hear(saying(farID, 1, p.now(), 3, 7))
		wantBacklog("told since", time.Now().Add(-1), 7)
		silent := time.Now()
		wantBacklog("told before", silent, 0)
		time.Sleep(time.Millisecond)
		p.load.hear(saying(farID, 2, p.now(), 3, 7))
		wantBacklog("told again", silent, 7)
	})
}

func TestLoad_AddsUpWhatIsReadyInTheShardsServedHere(t *testing.T) {
	p := newPost(t)
	p.owning(0, owned{behavior: workBehavior}, owned{behavior: "another"}, owned{behavior: workBehavior, node: selfID})
	p.owning(1, owned{behavior: workBehavior})
	want := map[string]int{workBehavior: 2, "another": 1}
	for range 2 {
		got := workerHost{p.member}.ReadyHere()
		if !maps.Equal(got, want) {
			t.Errorf("ready here: %v, want %v", got, want)
		}
		got[workBehavior] = 9 // the caller's own
	}
}
