package check_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/item"
)

// entries lists the events of each entry of a shard. Entry n has time 1000n and is committed at 10n by the clock of the
// run.
func entries() [][]events.Event {
	one, four := events.StoreItem("crawl", 1), events.StoreItem("crawl", 4)
	all := [][]events.Event{
		{{Task: one, Seq: 1, RequestID: events.ItemRequestID(7, "a", nil), Body: &events.ItemAdded{ID: 1, Group: "g", At: 1000, Owner: 7, Data: events.Bytes([]byte("x"))}}},
		{{Task: one, Seq: 2, Prev: events.RefOf(1, 0), Body: &events.ItemReplaced{From: 1, To: 2, At: 7000, Owner: 8}}},
		{{Task: one, Seq: 3, Prev: events.RefOf(2, 0), Body: &events.ItemReplaced{From: 2, To: 3, At: 8000, Owner: 8}}},
		{
			{Task: one, Seq: 4, Prev: events.RefOf(3, 0), RequestID: events.ItemRequestID(8, "b", nil), Body: &events.ItemRemoved{ID: 3, Owner: 8}},
			{Task: four, Seq: 1, Body: &events.ItemAdded{ID: 4, Group: "h", At: 1, Owner: 8, Data: events.Bytes(nil)}},
		},
	}
	for n := range all {
		for i := range all[n] {
			all[n][i].At, all[n][i].Position.Ref = events.Millis(1000*(n+1)), events.RefOf(uint64(n+1), i)
		}
	}
	return all
}

// The calls of the sound history.
const (
	added = iota
	addedAgain
	claim
	late // whose item is another's
	none // a claim that finds nothing available
	missing
	ids
	group
	renewed
	checked
	other
	finished
	lost
	nothing // a claim of an empty group
)

func calls() []history.ItemCall {
	two := item.Item{ID: 2, Group: "g", At: 7000, Owner: 8, Claims: 1, Data: []byte("x")}
	add := &item.Update{Client: 7, Key: "a", Adds: []item.Add{{Group: "g", Data: []byte("x")}}}
	one := []item.Item{{ID: 1, Group: "g", At: 1000, Owner: 7, Data: []byte("x")}}
	all := []history.ItemCall{
		added:      {Call: 5, Return: 15, Update: add, Items: one},
		addedAgain: {Call: 16, Return: 17, Update: add, Items: one},
		claim:      {Call: 18, Return: 25, Claim: &item.Claim{Client: 8, Group: "g", Duration: 5 * time.Second, Depends: []int64{1}}, Items: []item.Item{two}},
		late: {Call: 21, Return: 24, Answer: history.Refused, Update: &item.Update{Client: 9, Deletes: []int64{2}, Changes: []item.Change{{ID: 1}}},
			Problems: []item.Problem{{Field: "deletes", ID: 2, Kind: item.Held}, {Field: "updates", ID: 1, Kind: item.NotThere}}},
		none: {Call: 26, Return: 28, Claim: &item.Claim{Client: 9, Group: "g", Duration: time.Second}},
		missing: {Call: 26, Return: 28, Answer: history.Refused, Claim: &item.Claim{Client: 9, Group: "g", Duration: time.Second, Depends: []int64{2, 1}},
			Problems: []item.Problem{{Field: "depends", ID: 1, Kind: item.NotThere}}},
		ids:      {Call: 26, Return: 28, Read: []int64{1, 2}, Items: []item.Item{two}},
		group:    {Call: 26, Return: 28, Group: "g", Items: []item.Item{two}},
		renewed:  {Call: 29, Return: 35, Update: &item.Update{Client: 8, Changes: []item.Change{{ID: 2, At: -5000, Keep: true}}}, Items: []item.Item{{ID: 3, Group: "g", At: 8000, Owner: 8}}},
		checked:  {Call: 36, Return: 37, Update: &item.Update{Client: 8, Depends: []int64{3}}},
		other:    {Call: 36, Return: 37, Answer: history.Refused, OtherRequest: true, Update: &item.Update{Client: 7, Key: "a", Adds: []item.Add{{Group: "h"}}}},
		finished: {Call: 38, Return: 45, Update: &item.Update{Client: 8, Key: "b", Deletes: []int64{3}, Adds: []item.Add{{Group: "h", At: 1}}}, Items: []item.Item{{ID: 4, Group: "h", At: 1, Owner: 8}}},
		lost:     {Call: 46, Answer: history.Unknown, Update: &item.Update{Client: 9, Deletes: []int64{4}}},
		nothing:  {Call: 46, Return: 47, Claim: &item.Claim{Client: 9, Group: "g", Duration: time.Second}},
	}
	for i := range all {
		all[i].Store = "crawl"
		if all[i].Answer == "" {
			all[i].Answer = history.OK
		}
	}
	return all
}

func judgeItems(t *testing.T, all [][]events.Event, told []history.ItemCall) []check.ItemViolation {
	t.Helper()
	var s check.ItemJournal
	for n, of := range all {
		s.Entry(&events.Entry{Number: uint64(n + 1), Time: events.Millis(1000 * (n + 1))}, int64(10*(n+1)))
		for i := range of {
			if problem := s.Apply(&of[i]); problem != "" {
				t.Fatal(problem)
			}
		}
	}
	return check.JudgeItems(told, []*check.ItemJournal{&s})
}

func TestJudge_FindsNothingWrongWithASoundHistory(t *testing.T) {
	for _, v := range judgeItems(t, entries(), calls()) {
		t.Error(v)
	}
	told := calls()
	for _, i := range []int{claim, renewed, finished} { // nobody heard the answer
		told[i].Answer, told[i].Return, told[i].Items = history.Unknown, 0, nil
	}
	told[addedAgain].Items[0].Group = "g"
	for _, v := range judgeItems(t, entries(), told) {
		t.Errorf("of unknown outcome: %v", v)
	}
}

// The item has another id once the first page has told it.
func TestJudge_TakesEachPageOfAGroupForOneMoment(t *testing.T) {
	first, second := calls()[added].Items[0], calls()[claim].Items[0]
	later := item.Item{ID: 3, Group: "g", At: 8000, Owner: 8, Claims: 2, Data: []byte("x")}
	for name, test := range map[string]struct {
		items []item.Item
		pages []int
		sound bool
	}{
		"two pages":                      {[]item.Item{first, second}, []int{1}, true},
		"one page":                       {[]item.Item{first, second}, nil, false},
		"an item that comes after it":    {[]item.Item{first, later}, []int{1}, false},
		"a second page that goes back":   {[]item.Item{second, first}, []int{1}, false},
		"a last page that tells nothing": {[]item.Item{second}, []int{1}, true},
		"a page that leaves one out":     {nil, nil, false},
	} {
		told := calls()
		told[group].Call, told[group].Return, told[group].Items, told[group].Pages = 12, 28, test.items, test.pages
		if all := judgeItems(t, entries(), told); (len(all) == 0) != test.sound {
			t.Errorf("%s: %v", name, all)
		}
	}
}

func TestJudge_FindsWhatTheJournalContradicts(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func([]history.ItemCall)
		want  string
	}{
		"an acknowledged update is not there": {func(all []history.ItemCall) {
			all[added].Update = &item.Update{Client: 7, Key: "z", Adds: all[added].Update.Adds}
		}, "its request is not in the journal"},
		"an acknowledged delete is not there":          {func(all []history.ItemCall) { all[lost].Answer = history.OK }, "item 4 was not removed"},
		"an update adds something else":                {func(all []history.ItemCall) { all[addedAgain].Update = all[other].Update }, "does not add"},
		"a change was done once for two calls":         {func(all []history.ItemCall) { all[none] = all[renewed] }, "for another call"},
		"an update was done before it was called":      {func(all []history.ItemCall) { all[renewed].Call, all[renewed].Return = 31, 36 }, "before it was called"},
		"an update was acknowledged before its entry":  {func(all []history.ItemCall) { all[renewed].Return = 29 }, "before its entry was there"},
		"another id is told":                           {func(all []history.ItemCall) { all[added].Items = []item.Item{{ID: 2, Group: "g", At: 1000, Owner: 7}} }, "another id, time or owner"},
		"a claim is told as another one":               {func(all []history.ItemCall) { all[claim].Items[0].Claims = 2 }, "another number of claims"},
		"claims are read that were not made":           {func(all []history.ItemCall) { all[ids].Items[0].Claims = 0 }, "right at no moment"},
		"other data are told":                          {func(all []history.ItemCall) { all[claim].Items[0].Data = []byte("y") }, "other data"},
		"another group is told":                        {func(all []history.ItemCall) { all[finished].Items[0].Group = "g" }, "another group"},
		"an item of another group is claimed":          {func(all []history.ItemCall) { all[claim].Claim.Group = "h" }, "was taken"},
		"a claim lasts longer than asked":              {func(all []history.ItemCall) { all[claim].Claim.Duration = time.Second }, "claimed until"},
		"a claim was granted that depends on nothing":  {func(all []history.ItemCall) { all[claim].Claim.Depends = []int64{9} }, "depends on was not there"},
		"an update was done that depends on nothing":   {func(all []history.ItemCall) { all[finished].Update.Depends = []int64{2} }, "depends on was not there"},
		"a check finds what is not there":              {func(all []history.ItemCall) { all[checked].Update.Depends = []int64{2} }, "right at no moment"},
		"a claim finds nothing, and something is free": {func(all []history.ItemCall) { all[nothing].Claim.Group = "h" }, "right at no moment"},
		"a claim finds nothing, and depends on it":     {func(all []history.ItemCall) { all[none].Claim.Depends = []int64{1} }, "right at no moment"},
		"a refusal left something":                     {func(all []history.ItemCall) { all[renewed].Answer, all[renewed].Items = history.Refused, nil }, "no call that was recorded"},
		"a refusal is wrong":                           {func(all []history.ItemCall) { all[late].Problems[0].ID = 3 }, "right at no moment"},
		"a refusal leaves a problem out":               {func(all []history.ItemCall) { all[late].Problems = all[late].Problems[:1] }, "right at no moment"},
		"an owner is told that his item is held":       {func(all []history.ItemCall) { all[late].Update.Client = 8 }, "right at no moment"},
		"another request that there never was":         {func(all []history.ItemCall) { all[other].Update = all[added].Update }, "the journal has none"},
		"an item is read that has gone":                {func(all []history.ItemCall) { all[ids].Call, all[ids].Return = 41, 42 }, "right at no moment"},
		"an item is left out of its group":             {func(all []history.ItemCall) { all[group].Items = nil }, "right at no moment"},
		"an item was claimed that is still there": {func(all []history.ItemCall) {
			all[claim].Answer, all[claim].Items, all[claim].Problems = history.Refused, nil, []item.Problem{{Field: "claim", ID: 2}}
		}, "no longer there"},
		"nobody asked": {func(all []history.ItemCall) { all[claim].Store = "another" }, "no call that was recorded"},
	} {
		told := calls()
		test.spoil(told)
		found := judgeItems(t, entries(), told)
		if len(found) == 0 || !strings.Contains(found[0].Text, test.want) && !strings.Contains(found[len(found)-1].Text, test.want) {
			t.Errorf("%s: found %v, want %q", name, found, test.want)
		}
	}
}

// A claim must find its item available, also the claim of who has it.
func TestJudge_FindsAClaimOfWhatIsHeld(t *testing.T) {
	all, told := entries(), calls()
	all[2][0].Body = &events.ItemReplaced{From: 2, To: 3, At: 8000, Owner: 8}
	told[renewed] = history.ItemCall{Store: "crawl", Call: 29, Return: 35, Answer: history.OK, Claim: &item.Claim{Client: 8, Group: "g", Duration: 5 * time.Second},
		Items: []item.Item{{ID: 3, Group: "g", At: 8000, Owner: 8, Data: []byte("x")}}}
	if found := judgeItems(t, all, told); len(found) == 0 || !strings.Contains(found[0].Text, "was claimed at 3000, and is of 8 until 7000") {
		t.Errorf("found %v", found)
	}
}

// A worker gives up what it has claimed as often as it may, and what was claimed more often.
func TestJudge_FindsWhatAWorkerGivesUpWrongly(t *testing.T) {
	for data, want := range map[string]string{
		"{\"group\":\"g\",\"claims\":1}\nx": "",
		"{\"group\":\"g\",\"claims\":0}\nx": "after 0 claims, it has 1, and the worker allows 1",
		"{\"group\":\"g\",\"claims\":2}\nx": "after 2 claims, it has 1, and the worker allows 1",
		"{\"group\":\"h\",\"claims\":1}\nx": "as another one",
		"{\"group\":\"g\",\"claims\":1}\ny": "as another one",
		"x":                                 "is not one item",
	} {
		all, told := entries()[:3], calls()[:late]
		all[2][0].Body = &events.ItemRemoved{ID: 2, Owner: 8}
		failed := events.Event{Task: events.StoreItem("crawl", 3), Seq: 1, Body: &events.ItemAdded{ID: 3, Group: "g/err", At: 3000, Owner: 8,
			Data: events.Bytes([]byte(data))}}
		failed.At, failed.Position.Ref = 3000, events.RefOf(3, 1)
		all[2] = append(all[2], failed)
		u := &item.Update{Client: 8, Deletes: []int64{2}, Adds: []item.Add{{Group: "g/err", Data: []byte(data)}}}
		told = append(told, history.ItemCall{Store: "crawl", Call: 29, Return: 35, Answer: history.OK, Update: u, MaxClaims: 1,
			Items: []item.Item{{ID: 3, Group: "g/err", At: 3000, Owner: 8, Data: []byte(data)}}})
		found := judgeItems(t, all, told)
		if want == "" && len(found) > 0 || want != "" && (len(found) == 0 || !strings.Contains(found[0].Text, want)) {
			t.Errorf("%q: found %v, want %q", data, found, want)
		}
	}
}

// Of what was lost, or is corrupt, nothing is held against anybody.
func TestJudge_LeavesOutWhatIsNotKnown(t *testing.T) {
	told := calls()[:1]
	for name, spoil := range map[string]func(*check.ItemJournal){
		"a part was lost": func(s *check.ItemJournal) { s.Lost() },
		"it is broken":    func(s *check.ItemJournal) { s.Broken = true },
	} {
		var s check.ItemJournal
		spoil(&s)
		if found := check.JudgeItems(told, []*check.ItemJournal{&s}); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
	if found := check.JudgeItems(told, []*check.ItemJournal{{}}); len(found) != 1 {
		t.Errorf("of an empty journal: %v", found)
	}
}
