package taskstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
	"taskledger/taskstore"
	"taskledger/taskstore/taskstoretest/model"
)

var errLost = fmt.Errorf("%w: the answer is lost", task.ErrUnknown)

func TestStore_RepeatsWhatWasNotAnsweredUnderOneKeyUntilItIs(t *testing.T) {
	bubble(t, func(b *bench) {
		left := []error{fmt.Errorf("%w: away", store.ErrUnavailable), errLost, &task.OverloadError{Cause: "busy", RetryAfter: 7 * time.Second}, errLost}
		b.update = func(_ context.Context, _ *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			if len(left) == 0 {
				return ask()
			}
			err := left[0]
			if left = left[1:]; errors.Is(err, task.ErrUnknown) {
				if _, err := ask(); err != nil {
					b.t.Error(err)
				}
			}
			return nil, err
		}
		began := time.Now()
		ids := b.add("g", "a", "b")
		if len(b.left("g")) != 2 || len(ids) != 2 || ids[0] != 1 {
			b.t.Errorf("ids %v; there: %q", ids, b.left("g"))
		}
		keys := map[string]bool{}
		for _, u := range b.seen() {
			keys[u.Key] = true
		}
		if len(b.seen()) != 5 || len(keys) != 1 || keys[""] || time.Since(began) < 7*time.Second {
			b.t.Errorf("%d calls with keys %v in %s", len(b.seen()), keys, time.Since(began))
		}
		b.add("g", "c")
		if again := b.seen(); keys[again[len(again)-1].Key] {
			b.t.Error("two calls had one key")
		}
	})
}

func TestStore_TellsWhoseContextEndsWhetherTheCallMayHaveBeenDone(t *testing.T) {
	away := fmt.Errorf("%w: away", store.ErrUnavailable)
	for name, c := range map[string]struct {
		errs    []error // each but the last once
		unknown bool
	}{
		"never sent":                {[]error{away}, false},
		"sent":                      {[]error{errLost}, true},
		"sent, and then away":       {[]error{errLost, away}, true},
		"sent, and then closed":     {[]error{errLost, task.ErrClosed}, true},
		"closed":                    {[]error{task.ErrClosed}, false},
		"sent, and then ended":      {[]error{errLost, context.DeadlineExceeded}, true},
		"refused after it was sent": {[]error{errLost, &item.ConflictError{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				n := 0
				b.update = func(ctx context.Context, _ *item.Update, _ func() ([]item.Item, error)) ([]item.Item, error) {
					err := c.errs[min(n, len(c.errs)-1)]
					if n++; err == context.DeadlineExceeded {
						<-ctx.Done()
					}
					return nil, err
				}
				ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
				defer cancel()
				_, err := b.s.Update(ctx, item.Update{Depends: []int64{1}})
				if errors.Is(err, task.ErrUnknown) != c.unknown || err == nil {
					b.t.Errorf("got %v, want unknown: %t", err, c.unknown)
				}
				if last := c.errs[len(c.errs)-1]; errors.Is(last, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
					b.t.Errorf("got %v, want the cause of the context, too", err)
				}
			})
		})
	}
}

// An update whose answer is lost is repeated under its key, however many others its client makes meanwhile.
func TestStore_AnUpdateIsDoneOnceHoweverManyOthersItsClientMakesMeanwhile(t *testing.T) {
	bubble(t, func(b *bench) {
		slow := true
		b.update = func(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			made, err := ask()
			if first := string(u.Adds[0].Data) == "slow"; first && slow {
				slow = false
				time.Sleep(time.Minute)
				return nil, errLost
			}
			return made, err
		}
		ctx, cancel := context.WithCancel(b.t.Context())
		done := make(chan error)
		go func() {
			_, err := b.s.Update(ctx, item.Update{Adds: []item.Add{{Group: "g", Data: []byte("slow")}}})
			done <- err
		}()
		synctest.Wait()
		again, err := taskstore.Open(b.spied, b.s.Name(), taskstore.Options{Client: 1}) // the same client
		if err != nil {
			b.t.Fatal(err)
		}
		for i := range 200 {
			go func() {
				s := []*taskstore.Store{b.s, again}[i%2]
				_, err := s.Update(ctx, item.Update{Adds: []item.Add{{Group: "g", Data: []byte("other")}}})
				done <- err
			}()
		}
		synctest.Wait()
		for range 63 { // those for which there is room before the slow one is known
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
		synctest.Wait()
		select {
		case <-done:
			b.t.Error("more than 64 calls since the oldest one")
		default:
		}
		for range 138 {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
		cancel()
		slows := 0
		for _, data := range b.left("g") {
			if data == "slow" {
				slows++
			}
		}
		if slows != 1 || len(b.left("g")) != 201 {
			b.t.Errorf("%d slow ones of %d items, want 1 of 201", slows, len(b.left("g")))
		}
	})
}

// Claims that began before the update count, too, when they succeed after it.
// Updates that began before it, and succeed after it, take places among the keys that the store remembers after its
// own.
func TestStore_AnUpdateIsDoneOnceThoughEarlierOnesSucceedAfterIt(t *testing.T) {
	bubble(t, func(b *bench) {
		arrive, lost := make(chan struct{}), false
		b.update = func(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			if string(u.Adds[0].Data) == "early" {
				<-arrive
			}
			made, err := ask()
			if string(u.Adds[0].Data) == "slow" && !lost {
				lost = true
				time.Sleep(35 * time.Second)
				return nil, errLost
			}
			return made, err
		}
		done := make(chan error)
		update := func(data string) {
			_, err := b.s.Update(b.t.Context(), item.Update{Adds: []item.Add{{Group: "g", Data: []byte(data)}}})
			done <- err
		}
		const early, late = 40, 200
		for range early {
			go update("early")
		}
		synctest.Wait()
		go update("slow")
		synctest.Wait()
		close(arrive)
		synctest.Wait()
		for range late {
			go update("late")
		}
		for range early + 1 + late {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
		slow := 0
		for _, data := range b.left("g") {
			if data == "slow" {
				slow++
			}
		}
		if slow != 1 {
			b.t.Errorf("the update was done %d times", slow)
		}
	})
}

func TestStore_AnUpdateIsDoneOnceHoweverManyClaimsSucceedMeanwhile(t *testing.T) {
	bubble(t, func(b *bench) {
		slow := true
		b.update = func(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			made, err := ask()
			if u.Client == 1 && u.Adds[0].Group == "slow" && slow {
				slow = false
				time.Sleep(time.Minute)
				return nil, errLost
			}
			return made, err
		}
		done := make(chan error)
		const claims, others = 32, 100
		for range claims {
			go func() {
				_, err := b.s.Claim(b.t.Context(), item.Claim{Group: "g"})
				done <- err
			}()
		}
		synctest.Wait()
		go func() {
			_, err := b.s.Update(b.t.Context(), item.Update{Adds: []item.Add{{Group: "slow"}}})
			done <- err
		}()
		synctest.Wait()
		b.add("g", make([]string, claims)...)
		for range claims {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
		for range others {
			go func() {
				_, err := b.s.Update(b.t.Context(), item.Update{Adds: []item.Add{{Group: "other"}}})
				done <- err
			}()
		}
		for range others + 1 {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
		if slows, rest := len(b.left("slow")), len(b.left("other")); slows != 1 || rest != others {
			b.t.Errorf("%d slow ones, want 1; %d others, want %d", slows, rest, others)
		}
	})
}

func TestStore_ClaimsThatWaitLeaveRoomForUpdates(t *testing.T) {
	bubble(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.t.Context())
		got := make(chan *item.Item)
		for range 100 {
			go func() {
				it, _ := b.s.Claim(ctx, item.Claim{Group: "g"})
				got <- it
			}()
		}
		synctest.Wait()
		waiting := 0
		for _, c := range b.claims {
			if c.Wait > 0 {
				waiting++
			}
		}
		if waiting != 24 {
			b.t.Errorf("%d claims wait, want 24", waiting)
		}
		for range 100 {
			if _, err := b.s.Update(ctx, item.Update{Adds: []item.Add{{Group: "g"}}}); err != nil {
				b.t.Fatal(err)
			}
		}
		for range 100 {
			if it := <-got; it == nil {
				b.t.Error("a claim got nothing")
			}
		}
		cancel()
	})
}

func TestStore_ARepeatedClaimGetsTheSameItemUnlessItsKeyMayBeForgotten(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "a", "b", "c")
		lost := 0
		between := func() {}
		b.claim = func(_ context.Context, _ *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
			it, err := ask()
			if lost > 0 {
				lost--
				between()
				return nil, errLost
			}
			return it, err
		}
		lost = 3
		if _, err := b.s.Claim(b.t.Context(), item.Claim{Group: "g"}); err != nil {
			b.t.Fatal(err)
		}
		if n := available(b, "g"); n != 2 {
			b.t.Errorf("%d items are left, want 2", n)
		}
		lost = 1
		between = func() {
			for range 64 {
				if _, err := b.s.Update(b.t.Context(), item.Update{Adds: []item.Add{{Group: "other"}}}); err != nil {
					b.t.Fatal(err)
				}
			}
		}
		it, err := b.s.Claim(b.t.Context(), item.Claim{Group: "g"})
		if err != nil || it == nil || available(b, "g") != 0 {
			b.t.Fatalf("claimed %v, %v; %d are left", it, err, available(b, "g"))
		}
		keys := map[string]bool{}
		for _, c := range b.claims {
			keys[c.Key] = true
		}
		if len(keys) != 3 {
			b.t.Errorf("%d keys, want 3", len(keys))
		}
	})
}

func available(b *bench, group string) (n int) {
	for _, err := range b.s.Group(b.t.Context(), group, taskstore.List{}) {
		if err != nil {
			b.t.Fatal(err)
		}
		n++
	}
	return n
}

func TestStore_ClaimWaitsByDefaultAndTryClaimNever(t *testing.T) {
	bubble(t, func(b *bench) {
		for _, c := range []struct {
			claim func(context.Context, item.Claim) (*item.Item, error)
			q     item.Claim
			takes time.Duration
		}{
			{b.s.Claim, item.Claim{Group: "g"}, taskstore.DefaultWait},
			{b.s.Claim, item.Claim{Group: "g", Wait: 2 * time.Second}, 2 * time.Second},
			{b.s.TryClaim, item.Claim{Group: "g", Wait: 2 * time.Second}, 0},
		} {
			began := time.Now()
			if it, err := c.claim(b.t.Context(), c.q); it != nil || err != nil || time.Since(began) != c.takes {
				b.t.Errorf("got %v, %v after %s, want nothing after %s", it, err, time.Since(began), c.takes)
			}
		}
		if d := b.claims[0].Duration; d != taskstore.DefaultDuration {
			b.t.Errorf("claimed for %s", d)
		}
	})
}

func TestStore_AClaimMayWaitForLongerThanOneRequest(t *testing.T) {
	bubble(t, func(b *bench) {
		got := make(chan *item.Item, 1)
		began := time.Now()
		go func() {
			it, err := b.s.Claim(b.t.Context(), item.Claim{Group: "g", Wait: 10 * time.Minute})
			if err != nil {
				b.t.Error(err)
			}
			got <- it
		}()
		time.Sleep(150 * time.Second)
		b.add("g", "late")
		if it := <-got; it == nil || time.Since(began) != 150*time.Second {
			b.t.Errorf("got %+v after %s, want an item as soon as it came", it, time.Since(began))
		}
		if n := len(b.claims); n != 3 {
			b.t.Errorf("%d claims were asked, want one a minute", n)
		}
		began = time.Now()
		if it, err := b.s.Claim(b.t.Context(), item.Claim{Group: "none", Wait: 90 * time.Second}); it != nil || err != nil {
			b.t.Errorf("of nothing: %+v, %v", it, err)
		}
		if took := time.Since(began); took != 90*time.Second {
			b.t.Errorf("it waited for %s, want 90 s", took)
		}
	})
}

func TestStore_ErrorsNameTheStoreOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		_, conflict := b.s.Update(b.t.Context(), item.Update{Deletes: []int64{7}})
		_, invalid := b.s.Update(b.t.Context(), item.Update{})
		for _, err := range []error{conflict, invalid} {
			if err == nil || strings.Count(err.Error(), "store "+b.s.Name()) != 1 || !strings.Contains(err.Error(), "update: ") {
				b.t.Errorf("%v: want the store named once", err)
			}
		}
	})
}

func TestStore_OnceAsksOnceWithoutAKey(t *testing.T) {
	bubble(t, func(b *bench) {
		s, err := taskstore.Open(b.spied, "s", taskstore.Options{Client: 3, Once: true})
		if err != nil {
			b.t.Fatal(err)
		}
		b.update = func(context.Context, *item.Update, func() ([]item.Item, error)) ([]item.Item, error) {
			return nil, errLost
		}
		if _, err := s.Update(b.t.Context(), item.Update{Depends: []int64{1}}); !errors.Is(err, task.ErrUnknown) {
			b.t.Error(err)
		}
		if all := b.seen(); len(all) != 1 || all[0].Key != "" || all[0].Client != 3 {
			b.t.Errorf("asked %+v", all)
		}
	})
}

func TestOpen_RefusesBadInputByFieldAndAsksNothing(t *testing.T) {
	for want, open := range map[string]func() (*taskstore.Store, error){
		"backend": func() (*taskstore.Store, error) { return taskstore.Open(nil, "s", taskstore.Options{}) },
		"store": func() (*taskstore.Store, error) {
			return taskstore.Open(model.New(testkit.Rand(t)), "a/b", taskstore.Options{})
		},
		"client": func() (*taskstore.Store, error) {
			return taskstore.Open(model.New(testkit.Rand(t)), "s", taskstore.Options{Client: item.MaxNumber + 1})
		},
	} {
		_, err := open()
		if bad, is := errors.AsType[*store.InvalidError](err); !is || bad.Field != want {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestProcessClient_IsOneNumberOf53Bits(t *testing.T) {
	if n := taskstore.ProcessClient(); n != taskstore.ProcessClient() || n < 1<<33 || n > item.MaxNumber { // of less than 33 bits: once in a million
		t.Errorf("the client is %d", n)
	}
}
