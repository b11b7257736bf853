package check_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
)

// held is the task of the first hold.
const held events.TaskID = "a/p.h1"

func moves(attempt events.Ref, token string, simulated bool) events.Event {
	return on(own, &events.TokenMoved{
		Attempt:   attempt,
		Token:     token,
		Simulated: simulated,
		Items:     events.ItemCounts{Done: 1},
	})
}

func holds(attempt events.Ref, number, partition uint32, key string) events.Event {
	return on(own, &events.ChangeHeld{
		Attempt:   attempt,
		Hold:      number,
		Partition: partition,
		Key:       key,
	})
}

func heldTask(number uint32) events.Event {
	return on(events.HoldID(own, number), &events.Created{Ties: events.Ties{Parent: own}})
}

func holdMoves(number, done uint32, ended bool) events.Event {
	return on(own, &events.HoldMoved{
		Hold:  number,
		Done:  done,
		Ended: ended,
	})
}

func setsToken(token string) events.Event {
	return on(own, &events.WorkReset{What: events.ResetToken, Token: token, Reason: "because"})
}

// aFoldedStream is a history of a stream that is simulated before it runs, and holds two changes of a key.
func aFoldedStream() journal {
	one := started(2)
	plan := events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{
		{ID: "think", Mode: events.ModeSimulate, Buckets: 1, Workers: 1, Threads: 1, Form: events.FormPrecise},
		{ID: "do", Buckets: 1, Workers: 1, Threads: 1, Form: events.FormPrecise},
	}}
	return journal{
		1:  {on(own, &events.Created{})},
		2:  {runs(own)},
		3:  {on(own, &plan), begins(1)},
		4:  {gives(1, one, 1)},
		5:  {moves(one, "5", true)},
		6:  {ends(1, one, 1, noItems, 0), partEnds(1)},
		7:  {begins(2)},
		8:  {gives(1, one, 1)},
		9:  {holds(one, 1, 2, "x"), heldTask(1), moves(one, "2", false)},
		10: {holds(one, 1, 2, "x"), moves(one, "4", false)},
		11: {runs(held)},
		12: {holdMoves(1, 1, false)},
		13: {moves(one, "5", false)},
		14: {ends(1, one, 1, noItems, 0), partEnds(2)},
		15: {on(own, &events.Succeeded{Run: 1})},
		16: {holdMoves(1, 1, true)},
		17: {on(held, &events.Succeeded{Run: 1}), on(held, &events.Deleted{})},
		18: {setsToken("1")},
	}
}

func TestStreams_OfASoundHistoryAreAllowed(t *testing.T) {
	w, problem := hold(aFoldedStream(), 18)
	if problem != "" {
		t.Fatal(problem)
	}
	got, known := w.Items(own)
	if !known || len(got) != 2 || got[0].Items.Done != 1 || got[1].Items.Done != 3 {
		t.Errorf("the run has come to %+v, %t", got, known)
	}
}

func TestWorkFold_FindsStreamsThatBreakAPromise(t *testing.T) {
	one := started(2)
	for _, f := range []forged{
		{"a token of another attempt", journal{9: {moves(started(3), "2", false)}}, "a token moves"},
		{"a token after the bucket", journal{15: {moves(one, "6", false)}}, "a token moves: no stream is under way"},
		{"a token of a simulation that counts", journal{5: {moves(one, "5", false)}}, "that it is simulated is false"},
		{"a token that is only simulated", journal{9: {moves(one, "5", true)}}, "that it is simulated is true"},
		{"a change held by another attempt", journal{9: {holds(started(3), 1, 2, "x")}}, "a change is held"},
		{"a hold without a task", journal{9: {holds(one, 1, 2, "x")}}, "no task is created for it in the same entry"},
		{"a second hold of a key", journal{10: {holds(one, 2, 2, "x"), heldTask(2)}}, "hold 2 begins for a key that hold 1 has"},
		{"a change in the hold of another key", journal{10: {holds(one, 1, 2, "y")}}, "goes into hold 1 of key"},
		{"a number that was used", journal{17: {on(own, &events.Rescheduled{At: 1})}, 18: {runs(own)}, 19: {
			on(own, &events.WorkPlanned{Run: 2, Partitions: []events.WorkPartition{
				{ID: "do", Buckets: 1, Workers: 1, Threads: 1, Form: events.FormPrecise},
			}}), begins(1), gives(1, started(18), 1),
		}, 20: {holds(started(18), 1, 1, "x"), heldTask(1)}}, "hold 1 begins after hold 1"},
		{"a hold that ends with a change", journal{12: {holdMoves(1, 1, true)}}, "1 of 2 changes of hold 1"},
		{"a hold that goes on without one", journal{12: {holdMoves(1, 2, false)}}, "2 of 2 changes of hold 1"},
		{"a hold whose task does not run", journal{11: {holdMoves(1, 1, false)}}, "hold 1 moves, and its task does not run"},
		{"a hold that was never there", journal{12: {holdMoves(7, 1, true)}}, "hold 7 moves, and is not there"},
		{"a token set of a stream that runs", journal{13: {setsToken("1")}}, "a reset of a work that runs"},
		{"a token set of a stream that may run", journal{16: {again()}, 17: {setsToken("1")}}, "the token of a stream is set that may go on"},
	} {
		last := slices.Max(slices.Collect(maps.Keys(f.entries)))
		h := aFoldedStream()
		maps.Copy(h, f.entries)
		if _, problem := hold(h, last-1); problem != "" {
			t.Errorf("%s: before it: %s", f.name, problem)
		}
		if _, problem := hold(h, last); !strings.Contains(problem, f.text) {
			t.Errorf("%s: %q, want %q", f.name, problem, f.text)
		}
	}
}

// A stream with a token or holds is kept, and the task of a hold as long as that; what ends the last of them gives up the
// stream.
func TestStreams_AreKeptAsLongAsTheyHaveAToken(t *testing.T) {
	h := aFoldedStream()
	w, _ := hold(h, 15)
	if !w.Holds(own) || !w.Holds(held) {
		t.Error("a stream with a token, or its hold, is not kept")
	}
	w, _ = hold(h, 16)
	if !w.Holds(own) || w.Holds(held) {
		t.Error("the task of a hold that has ended is kept, or the stream with a token is not")
	}
	h[18] = []events.Event{setsToken("")}
	if w, _ = hold(h, 18); w.Holds(own) {
		t.Error("a stream without a token and holds is kept")
	}
	h = aFoldedStream()
	h[16] = []events.Event{setsToken("")}
	h[17] = []events.Event{on(held, &events.Suspended{})}
	w, problem := hold(h, 17)
	gone := on(held, &events.Deleted{})
	if _, givenUp := w.Apply(&gone); problem != "" || !slices.Equal(givenUp, []events.TaskID{own}) {
		t.Errorf("the delete of the last hold gives up %s, %q", givenUp, problem)
	}
}

// Nobody asked for what an owner does with the tasks of holds: another one may ask for the same.
func TestStreams_TellWhatOwnersDoUnasked(t *testing.T) {
	tends := func(h journal, until uint64, ev events.Event, entry uint64) bool {
		w := &check.WorkFold{}
		for _, n := range slices.Sorted(maps.Keys(h)) {
			for i := range h[n] {
				if n < until {
					is := h[n][i]
					is.Position.Ref = events.RefOf(n, i)
					w.Apply(&is)
				}
			}
		}
		ev.Position.Ref = events.RefOf(entry, 1)
		return w.Tends(&ev)
	}
	asked := on(held, &events.Deleted{})
	asked.Caller.Principal = "ada"
	for name, got := range map[string]bool{
		"a hold":                            tends(aFoldedStream(), 9, holds(started(2), 1, 2, "x"), 9),
		"the suspension of a parked hold":   tends(aFoldedStream(), 10, on(held, &events.Suspended{}), 9),
		"the delete of a hold that is gone": tends(aFoldedStream(), 17, on(held, &events.Deleted{}), 17),
		"not a later suspension":            !tends(aFoldedStream(), 10, on(held, &events.Suspended{}), 10),
		"not the delete of a hold":          !tends(aFoldedStream(), 12, on(held, &events.Deleted{}), 12),
		"not what somebody has deleted":     !tends(aFoldedStream(), 17, asked, 17),
	} {
		if !got {
			t.Error(name)
		}
	}
}
