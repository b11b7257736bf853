package items_test

import (
	"errors"
	"testing"
	"time"

	"taskledger/item"
	"taskledger/projection/items"
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

func TestKeys_OfAShardAreBoundedAndTheOldestGoes(t *testing.T) {
	s := newShard()
	for i := range items.MaxKeys + 1 {
		s.updated(t, "s", keyed(int64(i+1), "k", "a"))
		if s.index >= 1000 {
			s.later(0)
		}
		if i%1000 == 0 && i > 0 { // the items are not what this is about
			u := &item.Update{Client: 1}
			for id := range int64(1000) {
				u.Deletes = append(u.Deletes, int64(i)-id)
			}
			s.updated(t, "s", u)
		}
	}
	for client, want := range map[int64]bool{1: false, 2: true, items.MaxKeys + 1: true} {
		if _, again := s.repeated(t, "s", keyed(client, "k", "a")); again != want {
			t.Errorf("the key of client %d is kept: %t, want %t", client, again, want)
		}
	}
	restored(t, rows(s.state), s.entry, s.now)
}
