package check_test

import (
	"fmt"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
)

// legalItems is an item that is added, claimed, and removed by who claimed it, each event in an entry of its own.
func legalItems() []events.Event {
	at := func(entry uint64) events.Position { return events.Position{Ref: events.RefOf(entry, 0)} }
	id := events.StoreItem("crawl", 1)
	return []events.Event{
		{Task: id, Seq: 1, Position: at(1), At: 100, Body: &events.ItemAdded{ID: 1, Group: "g", At: 100, Owner: 7, Data: events.Bytes(nil)}},
		{Task: id, Seq: 2, Prev: events.RefOf(1, 0), Position: at(2), At: 200, Body: &events.ItemReplaced{From: 1, To: 2, At: 900, Owner: 8}},
		{Task: id, Seq: 3, Prev: events.RefOf(2, 0), Position: at(3), At: 300, Body: &events.ItemRemoved{ID: 2, Owner: 8}},
	}
}

func fold(all []events.Event) (problems []string) {
	var s check.ItemFold
	for i := range all {
		s.Entry(all[i].At)
		if problem := s.Apply(&all[i]); problem != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

func TestApply_TakesALegalHistory(t *testing.T) {
	if problems := fold(legalItems()); len(problems) > 0 {
		t.Error(problems)
	}
}

// under names the request of each event, of client 8.
func under(all []events.Event, keys ...string) []events.Event {
	for i, key := range keys {
		if key == "" {
			continue
		}
		all[i].RequestID = events.ItemRequestID(8, key, nil)
	}
	return all
}

func TestApply_TakesAKeyAgainOnceTheHourIsOverOr64OthersWereUsed(t *testing.T) {
	all := under(legalItems(), "k", "l", "k")
	all[2].At = all[0].At + 3_600_001
	if problems := fold(all); len(problems) != 1 {
		t.Errorf("the clock jumped by an hour: %q", problems)
	}
	var s check.ItemFold
	for at := all[0].At; at < all[2].At; at += 60_000 { // a minute counts of each gap
		s.Entry(at)
		if at == all[0].At {
			s.Apply(&all[0])
			s.Apply(&all[1])
		}
	}
	s.Entry(all[2].At)
	if problem := s.Apply(&all[2]); problem != "" {
		t.Error(problem)
	}
	all = all[:0]
	for i := range uint64(65) {
		all = append(all, events.Event{Task: events.StoreItem("crawl", i+1), Seq: 1, Position: events.Position{Ref: events.RefOf(i+1, 0)}, At: 100,
			Body: &events.ItemAdded{ID: i + 1, Group: "g", At: 100, Owner: 8, Data: events.Bytes(nil)}, RequestID: events.ItemRequestID(8, fmt.Sprint(i%64), nil)})
	}
	if problems := fold(all); len(problems) != 1 {
		t.Errorf("the key of 63 others ago: %q", problems)
	}
	all[64].RequestID = events.ItemRequestID(8, "another", nil)
	last := all[0]
	last.Task, last.Position.Ref = events.StoreItem("crawl", 66), events.RefOf(66, 0)
	last.Body = &events.ItemAdded{ID: 66, Group: "g", At: 100, Owner: 8, Data: events.Bytes(nil)}
	if problems := fold(append(all, last)); len(problems) > 0 {
		t.Errorf("the key of 64 others ago: %q", problems)
	}
}

func TestApply_TakesAnyFirstIDOfAStoreThatComesAfterALoss(t *testing.T) {
	all := legalItems()[:1]
	all[0].Task, all[0].Body.(*events.ItemAdded).ID = events.StoreItem("crawl", 5), 5
	if problems := fold(all); len(problems) != 1 {
		t.Errorf("without a loss: %q", problems)
	}
	var s check.ItemFold
	s.Entry(all[0].At)
	s.Lost()
	if problem := s.Apply(&all[0]); problem != "" {
		t.Error(problem)
	}
	again := all[0]
	if problem := s.Apply(&again); problem == "" {
		t.Error("an id is used twice")
	}
}

func TestApply_FindsWhatItemsForbid(t *testing.T) {
	for name, plant := range map[string]func(all []events.Event) []events.Event{
		"an id is left out":                func(all []events.Event) []events.Event { all[1].Body.(*events.ItemReplaced).To = 3; return all },
		"an id is used twice":              func(all []events.Event) []events.Event { all[1].Body.(*events.ItemReplaced).To = 1; return all },
		"a late owner removes":             func(all []events.Event) []events.Event { all[2].Body.(*events.ItemRemoved).Owner = 7; return all },
		"a removed item is removed":        func(all []events.Event) []events.Event { return append(all, all[2]) },
		"an old id is removed":             func(all []events.Event) []events.Event { all[2].Body.(*events.ItemRemoved).ID = 1; return all },
		"a sequence is left out":           func(all []events.Event) []events.Event { all[1].Seq++; return all },
		"a predecessor is another":         func(all []events.Event) []events.Event { all[2].Prev = all[1].Prev; return all },
		"a lineage is another":             func(all []events.Event) []events.Event { all[1].Task = events.StoreItem("crawl", 2); return all },
		"an item is of another lineage":    func(all []events.Event) []events.Event { all[0].Task = events.StoreItem("crawl", 2); return all[:1] },
		"a request is carried out twice":   func(all []events.Event) []events.Event { return under(all, "k", "l", "k") },
		"an event is of no item of stores": func(all []events.Event) []events.Event { all[0].Task = "crawl/1"; return all[:1] },
	} {
		if problems := fold(plant(legalItems())); len(problems) != 1 {
			t.Errorf("%s: %q", name, problems)
		}
	}
}

func TestForgotten_TakesAStoreWithoutItemsAndKeysAndWhatComesCountsOn(t *testing.T) {
	all := legalItems()
	of := func(n int, keys ...string) *check.ItemFold {
		s := new(check.ItemFold)
		for i := range under(all[:n], keys...) {
			s.Entry(all[i].At)
			if problem := s.Apply(&all[i]); problem != "" {
				t.Fatal(problem)
			}
		}
		return s
	}
	s := of(3)
	if problem := s.Forgotten("crawl", 3); problem == "" {
		t.Error("behind another id")
	}
	if problem := s.Forgotten("crawl", 2); problem != "" {
		t.Error(problem)
	}
	again := legalItems()[0]
	if problem := s.Apply(&again); problem == "" {
		t.Error("an id is used twice")
	}
	if problem := of(2).Forgotten("crawl", 2); problem == "" {
		t.Error("with an item")
	}
	if problem := of(3, "", "", "k").Forgotten("crawl", 2); problem == "" {
		t.Error("with a key")
	}
	if problem := of(3).Forgotten("other", 2); problem == "" {
		t.Error("one that is not there")
	}
}
