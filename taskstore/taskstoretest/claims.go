package taskstoretest

import (
	"sync"
	"time"

	"taskledger/taskstore"
)

var claims = []property{
	{"ClaimIsForATimeUnderANewID", func(b *bench) {
		it := b.add("g", "data")
		got := b.claim(b.other, "g", time.Minute, 0)
		if got == nil || got.ID <= it.ID || got.Owner != b.other.Client() || got.At < it.At+60_000 || string(got.Data) != "data" || got.Group != "g" {
			b.Fatalf("claimed %+v of %+v", got, it)
		}
		b.same(b.task(got.ID), *got)
		if b.task(it.ID) != nil {
			b.Error("the old id is there")
		}
		if again := b.claim(b.s, "g", time.Minute, 0); again != nil {
			b.Errorf("claimed %+v", again)
		}
	}},
	{"ClaimOfAnUnknownGroupIsNothing", func(b *bench) {
		b.add("g", "")
		if got := b.claim(b.s, "unknown", time.Minute, 0); got != nil {
			b.Errorf("claimed %+v", got)
		}
	}},
	{"ClaimLooksForDependsFirst", func(b *bench) {
		it := b.add("g", "")
		for _, group := range []string{"empty", "g"} {
			_, err := b.s.Claim(b.ctx, &taskstore.Claim{Group: group, Duration: time.Minute, Depends: []int64{it.ID, 99}})
			b.conflict(err, gone("depends", 99))
		}
		b.same(b.task(it.ID), it)
		got, err := b.s.Claim(b.ctx, &taskstore.Claim{Group: "g", Duration: time.Minute, Depends: []int64{it.ID}})
		if err != nil || got == nil {
			b.Errorf("claimed %+v, %v", got, err)
		}
	}},
	{"ClaimsAreRandom", func(b *bench) {
		first := 0
		const rounds = 60
		for range rounds {
			b.update(taskstore.Update{Adds: []taskstore.Add{{Group: "g", Data: []byte("a")}, {Group: "g", Data: []byte("b")}}})
			for i := range 2 {
				it := b.claim(b.s, "g", time.Minute, 0)
				if i == 0 && string(it.Data) == "a" {
					first++
				}
				b.update(taskstore.Update{Deletes: []int64{it.ID}})
			}
		}
		if first < rounds/10 || first > rounds*9/10 { // by chance once in 10^9 runs
			b.Errorf("the older one was first in %d of %d rounds", first, rounds)
		}
	}},
	{"RepeatedClaimGetsTheSameItem", func(b *bench) {
		b.add("g", "x")
		b.add("g", "x")
		c := taskstore.Claim{Group: "g", Duration: time.Minute, Key: "k"}
		first, err := b.s.Claim(b.ctx, &c)
		second, err2 := b.s.Claim(b.ctx, &c)
		if err != nil || err2 != nil || first == nil {
			b.Fatalf("%v, %v, %v", first, err, err2)
		}
		b.same(second, *first)
		c.Duration = time.Hour
		if _, err := b.s.Claim(b.ctx, &c); !isOther(err) {
			b.Errorf("another body: %v", err)
		}
	}},
	{"WaitingClaimHearsOfAnAdd", func(b *bench) {
		got := b.park(1)
		b.add("g", "x")
		if it := <-got; it == nil || string(it.Data) != "x" {
			b.Errorf("claimed %+v", it)
		}
	}},
	{"WaitingClaimHearsOfARelease", func(b *bench) {
		b.add("g", "x")
		it := b.claim(b.s, "g", time.Minute, 0)
		got := b.park(1)
		b.update(taskstore.Update{Changes: []taskstore.Change{keep(it.ID, 0)}})
		if it := <-got; it == nil {
			b.Error("nothing was claimed")
		}
	}},
	{"AsManyWaitingClaimsWakeAsItemsFallDue", func(b *bench) {
		var u taskstore.Update
		for range 4 {
			u.Adds = append(u.Adds, taskstore.Add{Group: "g", At: -500})
		}
		b.update(u)
		began, got := time.Now(), b.park(4)
		ids := map[int64]bool{}
		for range 4 {
			if it := <-got; it != nil {
				ids[it.ID] = true
			}
		}
		if took := time.Since(began); len(ids) != 4 || took > 10*time.Second {
			b.Errorf("%d of 4 items were claimed within %s", len(ids), took)
		}
	}},
	{"WaitingClaimEndsWithNothing", func(b *bench) {
		began := time.Now()
		if it := b.claim(b.s, "g", time.Minute, 300*time.Millisecond); it != nil || time.Since(began) < 300*time.Millisecond {
			b.Errorf("claimed %+v after %s", it, time.Since(began))
		}
	}},
	{"WaitingClaimLooksForDependsAtItsEnd", func(b *bench) {
		it := b.add("other", "")
		ended := make(chan error, 1)
		go func() {
			_, err := b.other.Claim(b.ctx, &taskstore.Claim{Group: "g", Duration: time.Minute, Wait: time.Second, Depends: []int64{it.ID}})
			ended <- err
		}()
		// Whether the delete comes before the claim or while it waits, it must not be overlooked.
		b.update(taskstore.Update{Deletes: []int64{it.ID}})
		b.conflict(<-ended, gone("depends", it.ID))
	}},
	{"NoItemIsClaimedTwice", func(b *bench) {
		const n, claimers = 120, 6
		for range n {
			b.add("g", "")
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		taken := map[int64]bool{}
		for range claimers {
			s := b.open(b.T, b.name)
			all.Go(func() {
				for {
					it, err := s.Claim(b.ctx, &taskstore.Claim{Group: "g", Duration: time.Hour})
					if err != nil {
						b.Errorf("claim: %v", err)
					}
					if it == nil {
						return
					}
					mu.Lock()
					if taken[it.ID] {
						b.Errorf("%d was claimed twice", it.ID)
					}
					taken[it.ID] = true
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(taken) != n {
			b.Errorf("%d of %d were claimed", len(taken), n)
		}
	}},
}

// park lets n claims of other clients wait for items of group g. Their answers come by the channel.
func (b *bench) park(n int) <-chan *taskstore.Item {
	got := make(chan *taskstore.Item, n)
	for range n {
		s := b.open(b.T, b.name)
		go func() {
			it, err := s.Claim(b.ctx, &taskstore.Claim{Group: "g", Duration: time.Hour, Wait: 30 * time.Second})
			if err != nil {
				b.Errorf("claim: %v", err)
			}
			got <- it
		}()
	}
	return got
}
