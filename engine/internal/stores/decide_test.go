package stores_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/item"
	"taskledger/projection"
	"taskledger/projection/items"
)

const start events.Millis = 1_800_000_000_000

// decide decides commands in one entry and folds it.
func decide(t *testing.T, s *projection.Shard, now events.Millis, commands ...command.Command) (answers []command.Answer) {
	t.Helper()
	items.Of(s).MakeDue(now, nil)
	var b events.Builder
	b.Reset(events.Entry{Number: s.Number + 1, Epoch: 1, Owner: "owner", Time: now, Prev: s.Hash})
	d := &command.Decider{State: s, Entry: &b, Now: now, Note: func(*projection.Task, *events.Event) {}}
	for _, c := range commands {
		answers = append(answers, d.Decide(c))
	}
	if d.Err != nil || len(d.Bugs) > 0 {
		t.Fatal(d.Err, d.Bugs)
	}
	if len(b.Entry.Events) > 0 {
		if _, err := b.Seal(); err != nil {
			t.Fatal(err)
		}
		s.Seal(&b.Entry)
	}
	return answers
}

// adds is an update that adds so many items of so much data to a group.
func adds(n int, group string, at item.When, data int) *stores.Update {
	u := &item.Update{Client: 1}
	for range n {
		u.Adds = append(u.Adds, item.Add{Group: group, At: at, Data: bytes.Repeat([]byte("x"), data)})
	}
	return stores.UpdateOf("s", u)
}

func claimItem(random uint64) *stores.Claim {
	return stores.ClaimOf("s", &item.Claim{Client: 2, Group: "g", Duration: time.Hour}, random)
}

func TestClaim_TakesOneOfTheOldestByItsNumber(t *testing.T) {
	for random, want := range map[uint64]uint64{0: 1, 63: 64, 64: 1, 1<<64 - 1: 64} {
		s := projection.NewShard(0)
		decide(t, s, start, adds(100, "g", 1, 0))
		a := decide(t, s, start, claimItem(random))[0]
		if a.Code != command.AnswerOK || items.Of(s).Item("s", want) != nil || items.Of(s).Item("s", 101) == nil {
			t.Errorf("number %d: answer %+v, want item %d taken", random, a, want)
		}
	}
}

// Commands of an entry see what the ones before them did.
func TestClaim_OfOneEntryTakeItemAfterItem(t *testing.T) {
	s := projection.NewShard(0)
	answers := decide(t, s, start, claimItem(0), adds(1, "g", 0, 3), claimItem(0), claimItem(0))
	if answers[0].Data != nil || answers[2].Data == nil || answers[3].Data != nil {
		t.Errorf("answers %+v, want the second claim alone to get the item", answers)
	}
}

// Answers travel in one message, whatever was claimed.
func TestWithData_StaysWithinAMessageAndLeavesWhatWasRecordedAsItIs(t *testing.T) {
	s := projection.NewShard(0)
	for range 5 {
		decide(t, s, start, adds(1, "g", 1, 100_000))
	}
	commands := slices.Repeat([]command.Command{claimItem(0)}, 6)
	answers := decide(t, s, start, commands...)
	recorded := slices.Clone(answers)
	got := 0
	completed := stores.WithData(items.Of(s), commands, answers, func(*stores.Claim) { got++ })
	if n := len(command.EncodeAnswers(completed)); n > command.MaxAnswerBytes || n < command.MaxAnswerBytes/3 {
		t.Errorf("answers of %d bytes", n)
	}
	whole := 0
	for i, a := range completed[:5] {
		it, all, err := stores.DecodeClaimed(&item.Claim{Group: "g"}, a.Data)
		if err != nil || it.ID != int64(6+i) || all != (len(it.Data) == 100_000) {
			t.Errorf("claimed %d with %d bytes, whole %t, %v", it.ID, len(it.Data), all, err)
		}
		if all {
			whole++
		}
	}
	if got != 5 || whole != 2 || completed[5].Data != nil || fmt.Sprint(answers) != fmt.Sprint(recorded) {
		t.Errorf("%d claims got an item, %d with its data", got, whole)
	}
}

func TestUpdate_OfTooManyGroupsThatItDoesNotNameIsRefusedByName(t *testing.T) {
	s := projection.NewShard(0)
	u := &item.Update{Client: 1}
	for i := range 70 {
		decide(t, s, start, adds(1, fmt.Sprintf("%0256d", i), 1, 0))
		u.Changes = append(u.Changes, item.Change{ID: int64(i + 1)})
	}
	before := s.Number
	if a := decide(t, s, start, stores.UpdateOf("s", u))[0]; a.Code != command.AnswerInvalid || !strings.HasPrefix(a.Text, "updates: ") || s.Number != before {
		t.Errorf("answer %+v", a)
	}
	u.Changes = u.Changes[:60]
	if a := decide(t, s, start, stores.UpdateOf("s", u))[0]; a.Code != command.AnswerOK || s.Number == before {
		t.Errorf("of fewer: answer %+v", a)
	}
}

func TestPage_GoesOnBehindWhatIsNotAvailable(t *testing.T) {
	s := projection.NewShard(0)
	for range 21 {
		decide(t, s, start, adds(1000, "g", item.When(start+1), 0))
	}
	decide(t, s, start, adds(2, "g", 1, 0))
	page := func(after int64) stores.Found {
		f, err := stores.DecodeFound(look(s, stores.PageOf("s", item.Page{Group: "g", After: after})).Data)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := page(0)
	if len(first.Items) != 0 || !first.More || first.Last != 20_000 {
		t.Fatalf("%d items, more %t, last %d", len(first.Items), first.More, first.Last)
	}
	if f := page(first.Last); len(f.Items) != 2 || f.More {
		t.Errorf("%d items, more %t", len(f.Items), f.More)
	}
}

func TestGroups_OfManyComeInSeveralAnswers(t *testing.T) {
	s := projection.NewShard(0)
	for i := range 2500 {
		decide(t, s, start, adds(1, fmt.Sprintf("%0256d", i), 1, 0))
	}
	var all []string
	for more, after := true, ""; more; after = all[len(all)-1] {
		a := look(s, &stores.Groups{Store: "s", After: after})
		if len(a.Data) > command.MaxAnswerBytes+16 {
			t.Errorf("answer of %d bytes", len(a.Data))
		}
		groups, another, err := stores.DecodeGroups(a.Data)
		if more = another; err != nil || len(groups) == 0 {
			t.Fatal(groups, err)
		}
		for _, g := range groups {
			all = append(all, g.Name)
			if g.Available != 1 || g.Waiting != 0 || g.Claimed != 0 {
				t.Errorf("%+v, want one that is available", g)
			}
		}
	}
	if len(all) != 2500 || !slices.IsSorted(all) {
		t.Errorf("%d groups, sorted %t", len(all), slices.IsSorted(all))
	}
}

// look answers a question within a budget that bounds the items of a page to 20,000.
func look(s *projection.Shard, c command.Command) command.Answer {
	b := command.Budget{Items: 20_000, Over: func() bool { return false }}
	return stores.Find(items.Of(s), c, start, b).Answer()
}

// A question that has used up its budget is answered with what it has found, and goes on from there; each gets on by
// one at least.
func TestLook_StopsWhereItsBudgetEnds(t *testing.T) {
	s := projection.NewShard(0)
	var ids []int64
	for i := range 300 {
		decide(t, s, start, adds(1, fmt.Sprintf("%03d", i/2), 1, 0))
		ids = append(ids, int64(i+1))
	}
	for name, b := range map[string]command.Budget{
		"of items": {Items: 1, Over: func() bool { return false }},
		"of time":  {Items: math.MaxInt, Over: func() bool { return true }},
	} {
		for _, c := range []command.Command{
			&stores.Read{Store: "s", IDs: ids},
			&stores.Groups{Store: "s"},
			stores.PageOf("s", item.Page{Group: "007"}),
		} {
			found := stores.Find(items.Of(s), c, start, b)
			if found.Items < 1 || found.Items > 64 {
				t.Errorf("%T scanned %d items within a budget %s", c, found.Items, name)
			}
		}
		groups, more, err := stores.DecodeGroups(stores.Find(items.Of(s), &stores.Groups{Store: "s"}, start, b).Answer().Data)
		if err != nil || !more || len(groups) == 0 || len(groups) == 150 {
			t.Errorf("%d groups, more %t, %v within a budget %s", len(groups), more, err, name)
		}
	}
}
