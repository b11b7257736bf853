package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/item"
	"taskledger/task"
)

const (
	// restMost bounds the rest of one of them between two calls.
	restMost = 500 * time.Millisecond
	// repeatsMost bounds the repetitions of a call with a key that nobody answered.
	repeatsMost = 3
	// knownMost bounds the ids that are remembered of a store, the last ones.
	knownMost = 12
)

// The stores, and the groups of each.
var (
	stores = []string{"crawl", "feed"}
	groups = []string{"g", "h"}
)

// StoreClients ask task stores, in simulated histories and in runs of real processes: each makes one call after
// another, of which some must be refused, and tells what it was told. Their fields are set before the first call.
type StoreClients struct {
	First   int64           // the number of the first client; the others follow. Nobody else has them
	Timeout time.Duration   // how long a call takes, at most
	Waits   context.Context // ends when nobody waits any more
	Over    func() bool     // no call begins any more
	Rest    func(time.Duration)
	Now     func() int64 // the time of the run, in nanoseconds
	// Client draws a client, and tells when its process was killed.
	Client func() (at *engine.Client, killed context.Context)
	// Tell hears of a call when it begins, without an answer, and again when it has ended. Numbers of calls are unique.
	Tell func(number int64, c history.ItemCall)
	// Damage hears of what no client has to expect.
	Damage func(format string, args ...any)

	all    []*storeClient
	passer *passer
	calls  atomic.Int64
	mu     sync.Mutex
	ids    map[string][]int64 // by store: those that clients were told of lately
}

// storeClient is one of them: it makes one call at a time.
type storeClient struct {
	all    *StoreClients
	random *rand.Rand // what the seed decides
	id     int64
	store  string
	calls  int
	mine   int64 // the item that it claimed last; 0 = none
	plain  bool  // it gives no keys
}

// Keep has so many clients, whom the seed draws, make calls until it is over, beside a worker and a store that comes
// and goes.
func (s *StoreClients) Keep(count int, seed uint64) {
	s.ids = map[string][]int64{}
	random := rand.New(rand.NewPCG(seed, 0))
	var all sync.WaitGroup
	for i := range count {
		k := s.storeClient(random, i, "")
		k.store = pick(k.random, stores...)
		s.all = append(s.all, k)
		all.Go(k.keep)
	}
	s.passer = &passer{k: s.storeClient(random, count, passing(s.First))}
	s.passer.k.plain = true
	all.Go(func() { s.passer.k.until(s.Pass) })
	e := &employer{k: s.storeClient(random, count+1, ""), seed: random.Uint64()}
	e.k.store = pick(e.k.random, stores...)
	all.Go(func() { e.k.until(e.employ) })
	all.Wait()
}

// storeClient returns the one of a number, of a store.
func (s *StoreClients) storeClient(random *rand.Rand, number int, store string) *storeClient {
	return &storeClient{all: s, random: rand.New(rand.NewPCG(random.Uint64(), 0)), id: s.First + int64(number), store: store}
}

// Visit has one of them, whom a number draws, do one thing more.
func (s *StoreClients) Visit(n int) { s.all[n%len(s.all)].visit() }

// Read has somebody read every group of every store. That nobody shows one is damage.
func (s *StoreClients) Read() {
	for _, store := range append(stores, passing(s.First)) {
		for _, group := range append(groups, groups[0]+failed) {
			k := &storeClient{all: s, random: rand.New(rand.NewPCG(0, 0)), store: store}
			if c := k.call(history.ItemCall{Store: store, Group: group}); c.Answer != history.OK {
				s.Damage("group %s of store %s is not shown at the end: %s", group, store, c.Error)
			}
		}
	}
}

func (k *storeClient) keep() { k.until(k.visit) }

// until does something again and again until it is over.
func (k *storeClient) until(do func()) {
	for {
		k.all.Rest(k.between(0, restMost))
		if k.all.Over() {
			return
		}
		do()
	}
}

func (k *storeClient) chance(p float64) bool { return k.random.Float64() < p }

func (k *storeClient) between(least, most time.Duration) time.Duration {
	return least + time.Duration(k.random.Int64N(int64(most-least)+1))
}

// doings lists what a client does, each as often as it is likely.
var doings = []func(*storeClient){
	(*storeClient).add, (*storeClient).add, (*storeClient).add, (*storeClient).claim, (*storeClient).claim, (*storeClient).claim, (*storeClient).claim,
	(*storeClient).finish, (*storeClient).finish, (*storeClient).renew, (*storeClient).meddle, (*storeClient).meddle, (*storeClient).look, (*storeClient).look, (*storeClient).check,
}

// visit does one thing.
func (k *storeClient) visit() { pick(k.random, doings...)(k) }

// known is an id that somebody was told of lately.
func (k *storeClient) known() int64 {
	k.all.mu.Lock()
	ids := slices.Clone(k.all.ids[k.store])
	k.all.mu.Unlock()
	if len(ids) == 0 {
		return 1
	}
	return pick(k.random, ids...)
}

// learn remembers an id for others.
func (k *storeClient) learn(id int64) {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	ids := append(k.all.ids[k.store], id)
	k.all.ids[k.store] = ids[max(0, len(ids)-knownMost):]
}

// depends draws what a request depends on: nothing, in most cases.
func (k *storeClient) depends() []int64 {
	if k.chance(0.7) {
		return nil
	}
	return []int64{k.known()}
}

func (k *storeClient) group() string { return pick(k.random, groups...) }

// later draws when an item becomes available.
func (k *storeClient) later() item.When {
	return pick(k.random, 0, 0, item.When(-k.random.IntN(1500)), item.When(1))
}

// data is such that no other call has them.
func (k *storeClient) data() []byte { return fmt.Appendf(nil, "%d of %d", k.calls, k.id) }

func (k *storeClient) adds() (all []item.Add) {
	for range 1 + k.random.IntN(3) {
		all = append(all, item.Add{Group: k.group(), At: k.later(), Data: k.data()})
	}
	return all
}

func (k *storeClient) add() { k.update(&item.Update{Depends: k.depends(), Adds: k.adds()}) }

// claim takes an item for a moment or longer, and works; in most cases it then finishes, in time or too late.
func (k *storeClient) claim() {
	lasts := k.between(50*time.Millisecond, 1500*time.Millisecond)
	q := &item.Claim{Client: k.id, Group: k.group(), Duration: lasts, Depends: k.depends()}
	if k.chance(0.3) {
		q.Wait = k.between(100*time.Millisecond, 2*time.Second)
	}
	q.Key = k.key()
	told := k.ask(history.ItemCall{Claim: q})
	if len(told.Items) == 0 {
		return
	}
	k.mine = told.Items[0].ID
	k.all.Rest(k.between(0, 2*lasts))
	if k.chance(0.7) {
		k.finish()
	}
}

// finish removes what the client claimed last, however long ago, and adds what follows.
func (k *storeClient) finish() {
	if k.mine == 0 {
		return
	}
	u := &item.Update{Deletes: []int64{k.mine}, Depends: k.depends()}
	if k.chance(0.6) {
		u.Adds = k.adds()
	}
	k.update(u)
}

// renew claims what the client claimed last for longer.
func (k *storeClient) renew() {
	if k.mine == 0 {
		return
	}
	c := item.Change{ID: k.mine, At: item.When(-1 - k.random.IntN(1500)), Keep: true}
	if told := k.update(&item.Update{Changes: []item.Change{c}}); len(told.Items) > 0 {
		k.mine = told.Items[0].ID
	}
}

// meddle changes or removes items that may be another's, or may have gone.
func (k *storeClient) meddle() {
	u := &item.Update{Depends: k.depends()}
	one, other := k.known(), k.known()
	if k.chance(0.5) {
		u.Deletes = []int64{one}
	} else {
		u.Changes = []item.Change{{ID: one, Group: pick(k.random, "", "", "g"), At: k.later(), Data: k.data()}}
	}
	if other != one && k.chance(0.4) {
		u.Changes = append(u.Changes, item.Change{ID: other, At: k.later(), Keep: true})
	}
	k.update(u)
}

// look reads items, or a group.
func (k *storeClient) look() {
	if k.chance(0.5) {
		k.ask(history.ItemCall{Group: k.group()})
		return
	}
	ids := []int64{k.known(), k.known(), k.known() + 1}
	slices.Sort(ids)
	k.ask(history.ItemCall{Read: slices.Compact(ids)})
}

// check asks whether items are there.
func (k *storeClient) check() { k.update(&item.Update{Depends: []int64{k.known(), k.known()}}) }

// key draws one that no other call has, or none.
func (k *storeClient) key() string {
	k.calls++
	if k.plain || k.chance(0.2) {
		return ""
	}
	return fmt.Sprint("key ", k.calls)
}

func (k *storeClient) update(u *item.Update) history.ItemCall {
	u.Client, u.Key = k.id, k.key()
	return k.ask(history.ItemCall{Update: u})
}

// ask makes a call, which is repeated with its key until somebody answers, and now and then once more, or as another
// one under the key.
func (k *storeClient) ask(c history.ItemCall) (told history.ItemCall) {
	c.Store = k.store
	told = k.call(c)
	keyed := c.Update != nil && c.Update.Key != "" || c.Claim != nil && c.Claim.Key != ""
	for n := 0; keyed && told.Answer == history.Unknown && n < repeatsMost && !k.all.Over(); n++ {
		k.all.Rest(k.between(0, restMost))
		told = k.call(c)
	}
	for _, is := range told.Items {
		k.learn(is.ID)
	}
	if keyed && told.Answer == history.OK && k.chance(0.25) {
		again := c
		if u := c.Update; u != nil && k.chance(0.2) {
			again.Update = &item.Update{Client: u.Client, Key: u.Key, Adds: []item.Add{{Group: "g", Data: []byte("another request")}}}
		}
		k.call(again)
	}
	return told
}

// call makes a call once and records what it was told.
func (k *storeClient) call(c history.ItemCall) history.ItemCall {
	at, killed := k.all.Client()
	ctx, cancel := context.WithTimeout(k.all.Waits, k.between(500*time.Millisecond, k.all.Timeout))
	defer cancel()
	_ = k.all.call(ctx, at, killed, &c)
	return c
}

// call makes a call of a client, whose process may have been killed, and records what it was told.
func (s *StoreClients) call(ctx context.Context, at *engine.Client, killed context.Context, c *history.ItemCall) error {
	c.Call = s.Now()
	number := s.calls.Add(1)
	s.Tell(number, *c)
	err := askOf(ctx, at, c)
	c.Return, c.Answer = s.Now(), Answer(err)
	if err != nil {
		c.Error = err.Error()
	}
	conflict, conflicts := errors.AsType[*item.ConflictError](err)
	switch {
	case err == nil:
	case killed.Err() != nil: // nobody was there to hear it
		c.Answer = history.Unknown
	case conflicts:
		c.Answer, c.Problems = history.Refused, conflict.Problems
	case errors.Is(err, task.ErrOtherRequest):
		c.Answer, c.OtherRequest = history.Refused, true
	case c.Claim != nil && ctx.Err() != nil && !errors.Is(err, task.ErrUnknown): // its wait has ended: nothing was claimed
		c.Answer = history.Refused
	case c.Answer == history.Unknown && ctx.Err() == nil && !errors.Is(err, task.ErrUnknown):
		s.Damage("a client of store %s is told what no client has to expect: %v", c.Store, err)
	}
	if c.Answer == history.Unknown {
		c.Return = 0
	}
	s.Tell(number, *c)
	return err
}

// askOf asks for what a call asks for, and fills in what it is told.
func askOf(ctx context.Context, at *engine.Client, c *history.ItemCall) (err error) {
	switch {
	case c.Update != nil:
		c.Items, err = at.Stores().Update(ctx, c.Store, c.Update)
	case c.Claim != nil:
		var is *item.Item
		if is, err = at.Stores().Claim(ctx, c.Store, c.Claim); is != nil {
			c.Items = []item.Item{*is}
		}
	case c.Group != "":
		for more := true; more && err == nil; {
			page := item.Page{Group: c.Group, Owned: true, Linear: true}
			if n := len(c.Items); n > 0 {
				page.After = c.Items[n-1].ID
			}
			var items []item.Item
			items, more, err = at.Stores().Group(ctx, c.Store, page)
			if c.Items = append(c.Items, items...); more && len(items) > 0 {
				c.Pages = append(c.Pages, len(items))
			}
		}
	default:
		var items []*item.Item
		items, err = at.Stores().Items(ctx, c.Store, c.Read, true)
		for _, is := range items {
			if is != nil {
				c.Items = append(c.Items, *is)
			}
		}
	}
	return err
}
