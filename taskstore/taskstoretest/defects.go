package taskstoretest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"taskledger/item"
	"taskledger/taskstore"
)

// defects are those of the original, which were found by running it, and bad input.
var defects = []property{
	{"IDIsRefusedTwiceInOneUpdate", func(b *bench) {
		it := b.add("g", "x")
		b.invalid(taskstore.Update{Changes: []taskstore.Change{keep(it.ID, 0), keep(it.ID, 0)}}, "updates")
		b.invalid(taskstore.Update{Changes: []taskstore.Change{keep(it.ID, 0)}, Deletes: []int64{it.ID}}, "updates")
		b.invalid(taskstore.Update{Deletes: []int64{it.ID, it.ID}}, "deletes")
		if all := b.whole(); len(all) != 1 {
			b.Errorf("%d items of one", len(all))
		}
	}},
	{"BadInputNamesItsField", func(b *bench) {
		b.invalid(taskstore.Update{}, "update")
		b.invalid(taskstore.Update{Adds: []taskstore.Add{{}}}, "adds[0].group")
		b.invalid(taskstore.Update{Adds: []taskstore.Add{{Group: strings.Repeat("g", 257)}}}, "adds[0].group")
		b.invalid(taskstore.Update{Adds: []taskstore.Add{{Group: "\xff"}}}, "adds[0].group")
		b.invalid(taskstore.Update{Adds: []taskstore.Add{{Group: "g", At: item.MaxTime + 1}}}, "adds[0].timespec")
		b.invalid(taskstore.Update{Deletes: []int64{0}}, "deletes[0]")
		b.invalid(taskstore.Update{Depends: []int64{item.MaxNumber + 1}}, "depends[0]")
		b.invalid(taskstore.Update{Client: -1, Depends: []int64{1}}, "clientid")
		b.invalid(taskstore.Update{Depends: make([]int64, item.MaxIDs+1)}, "update")
		b.invalid(taskstore.Update{Adds: []taskstore.Add{{Group: "g", Data: make([]byte, item.MaxBytes)}}}, "update")
		for _, c := range []taskstore.Claim{{Group: "g"}, {Group: "g", Duration: -1}, {Group: "g", Duration: 25 * time.Hour}, {Duration: time.Second}, {Group: "g", Duration: time.Second, Wait: time.Hour}} {
			if _, err := b.s.Claim(b.ctx, &c); !isInvalid(err) {
				b.Errorf("claim %+v: %v", c, err)
			}
		}
		for _, id := range []int64{-1, 0, item.MaxNumber + 1} {
			if _, err := b.s.Task(b.ctx, id); !isInvalid(err) {
				b.Errorf("task %d: %v", id, err)
			}
		}
		for _, err := range b.s.Group(b.ctx, taskstore.Page{Group: "g", Limit: -1}) {
			if !isInvalid(err) {
				b.Errorf("limit -1: %v", err)
			}
		}
		if all, err := b.s.Tasks(b.ctx); err != nil || len(all) != 0 {
			b.Errorf("no ids: %v, %v", all, err)
		}
		if len(b.groups()) != 0 {
			b.Error("something was applied")
		}
	}},
	{"ManyWritersDoNotStop", func(b *bench) { // the opportunistic mode stopped after two updates
		var all sync.WaitGroup
		for range 8 {
			s := b.open(b.T, b.name)
			all.Go(func() {
				for range 25 {
					if _, err := s.Update(b.ctx, &taskstore.Update{Adds: []taskstore.Add{{Group: "g"}}}); err != nil {
						b.Errorf("update: %v", err)
						return
					}
				}
			})
		}
		all.Wait()
		items := b.whole()
		if len(items) != 200 || items[199].ID != 200 {
			b.Errorf("%d items of 200", len(items))
		}
	}},
	{"ClientsAreNotTheSame", func(b *bench) { // the original drew one of 256
		seen := map[int64]bool{}
		for range 500 {
			s, err := taskstore.Open(nil, "s", taskstore.Options{})
			if err != nil || s.Client() < 1 || s.Client() > item.MaxNumber {
				b.Fatalf("client %v, %v", s, err)
			}
			seen[s.Client()] = true
		}
		if len(seen) != 500 || b.s.Client() == b.other.Client() {
			b.Errorf("%d clients of 500, %d and %d", len(seen), b.s.Client(), b.other.Client())
		}
	}},
	{"CallEndsWithItsContext", func(b *bench) { // the original's client had none
		ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
		defer cancel()
		if it, err := b.s.Claim(ctx, &taskstore.Claim{Group: "g", Duration: time.Second, Wait: 30 * time.Second}); err == nil || it != nil || !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("claimed %v, %v", it, err)
		}
	}},
	{"GroupsOfAnyNameAreListed", func(b *bench) { // the original's client escaped none
		names := []string{".", "..", "/", "a/b", "a b", "a?b=c&d#e%2f", "+", "grüße", strings.Repeat("x", 256)}
		for _, name := range names {
			b.add(name, name)
		}
		if len(b.groups()) != len(names) {
			b.Errorf("groups %q", b.groups())
		}
		for _, name := range names {
			if all := b.list(taskstore.Page{Group: name}); len(all) != 1 || string(all[0].Data) != name {
				b.Errorf("group %q: %+v", name, all)
			}
		}
	}},
}

func isInvalid(err error) bool {
	_, is := errors.AsType[*taskstore.InvalidError](err)
	return is
}

var bytes = []property{
	{"DataComeBackByteForByte", func(b *bench) {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 40 {
			data := make([]byte, r.IntN(300))
			for j := range data {
				data[j] = byte(r.UintN(256)) & [...]byte{0xff, 0x7f, 0x1f}[i%3]
			}
			it := b.add("g", string(data))
			changed := b.update(taskstore.Update{Changes: []taskstore.Change{{ID: it.ID, Data: append(data, '\xff')}}})[0]
			kept := b.update(taskstore.Update{Changes: []taskstore.Change{keep(changed.ID, 0)}})[0]
			got := b.claim(b.s, "g", time.Minute, 0)
			if want := string(data) + "\xff"; string(it.Data) != string(data) || string(changed.Data) != want || kept.Data != nil || got == nil || string(got.Data) != want || string(b.task(got.ID).Data) != want {
				b.Fatalf("data %q came back as %+v, %+v, %+v, %+v", data, it, changed, kept, got)
			}
			b.update(taskstore.Update{Deletes: []int64{got.ID}})
		}
	}},
	{"LargestUpdateIsTaken", func(b *bench) {
		data := strings.Repeat("\x01", item.MaxBytes-item.ItemBytes-1)
		it := b.add("g", data)
		if string(it.Data) != data || string(b.task(it.ID).Data) != data {
			b.Error("data came back otherwise")
		}
		u := taskstore.Update{}
		for range item.MaxIDs {
			u.Adds = append(u.Adds, taskstore.Add{Group: "h"})
		}
		if made := b.update(u); len(made) != item.MaxIDs {
			b.Errorf("%d items", len(made))
		}
	}},
}
