package item_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/item"
)

const text, noText = "é", "\xff"

// refusal checks that an error names a field and a limit.
func refusal(t *testing.T, name string, err error, field, limit string) {
	t.Helper()
	invalid, is := errors.AsType[*events.InvalidError](err)
	switch {
	case !is:
		t.Errorf("%s: %v, want *events.InvalidError", name, err)
	case invalid.Field != field || !strings.Contains(invalid.Problem, limit):
		t.Errorf("%s: field %q, %q; want field %q and %q", name, invalid.Field, invalid.Problem, field, limit)
	}
}

func ids(n int) (all []int64) {
	for i := range n {
		all = append(all, int64(i+1))
	}
	return all
}

func TestUpdate_WhatBreaksARuleIsRefusedWithItsFieldAndTheLimit(t *testing.T) {
	add := func(a item.Add) *item.Update { return &item.Update{Client: 1, Adds: []item.Add{a}} }
	change := func(c item.Change) *item.Update { return &item.Update{Client: 1, Changes: []item.Change{c}} }
	data := func(n int) []byte { return make([]byte, n) }
	for name, c := range map[string]struct {
		u            *item.Update
		field, limit string
	}{
		"empty":                       {&item.Update{Client: 1}, "update", "empty"},
		"empty under a key":           {&item.Update{Client: 1, Key: "k"}, "update", "empty"},
		"no client":                   {&item.Update{Deletes: ids(1)}, "clientid", "9007199254740992"},
		"a client below 0":            {&item.Update{Client: -1, Deletes: ids(1)}, "clientid", "9007199254740992"},
		"a client past 2^53":          {&item.Update{Client: 1<<53 + 1, Deletes: ids(1)}, "clientid", "9007199254740992"},
		"a long key":                  {&item.Update{Client: 1, Key: strings.Repeat("k", item.MaxKeyBytes+1), Deletes: ids(1)}, "key", fmt.Sprint(item.MaxKeyBytes)},
		"a key that is no text":       {&item.Update{Client: 1, Key: noText, Deletes: ids(1)}, "key", "printable ASCII"},
		"a key of two lines":          {&item.Update{Client: 1, Key: "a\nb", Deletes: ids(1)}, "key", "printable ASCII"},
		"an age without a key":        {&item.Update{Client: 1, Age: 1, Deletes: ids(1)}, "age", "without a key"},
		"an age below 0":              {&item.Update{Client: 1, Key: "k", Age: -1, Deletes: ids(1)}, "age", "want 0 to"},
		"within less than nothing":    {&item.Update{Client: 1, Key: "k", Age: 1, Within: -1, Deletes: ids(1)}, "within", "want 0"},
		"within others of no age":     {&item.Update{Client: 1, Key: "k", Within: 1, Deletes: ids(1)}, "within", "without an age"},
		"depends on 0":                {&item.Update{Client: 1, Depends: []int64{1, 0}}, "depends[1]", "1 to 9007199254740992"},
		"deletes an id past 2^53":     {&item.Update{Client: 1, Deletes: []int64{1<<53 + 1}}, "deletes[0]", "1 to 9007199254740992"},
		"updates an id below 0":       {change(item.Change{ID: -1}), "updates[0].id", "1 to 9007199254740992"},
		"deletes twice":               {&item.Update{Client: 1, Deletes: []int64{3, 3}}, "deletes", "task 3 is in deletes already"},
		"updates twice":               {&item.Update{Client: 1, Changes: []item.Change{{ID: 3}, {ID: 3}}}, "updates", "task 3 is in updates already"},
		"updates what it deletes":     {&item.Update{Client: 1, Deletes: ids(3), Changes: []item.Change{{ID: 3}}}, "updates", "task 3 is in deletes already"},
		"adds without a group":        {add(item.Add{}), "adds[0].group", "1 to 256"},
		"adds to a long group":        {add(item.Add{Group: strings.Repeat("g", 257)}), "adds[0].group", "256"},
		"adds to a group of no text":  {add(item.Add{Group: noText}), "adds[0].group", "UTF-8"},
		"updates a long group":        {change(item.Change{ID: 1, Group: strings.Repeat("g", 257)}), "updates[0].group", "256"},
		"adds past 9999":              {add(item.Add{Group: "g", At: item.MaxTime + 1}), "adds[0].timespec", "year 9999"},
		"adds in 1000 years and more": {add(item.Add{Group: "g", At: -item.MaxAfter - 1}), "adds[0].timespec", "1,000 years"},
		"adds at the smallest number": {add(item.Add{Group: "g", At: math.MinInt64}), "adds[0].timespec", "1,000 years"},
		"updates past 9999":           {change(item.Change{ID: 1, At: item.MaxTime + 1}), "updates[0].timespec", "year 9999"},
		"keeps data beside new ones":  {change(item.Change{ID: 1, Keep: true, Data: data(1)}), "updates[0].keep", "one of them"},
		"1,001 ids":                   {&item.Update{Client: 1, Depends: ids(500), Deletes: ids(501)}, "update", "1000"},
		"1,001 ids and adds":          {&item.Update{Client: 1, Depends: ids(1000), Adds: []item.Add{{Group: "g"}}}, "update", "1000"},
		"data beyond 256 KiB":         {add(item.Add{Group: "g", Data: data(item.MaxBytes - item.ItemBytes)}), "update", "262144"},
		"data of two beyond 256 KiB": {&item.Update{Client: 1, Adds: []item.Add{{Group: "g", Data: data(item.MaxBytes / 2)}},
			Changes: []item.Change{{ID: 1, Data: data(item.MaxBytes / 2)}}}, "update", "262144"},
	} {
		refusal(t, name, c.u.Validate(), c.field, c.limit)
	}
}

func TestUpdate_AtItsLimitsIsAccepted(t *testing.T) {
	for name, u := range map[string]*item.Update{
		"depends alone":             {Client: 1, Depends: ids(1)},
		"depends on what it takes":  {Client: 1, Depends: []int64{1, 1, 2}, Deletes: ids(1), Changes: []item.Change{{ID: 2}}},
		"the largest numbers":       {Client: 1 << 53, Depends: []int64{1 << 53}},
		"the longest names":         {Client: 1, Key: strings.Repeat("k", item.MaxKeyBytes), Adds: []item.Add{{Group: strings.Repeat(text, 128)}}},
		"1,000 ids and adds":        {Client: 1, Depends: ids(999), Adds: []item.Add{{Group: "g"}}},
		"256 KiB":                   {Client: 1, Adds: []item.Add{{Group: "g", Data: make([]byte, item.MaxBytes-item.ItemBytes-1)}}},
		"bytes that are no text":    {Client: 1, Adds: []item.Add{{Group: "g", Data: []byte(noText)}}},
		"times at their ends":       {Client: 1, Adds: []item.Add{{Group: "g", At: item.MaxTime}, {Group: "g", At: 1}, {Group: "g", At: -1}}},
		"keeps data, and none come": {Client: 1, Changes: []item.Change{{ID: 1, Keep: true, Data: []byte{}}}},
	} {
		if err := u.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClaim_WhatBreaksARuleIsRefusedWithItsFieldAndTheLimit(t *testing.T) {
	sound := item.Claim{Client: 1, Group: "g", Duration: time.Second}
	for name, c := range map[string]struct {
		change       func(*item.Claim)
		field, limit string
	}{
		"no duration":          {func(c *item.Claim) { c.Duration = 0 }, "duration", "1ms to 24h"},
		"a duration below 0":   {func(c *item.Claim) { c.Duration = -time.Second }, "duration", "1ms to 24h"},
		"less than 1 ms":       {func(c *item.Claim) { c.Duration = time.Millisecond - 1 }, "duration", "1ms to 24h"},
		"more than a day":      {func(c *item.Claim) { c.Duration = 24*time.Hour + 1 }, "duration", "1ms to 24h"},
		"a wait below 0":       {func(c *item.Claim) { c.Wait = -1 }, "wait", "0 to 1m"},
		"more than a minute":   {func(c *item.Claim) { c.Wait = time.Minute + 1 }, "wait", "0 to 1m"},
		"no group":             {func(c *item.Claim) { c.Group = "" }, "group", "1 to 256"},
		"no client":            {func(c *item.Claim) { c.Client = 0 }, "clientid", "9007199254740992"},
		"a long key":           {func(c *item.Claim) { c.Key = strings.Repeat("k", item.MaxKeyBytes+1) }, "key", fmt.Sprint(item.MaxKeyBytes)},
		"depends on 0":         {func(c *item.Claim) { c.Depends = []int64{0} }, "depends[0]", "1 to 9007199254740992"},
		"depends on too many":  {func(c *item.Claim) { c.Depends = ids(1001) }, "depends", "1000"},
		"a group of no text":   {func(c *item.Claim) { c.Group = noText }, "group", "UTF-8"},
		"a name of 257 bytes":  {func(c *item.Claim) { c.Group = strings.Repeat("g", 257) }, "group", "256"},
		"a client past 2^53":   {func(c *item.Claim) { c.Client = 1<<53 + 1 }, "clientid", "9007199254740992"},
		"an id of a dependent": {func(c *item.Claim) { c.Depends = []int64{1, 1<<53 + 1} }, "depends[1]", "9007199254740992"},
	} {
		is := sound
		c.change(&is)
		refusal(t, name, is.Validate(), c.field, c.limit)
	}
	for _, d := range []time.Duration{time.Millisecond, 24 * time.Hour} {
		at := item.Claim{Client: 1 << 53, Group: text, Duration: d, Wait: time.Minute, Depends: ids(1000), Key: strings.Repeat("k", item.MaxKeyBytes)}
		if err := at.Validate(); err != nil {
			t.Errorf("a claim for %s: %v", d, err)
		}
	}
}

func TestPage_WhatBreaksARuleIsRefusedWithItsFieldAndTheLimit(t *testing.T) {
	for name, c := range map[string]struct {
		p            item.Page
		field, limit string
	}{
		"no group":         {item.Page{}, "group", "1 to 256"},
		"after below 0":    {item.Page{Group: "g", After: -1}, "after", "0 to 9007199254740992"},
		"after past 2^53":  {item.Page{Group: "g", After: 1<<53 + 1}, "after", "0 to 9007199254740992"},
		"a limit below 0":  {item.Page{Group: "g", Limit: -1}, "limit", "0 or more"},
		"a group too long": {item.Page{Group: strings.Repeat("g", 257)}, "group", "256"},
	} {
		refusal(t, name, c.p.Validate(), c.field, c.limit)
	}
	if err := (&item.Page{Group: "g", After: 1 << 53}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateStore_TakesNamesOf1To64OfItsLetters(t *testing.T) {
	for _, name := range []string{"a", "default", "A-Z.a_z:0", strings.Repeat("s", 64)} {
		if err := item.ValidateStore(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", strings.Repeat("s", 65), "a/b", "a b", text, noText, "a~", "a\x00"} {
		refusal(t, fmt.Sprintf("%q", name), item.ValidateStore(name), "store", "")
	}
}

func TestRequestID_IsOfAllThatWasAskedForAndNotOfHowItTravelled(t *testing.T) {
	of := func(change func(u *item.Update)) string {
		u := &item.Update{Client: 1, Key: "k", Depends: []int64{1}, Deletes: []int64{2}, Changes: []item.Change{{ID: 3, Group: "g", At: 4, Data: []byte("d")}},
			Adds: []item.Add{{Group: "g", At: 5, Data: []byte("d")}}}
		change(u)
		return u.RequestID()
	}
	first := of(func(*item.Update) {})
	seen := map[string]string{first: "the request itself"}
	for name, change := range map[string]func(*item.Update){
		"client": func(u *item.Update) { u.Client = 2 }, "key": func(u *item.Update) { u.Key = "l" },
		"depends": func(u *item.Update) { u.Depends = nil }, "deletes": func(u *item.Update) { u.Deletes[0] = 9 },
		"id moved to deletes": func(u *item.Update) { u.Depends, u.Deletes = nil, []int64{1, 2} },
		"update's id":         func(u *item.Update) { u.Changes[0].ID = 9 }, "update's group": func(u *item.Update) { u.Changes[0].Group = "" },
		"update's time": func(u *item.Update) { u.Changes[0].At = 9 }, "update's data": func(u *item.Update) { u.Changes[0].Data = nil },
		"keep":      func(u *item.Update) { u.Changes[0].Data, u.Changes[0].Keep = nil, true },
		"add group": func(u *item.Update) { u.Adds[0].Group = "h" }, "add time": func(u *item.Update) { u.Adds[0].At = 9 },
		"add data": func(u *item.Update) { u.Adds[0].Data = []byte("e") },
	} {
		id := of(change)
		if was, there := seen[id]; there {
			t.Errorf("a change of %s has the id of %s", name, was)
		}
		seen[id] = name
	}
	none, empty := of(func(u *item.Update) { u.Adds[0].Data = nil }), of(func(u *item.Update) { u.Adds[0].Data = []byte{} })
	if none != empty {
		t.Error("no data and empty data are told apart")
	}
	if of(func(u *item.Update) { u.Key = "" }) != "" {
		t.Error("a request without a key has an id")
	}
	if events.RequestKey(first) != "1/k" {
		t.Errorf("the key of %q is %q, want 1/k", first, events.RequestKey(first))
	}
}

func TestRequestID_OfTheLargestClientAndKeyFitsAnEvent(t *testing.T) {
	c := item.Claim{Client: 1 << 53, Key: strings.Repeat("k", item.MaxKeyBytes)}
	if n := len(c.RequestID()); n > events.MaxNameBytes {
		t.Errorf("%d bytes exceed the limit of %d", n, events.MaxNameBytes)
	}
}

func TestRequestID_OfAClaimIsNotOfItsWait(t *testing.T) {
	c := item.Claim{Client: 1, Key: "k", Group: "g", Duration: time.Second}
	waits, longer, other := c, c, c
	waits.Wait, longer.Duration, other.Group = time.Second, 2*time.Second, "h"
	if waits.RequestID() != c.RequestID() || longer.RequestID() == c.RequestID() || other.RequestID() == c.RequestID() {
		t.Error("want the id to be of group and duration, not of the wait")
	}
}

func TestConflictError_NamesTheStoreAndEveryProblem(t *testing.T) {
	err := &item.ConflictError{Store: "crawl", Problems: []item.Problem{{Field: "depends", ID: 7, Kind: item.NotThere, Text: "it is not there"}, {Field: "adds", Text: "bad"}}}
	if want := "store crawl: depends: task 7: it is not there; adds: bad"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}
