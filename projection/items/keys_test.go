package items_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/item"
	"taskledger/projection/items"
	"taskledger/projection/steady"
)

func keyed(client int64, key, data string) *item.Update {
	return &item.Update{Client: client, Key: key, Adds: []item.Add{{Group: "g", Data: []byte(data)}}}
}

// repeated reports whether an update would be answered as before, with its first id.
func (s *shard) repeated(t *testing.T, store string, u *item.Update) (first int64, again bool) {
	t.Helper()
	d := s.decided(t, store, u)
	return int64(d.First), d.Repeated
}

func TestKeys_ARepeatedUpdateIsAnsweredAsTheFirstWhateverCameBetween(t *testing.T) {
	s := newShard()
	u := keyed(1, "k", "a")
	first := s.updated(t, "s", u)
	at := s.now
	s.later(time.Minute)
	s.updated(t, "s", &item.Update{Client: 2, Deletes: []int64{first}})
	d := s.decided(t, "s", u)
	if !d.Repeated || int64(d.First) != first || d.Now != at || len(d.Events) > 0 {
		t.Errorf("answered with %+v, want id %d at %d", d, first, at)
	}
}

func TestKeys_AreOfAStoreAndAClient(t *testing.T) {
	s := newShard()
	s.updated(t, "s", keyed(1, "k", "a"))
	for name, of := range map[string]struct {
		store  string
		client int64
		key    string
	}{"another store": {"other", 1, "k"}, "another client": {"s", 2, "k"}, "another key": {"s", 1, "l"}, "no key": {"s", 1, ""}} {
		if _, again := s.repeated(t, of.store, keyed(of.client, of.key, "a")); again {
			t.Errorf("%s: answered as before", name)
		}
	}
}

func TestKeys_OfAnotherRequestAreRefused(t *testing.T) {
	s := newShard()
	s.updated(t, "s", keyed(1, "k", "a"))
	c := &item.Claim{Client: 1, Key: "k", Group: "g", Duration: hour}
	for name, decide := range map[string]func() (items.Decision, error){
		"other data": func() (items.Decision, error) {
			u := keyed(1, "k", "b")
			return s.state.DecideUpdate("s", u, u.RequestID(), s.now)
		},
		"a claim": func() (items.Decision, error) { return s.state.DecideClaim("s", c, c.RequestID(), 0, s.now) },
	} {
		if d, err := decide(); !otherRequest(err) || len(d.Events) > 0 {
			t.Errorf("%s under the key: %+v, %v", name, d, err)
		}
	}
}

func otherRequest(err error) bool {
	refusal, is := errors.AsType[*items.Refusal](err)
	return is && refusal.OtherRequest
}

func TestKeys_OfAClaimThatGotNothingAreNotKept(t *testing.T) {
	s := newShard()
	c := &item.Claim{Client: 1, Key: "k", Group: "g", Duration: hour}
	claim := func(random uint64) items.Decision {
		d, err := s.state.DecideClaim("s", c, c.RequestID(), random, s.now)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.apply(&d, c.RequestID()); err != nil {
			t.Fatal(err)
		}
		return d
	}
	claim(0)
	s.added(t, "s", 2, 0, "g")
	s.added(t, "s", 2, 0, "g")
	first := claim(0)
	again := claim(1)
	if first.Repeated || first.First != 3 || !again.Repeated || again.First != 3 {
		t.Errorf("first %+v, then %+v", first, again)
	}
}

func TestKeys_AreKeptAnewOnceTheHourIsOver(t *testing.T) {
	s := newShard()
	u := keyed(1, "k", "a")
	first := s.updated(t, "s", u)
	s.later(hour)
	if id, again := s.repeated(t, "s", u); !again || id != first {
		t.Error("forgotten within the hour")
	}
	s.later(time.Millisecond)
	if _, again := s.repeated(t, "s", u); again {
		t.Error("kept beyond the hour")
	}
	if id := s.updated(t, "s", u); id == first {
		t.Error("carried out again under the old id")
	}
	if _, again := s.repeated(t, "s", u); !again {
		t.Error("not kept anew")
	}
}

// used has a shard remember so many keys of a store, each of a client of its own.
func (s *shard) used(t *testing.T, store string, first, n int) {
	t.Helper()
	for i := range n {
		u := keyed(int64(first+i), "k", "a")
		u.Adds = nil
		u.Deletes = []int64{s.added(t, store, int64(first+i), 0, "g")}
		s.updated(t, store, u)
		if s.index >= 1000 {
			s.later(0)
		}
	}
}

// full returns why a keyed update is refused, and for how long.
func (s *shard) full(store string, client int64) *items.Refusal {
	u := keyed(client, "k", "a")
	_, err := s.state.DecideUpdate(store, u, u.RequestID(), s.now)
	refusal, _ := errors.AsType[*items.Refusal](err)
	return refusal
}

func TestKeys_AStoreThatUsesAllOfAShardMakesNoOtherForgetAndMayNotGoOn(t *testing.T) {
	s := newShard()
	mine := s.updated(t, "mine", keyed(1, "k", "a"))
	s.used(t, "other", 1, items.MaxKeys-1)
	switch why := s.full("other", 1<<40); {
	case why == nil || why.Full == "" || why.Forgotten:
		t.Fatalf("a further key of the store with most of them: %v", why)
	case why.Wait <= 0 || why.Wait > items.KeysSafe+1:
		t.Errorf("to be asked again in %d ms", why.Wait)
	}
	for client := range int64(100) { // its share is half of all
		s.updated(t, "mine", keyed(client+2, "k", "a"))
	}
	if id, again := s.repeated(t, "mine", keyed(1, "k", "a")); !again || id != mine {
		t.Error("the key of another store was forgotten")
	}
	s.later(time.Duration(items.KeysSafe+1) * time.Millisecond)
	if why := s.full("other", 1<<40); why != nil {
		t.Errorf("once its keys are old: %v", why)
	}
	s.updated(t, "other", keyed(1<<40, "k", "a"))
	if _, again := s.repeated(t, "other", keyed(1, "k", "a")); again {
		t.Error("the oldest key of the store with most of them is kept")
	}
	if id, again := s.repeated(t, "mine", keyed(1, "k", "a")); !again || id != mine {
		t.Error("the key of another store was given up")
	}
	again := keyed(1, "k", "a")
	again.Age = time.Second
	if _, err := s.state.DecideUpdate("mine", again, again.RequestID(), s.now); err != nil {
		t.Error(err)
	}
	again.Age = time.Duration(items.KeysSafe) * time.Millisecond
	_, err := s.state.DecideUpdate("other", again, again.RequestID(), s.now)
	if refusal, is := errors.AsType[*items.Refusal](err); !is || !refusal.Forgotten {
		t.Errorf("a repetition whose key was given up: %v", err)
	}
	restored(t, rows(s.state), s.entry, s.now)
}

func TestKeys_WhoRepeatsWhatMayBeForgottenIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		want bool
	}{"asked first": {0, false}, "a minute ago": {time.Minute, false}, "50 minutes ago": {50 * time.Minute, false}, "an hour ago": {hour, true}} {
		s := newShard()
		u := keyed(1, "k", "a")
		u.Age = c.age
		_, err := s.state.DecideUpdate("s", u, u.RequestID(), s.now)
		refusal, _ := errors.AsType[*items.Refusal](err)
		if got := refusal != nil && refusal.Forgotten; got != c.want {
			t.Errorf("%s: %v", name, err)
		}
		q := &item.Claim{Client: 1, Key: "k", Age: c.age, Group: "g", Duration: hour}
		_, err = s.state.DecideClaim("s", q, q.RequestID(), 0, s.now)
		if refusal, _ = errors.AsType[*items.Refusal](err); (refusal != nil && refusal.Forgotten) != c.want {
			t.Errorf("a claim %s: %v", name, err)
		}
	}
	s := newShard()
	for i := range items.KeysPerClient + 1 {
		s.updated(t, "s", keyed(1, fmt.Sprint("k", i), "a"))
		s.later(time.Second)
	}
	u := keyed(1, "k0", "a")
	u.Age = (items.KeysPerClient + 1) * time.Second
	_, err := s.state.DecideUpdate("s", u, u.RequestID(), s.now)
	if refusal, is := errors.AsType[*items.Refusal](err); !is || !refusal.Forgotten {
		t.Errorf("behind 64 others of the client: %v", err)
	}
	s.later(10 * time.Minute)
	u = keyed(1, "new", "a")
	u.Age = time.Minute
	if _, err = s.state.DecideUpdate("s", u, u.RequestID(), s.now); err != nil {
		t.Errorf("asked first after the oldest of them: %v", err)
	}
	clock := new(steady.Clock) // a clock that steps makes no key older than those that were forgotten for it
	stepped := newShard()
	stepped.state.CountBy(clock)
	for i := range items.KeysPerClient + 1 {
		clock.Tick(stepped.now)
		stepped.updated(t, "s", keyed(1, fmt.Sprint("k", i), "a"))
		stepped.later(2 * time.Second)
	}
	stepped.later(hour)
	u = keyed(1, "k0", "a")
	u.Age = 5 * time.Minute
	_, err = stepped.state.DecideUpdate("s", u, u.RequestID(), stepped.now)
	if refusal, is := errors.AsType[*items.Refusal](err); !is || !refusal.Forgotten {
		t.Errorf("behind 64 others of the client and a step of the clock: %v", err)
	}
	lost := newShard()
	lost.state.Lost(1, lost.now)
	u = keyed(1, "k", "a")
	u.Age = time.Minute
	_, err = lost.state.DecideUpdate("s", u, u.RequestID(), lost.now)
	if refusal, is := errors.AsType[*items.Refusal](err); !is || !refusal.Forgotten {
		t.Errorf("after a loss of the journal: %v", err)
	}
}

// isForgotten reports whether a repetition is refused because the store may have forgotten its key.
func (s *shard) isForgotten(u *item.Update) bool {
	_, err := s.state.DecideUpdate("s", u, u.RequestID(), s.now)
	refusal, is := errors.AsType[*items.Refusal](err)
	return is && refusal.Forgotten
}

func TestKeys_ARepetitionIsOlderThanItsAgeByTheTimeUnderWay(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, time.Second} {
		for _, way := range []time.Duration{0, 50 * time.Millisecond, 10 * time.Second, 2 * time.Minute} {
			s := newShard()
			first := s.now
			for i := range items.KeysPerClient + 1 {
				s.updated(t, "s", keyed(1, fmt.Sprint("k", i), "a"))
				s.later(apart)
			}
			u := keyed(1, "k0", "a")
			u.Age = max(time.Duration(s.now-first)*time.Millisecond, time.Millisecond)
			s.later(way)
			if !s.isForgotten(u) {
				t.Errorf("%s apart and %s under way: done again", apart, way)
			}
		}
	}
}

func TestKeys_ARepetitionWithinTheLast64OfItsClientIsDoneHoweverBusyThatIs(t *testing.T) {
	s := newShard()
	for i := range 3 * items.KeysPerClient {
		s.updated(t, "s", keyed(1, fmt.Sprint("k", i), "a"))
		s.later(time.Millisecond)
	}
	u := keyed(1, "new", "a")
	u.Age = 30 * time.Second
	for within, want := range map[int]bool{0: true, 1: false, items.KeysPerClient: false, items.KeysPerClient + 1: true} {
		if u.Within = within; s.isForgotten(u) != want {
			t.Errorf("within %d: refused %t, want %t", within, !want, want)
		}
	}
	if u.Within, u.Age = 1, hour; !s.isForgotten(u) {
		t.Error("an hour ago: done")
	}
}

func TestKeys_AreKeptWhenTheClockJumps(t *testing.T) {
	s := newShard()
	clock := new(steady.Clock)
	s.state.CountBy(clock)
	clock.Tick(s.now)
	u := keyed(1, "k", "a")
	first := s.updated(t, "s", u)
	s.later(hour + time.Second)
	if id, again := s.repeated(t, "s", u); !again || id != first {
		t.Error("forgotten for a jump of the clock")
	}
}

func TestStores_AreForgottenOnceTheyAreEmptyAndNoIDIsUsedTwice(t *testing.T) {
	s := newShard()
	for i := range items.MaxStores {
		name := fmt.Sprint("job-", i)
		s.updated(t, name, &item.Update{Client: 1, Deletes: []int64{s.added(t, name, 1, 0, "g")}})
		if s.index >= 1000 {
			s.later(0)
		}
	}
	u := &item.Update{Client: 1, Adds: []item.Add{{Group: "g"}}}
	_, err := s.state.DecideUpdate("one-more", u, "", s.now)
	refusal, is := errors.AsType[*items.Refusal](err)
	if !is || refusal.Full == "" || refusal.Wait <= 0 || refusal.Wait > 60_000 {
		t.Fatalf("a store too many: %+v", refusal)
	}
	if got := s.state.Forgettable(s.now, 10); len(got) > 0 {
		t.Errorf("%d are forgotten at once", len(got))
	}
	s.later(time.Duration(refusal.Wait) * time.Millisecond)
	s.updated(t, "job-7", keyed(1, "k", "a")) // it has an item
	s.updated(t, "job-8", keyed(1, "k", "a"))
	s.updated(t, "job-8", &item.Update{Client: 1, Deletes: []int64{2}}) // it has a key
	s.later(time.Minute)
	all := s.state.Forgettable(s.now, items.MaxStores)
	if len(all) != items.MaxStores-2 {
		t.Fatalf("%d may be forgotten", len(all))
	}
	for _, b := range all {
		s.forget(t, &b)
	}
	if id := s.added(t, "job-9", 1, 0, "g"); id != 2 {
		t.Errorf("a store that comes again makes id %d, want 2", id)
	}
	if id := s.added(t, "one-more", 1, 0, "g"); id != 2 {
		t.Errorf("a new store makes id %d, want 2", id)
	}
	if _, again := s.repeated(t, "job-8", keyed(1, "k", "a")); !again {
		t.Error("a key is forgotten with its store")
	}
	is8 := events.StoreForgotten{Store: "job-8", Last: s.state.Store("job-8").Last}
	for name, b := range map[string]events.StoreForgotten{"with a key": is8, "with items": {Store: "job-7", Last: 2}, "that is not there": {Store: "never", Last: 1},
		"of another id": {Store: "job-9", Last: 7}} {
		ev := s.forgotten(&b)
		if err := s.state.Forgotten().Fold(&ev); err == nil {
			t.Errorf("a store %s is forgotten", name)
		}
	}
	s.later(hour)
	s.forget(t, &is8)
	if id := s.added(t, "job-8", 1, 0, "g"); id != int64(is8.Last)+1 {
		t.Errorf("its next id is %d behind %d", id, is8.Last)
	}
	u = keyed(1, "k", "a")
	u.Age = hour
	_, err = s.state.DecideUpdate("job-8", u, u.RequestID(), s.now)
	if refusal, is := errors.AsType[*items.Refusal](err); !is || !refusal.Forgotten {
		t.Errorf("a request of a store that was forgotten: %v", err)
	}
	var w wire.Writer
	s.state.Forgotten().Encode(&w)
	again := restored(t, rows(s.state), s.entry, s.now)
	r := wire.NewReader(w.B)
	if again.Forgotten().Decode(r); r.Close() != nil {
		t.Fatal(r.Err())
	}
	copied := &shard{state: again, entry: s.entry + 1, now: s.now}
	if got, want := copied.added(t, "after", 1, 0, "g"), s.added(t, "after", 1, 0, "g"); got != want {
		t.Errorf("restored, a new store makes id %d, want %d", got, want)
	}
}

// forgotten is an event that forgets a store.
func (s *shard) forgotten(b *events.StoreForgotten) events.Event {
	seq, prev := s.state.Forgotten().Next()
	return events.Event{Seq: seq, Prev: prev, Body: b, At: s.now, Position: events.Position{Ref: events.RefOf(s.entry, s.index)}}
}

func (s *shard) forget(t *testing.T, b *events.StoreForgotten) {
	t.Helper()
	ev := s.forgotten(b)
	if err := s.state.Forgotten().Fold(&ev); err != nil {
		t.Fatal(err)
	}
	if s.index++; s.index >= 1000 {
		s.later(0)
	}
}

func TestClaims_AreCountedUntilTheDataAreOthers(t *testing.T) {
	s := newShard()
	id := s.added(t, "s", 1, 0, "g")
	claims := func() uint64 { return s.state.Item("s", uint64(id)).Claims }
	change := func(c item.Change) {
		t.Helper()
		c.ID = id
		id = s.updated(t, "s", &item.Update{Client: 1, Changes: []item.Change{c}})
	}
	for n := range uint64(3) {
		id = s.claimed(t, 1, "g", 0)
		change(item.Change{Keep: true, At: -60_000}) // it is renewed
		change(item.Change{Keep: true})              // and given back
		if claims() != n+1 {
			t.Errorf("%d claims, want %d", claims(), n+1)
		}
	}
	change(item.Change{Data: []byte("further")})
	if claims() != 0 {
		t.Errorf("with other data: %d claims", claims())
	}
}
