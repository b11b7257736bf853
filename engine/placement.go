package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/signal"
	"taskledger/ledger"
	"taskledger/store"
)

// takeRank is the time that a node waits for each node of a better rank before it takes an unserved shard.
const takeRank = 250 * time.Millisecond

// placement decides which shards this node serves: it takes the unserved ones that fall to it, asks others for those
// that are its own, and serves whatever the owner keys say is its.
type placement struct {
	m       *member
	wake    signal.Signal
	serving sync.WaitGroup
	settled atomic.Bool // all shards that fall to it were served once

	mu        sync.Mutex
	owners    map[int]*shard.Owner
	busy      map[int]bool      // being taken or asked for
	unserved  map[int]time.Time // since when
	broken    map[int]*quarantine
	healed    map[int]healing
	spared    askPauses           // of shards that are not asked for now
	oversized []command.Oversized // by shard, of its owner
	over      map[int]int64       // the last ownership of a shard that has ended here: never served again
	ranks     ranking             // of the newest view
	leaving   bool

	asked     int                // the shard that is being asked for
	cancelAsk context.CancelFunc // ends the wait for the answer; nil: none is asked for
}

func newPlacement(m *member) *placement {
	return &placement{
		m:         m,
		wake:      signal.New(),
		owners:    map[int]*shard.Owner{},
		busy:      map[int]bool{},
		unserved:  map[int]time.Time{},
		broken:    map[int]*quarantine{},
		healed:    map[int]healing{},
		spared:    askPauses{},
		oversized: make([]command.Oversized, m.shards),
		over:      map[int]int64{},
	}
}

// run acts on every change of the membership, and a few times a second on the passing of time.
func (p *placement) run(ctx context.Context) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	reread := time.NewTicker(p.m.ttl / 4) // the recheck stamps that are served are a third of a lease after it
	defer reread.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-ticker.C:
		case <-reread.C:
			p.m.spawn(func(ctx context.Context) { p.reread(ctx) })
		}
		p.step(ctx, time.Now())
		p.findLost(ctx)
	}
}

// reread looks at the membership even if the watch is silent: watches only hasten.
func (p *placement) reread(ctx context.Context) {
	if _, err := p.m.refresh(ctx); err != nil && ctx.Err() == nil {
		if errors.Is(err, store.ErrSessionEnded) {
			p.m.end(err)
			return
		}
		p.m.log.WarnContext(ctx, "the list of nodes and owners was not read from etcd, trying again", "err", err)
	}
}

// step looks at every shard once.
func (p *placement) step(ctx context.Context, now time.Time) {
	v := p.m.view.Load()
	// mayTake reads the clock, which is the caller's.
	mayTake := p.m.load.mayTake() && v.Outdated(ledger.Reads().UpTo(0)) == ""
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.Revision == 0 || p.leaving {
		return
	}
	p.arrange(v)
	waiting := 0 // unserved shards that fall to this node
	for shard := range p.m.shards {
		p.consider(ctx, shard, v, now, mayTake)
		key := v.Owners[shard]
		_, alive := v.Nodes[key.Node]
		mine := key.Node == p.m.session.ID || !alive && p.ranks.best(shard) == p.m.session.ID
		if mine && p.owners[shard] == nil && p.broken[shard] == nil {
			waiting++
		}
	}
	if waiting == 0 {
		p.settled.Store(true)
		p.m.node.once.Do(func() { p.becomeReady(ctx) })
	}
}

// arrange ranks the nodes of a new view.
func (p *placement) arrange(v *store.Membership) {
	if p.ranks.revision != v.Revision {
		p.ranks = rankNodes(v, p.m.shards)
	}
}

// consider decides what to do about one shard now.
func (p *placement) consider(ctx context.Context, shard int, v *store.Membership, now time.Time, mayTake bool) {
	key := v.Owners[shard]
	if own := p.owners[shard]; own != nil && key.Revision > own.Ownership().Revision {
		own.Stop() // somebody else has it, and this node did not notice for want of work
	}
	_, alive := v.Nodes[key.Node]
	if p.cancelAsk != nil && p.asked == shard && (key.Node == p.m.session.ID || !alive) {
		p.cancelAsk() // the answer is late, or lost; or nobody is left to answer, and the shard can be taken
	}
	if p.busy[shard] {
		return
	}
	switch {
	case key.Node == p.m.session.ID && key.Revision <= p.over[shard]: // the view is older than the hand-over
	case key.Node == p.m.session.ID:
		p.begin(ctx, shard, func(ctx context.Context) error {
			return p.serve(ctx, store.Ownership{Shard: shard, Revision: key.Revision, Session: p.m.session}, nil)
		})
	case !alive && p.turnToTake(shard, now) && mayTake:
		p.begin(ctx, shard, func(ctx context.Context) error {
			o, err := p.m.owners.Take(ctx, p.m.session, shard, key)
			if err != nil {
				return fmt.Errorf("take shard %d: %w", shard, err)
			}
			return p.serve(ctx, o, nil)
		})
	case alive && p.cancelAsk == nil && mayTake && p.ranks.best(shard) == p.m.session.ID &&
		now.Sub(p.m.began) > rebalanceDelay && p.spared.over(shard, now):
		wait, cancel := context.WithCancel(ctx)
		p.asked, p.cancelAsk = shard, cancel
		p.begin(ctx, shard, func(ctx context.Context) error { return p.askFor(ctx, wait, shard) })
	}
	if alive {
		delete(p.unserved, shard)
	}
}

// unservedSince returns since when a shard is known to have no owner that lives; the zero time: it has one.
func (p *placement) unservedSince(shard int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unserved[shard]
}

// turnToTake reports whether an unserved shard has waited long enough for the nodes of better rank.
func (p *placement) turnToTake(shard int, now time.Time) bool {
	since, known := p.unserved[shard]
	if !known {
		since = now
		p.unserved[shard] = now
	}
	for rank, id := range p.ranks.order[shard] {
		if id == p.m.session.ID {
			return now.Sub(since) >= time.Duration(rank)*takeRank && p.m.mayStart()
		}
	}
	return false
}

// begin runs f, which may take long, while its shard is marked busy.
func (p *placement) begin(ctx context.Context, number int, f func(context.Context) error) {
	p.busy[number] = true
	p.serving.Go(func() {
		err := f(ctx)
		p.mu.Lock()
		delete(p.busy, number)
		delete(p.unserved, number)
		p.mu.Unlock()
		if err != nil && ctx.Err() == nil && !errors.Is(err, shard.ErrHandedOver) {
			p.fail(ctx, number, err)
		}
		p.wake.Notify()
	})
}

// fail deals with the end of serving a shard: a writer's doubt ends the session, and the loss of the shard to
// another node is no more than that.
func (p *placement) fail(ctx context.Context, shard int, err error) {
	switch {
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrMoved), errors.Is(err, errStays):
		p.m.log.InfoContext(ctx, "shard is served elsewhere", "shard", shard, "err", err)
		p.reread(ctx)
	default:
		p.m.end(fmt.Errorf("shard %d: %w", shard, err))
	}
}

// serve serves the shard until the session ends or the shard is lost. While it cannot be read that is told.
func (p *placement) serve(ctx context.Context, ownership store.Ownership, have *shard.Loaded) error {
	for {
		left, err := p.serveSound(ctx, ownership, have)
		switch {
		case left == nil && ctx.Err() == nil && errors.Is(err, command.ErrDecideAnew):
			p.m.log.ErrorContext(ctx, "an entry cannot be committed: what it decided is decided anew",
				"shard", ownership.Shard, "err", err)
			have = nil
			ownership, err = p.anew(ctx, ownership)
		case left == nil && ctx.Err() == nil && errors.Is(err, shard.ErrAnew):
			have, err = nil, nil
		case left == nil && (ctx.Err() != nil || !shard.IsDamage(err) && !errors.Is(err, shard.ErrOnlyArchive)):
			return err
		default:
			ownership, have, err = p.quarantine(ctx, ownership, err, left)
		}
		if err != nil {
			return err
		}
	}
}

// anew begins an ownership of a shard after another one of this node: no copy of a write of the one before has an
// effect any more, so that what was not written never will be.
func (p *placement) anew(ctx context.Context, o store.Ownership) (store.Ownership, error) {
	p.mu.Lock()
	p.over[o.Shard] = o.Revision
	p.mu.Unlock()
	if err := p.m.owners.HandOver(ctx, o, p.m.session.ID); err != nil {
		return o, err
	}
	for {
		v, err := p.m.refresh(ctx)
		if err == nil && v.Owners[o.Shard].Node != p.m.session.ID {
			return o, fmt.Errorf("shard %d has been taken: %w", o.Shard, store.ErrFenced)
		}
		if err == nil {
			o.Revision = v.Owners[o.Shard].Revision
			return o, nil
		}
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(recheckEvery):
		}
	}
}

// serveSound reads what is still unread of the journal, to which nobody else can append any more, and serves the
// shard until the session ends, the shard is lost, or damage is met. Whoever met it is returned, with what it has not
// decided in its inbox.
func (p *placement) serveSound(
	ctx context.Context, ownership store.Ownership, have *shard.Loaded,
) (left *shard.Owner, err error) {
	at, began := ownership.Shard, time.Now()
	have, err = p.catchUp(ctx, at, have)
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	own := shard.New(p.m.ownerConfig(), ownership, have, &p.oversized[at], stop)
	if err := own.AcceptLoss(ctx, have); err != nil {
		return nil, err
	}
	for _, node := range have.State.RunningNodes() {
		if gone, err := p.isGone(ctx, node); err != nil {
			return nil, err
		} else if gone {
			own.Inbox().Lose(node)
		}
	}
	own.Served(time.Since(began))
	p.mu.Lock()
	p.owners[at] = own
	p.mu.Unlock()
	p.wake.Notify() // it may be the last one that the node waited for
	p.m.log.DebugContext(ctx, "shard is served",
		"shard", at, "entries", have.Head.Number, "tasks", have.State.Len(), "live", have.State.Live())
	defer func() {
		p.mu.Lock()
		delete(p.owners, at)
		p.over[at] = ownership.Revision
		p.mu.Unlock()
		p.m.node.futures.ServeAway(at)
		p.preferOwn()
		if left == nil {
			p.m.sender.ServeHere(at, nil)
			p.m.sender.OwnerChanged(at)
		}
	}()
	p.preferOwn()
	p.m.node.futures.ServeHere(at, have.Head)
	p.m.sender.ServeHere(at, own.Inbox())
	p.m.node.extensions.again()
	p.m.offers.OwnerChanged(at)
	p.m.serveShard(serving, at, own.Inbox())
	p.m.spawn(func(context.Context) { own.StoreSnapshots(serving) })
	p.m.spawn(func(context.Context) { own.Trim(serving) })
	err = own.Run(serving)
	switch {
	case serving.Err() == nil && shard.IsDamage(err):
		return own, err
	case serving.Err() == nil:
		return nil, err
	}
	return nil, nil // it was stopped; that a write of its then had no answer is no doubt about the session
}

// catchUp reads what is still unread of a shard that is this node's now: all, or what came after an earlier load.
func (p *placement) catchUp(ctx context.Context, shard int, have *shard.Loaded) (*shard.Loaded, error) {
	if have == nil {
		return p.m.loader.LoadStored(ctx, shard)
	}
	err := p.m.loader.Replay(ctx, shard, have)
	if errors.Is(err, store.ErrTrimmed) { // snapshots went past it
		return p.m.loader.LoadStored(ctx, shard)
	}
	if err != nil {
		return nil, err
	}
	pointer, err := p.m.loader.Pointer(ctx, shard)
	have.PointTo(pointer)
	return have, err
}

// isGone reports whether a node's session has ended, by a linearizable read.
func (p *placement) isGone(ctx context.Context, node string) (bool, error) {
	v, err := p.m.refresh(ctx)
	if err != nil {
		return false, err
	}
	_, present := v.Nodes[node]
	return !present, nil
}

// preferOwn makes random ids fall into the shards served here.
func (p *placement) preferOwn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	shards := make([]int, 0, len(p.owners))
	for shard := range p.m.shards {
		if p.owners[shard] != nil {
			shards = append(shards, shard)
		}
	}
	p.m.node.ids.Prefer(shards)
}

var errStays = errors.New("the owner keeps the shard")

// askFor asks the owner of a shard that belongs here to hand it over, having read its journal, so that nobody
// waits. The owner key alone tells whether it did; it waits for the answer until wait ends.
func (p *placement) askFor(ctx, wait context.Context, shard int) error {
	defer p.askNoMore(shard)
	have, err := p.m.loader.Load(ctx, shard)
	if err != nil {
		p.spare(shard, reloadEvery, reloadEvery) // what is stored of it is damaged
		return fmt.Errorf("%w: %w", errStays, err)
	}
	wait, cancel := context.WithTimeout(wait, p.m.ttl)
	a, err := p.m.sender.Ask(wait, shard, command.LaneQuery, &command.HandOver{Node: p.m.session.ID})
	cancel()
	if err == nil {
		err = a.Err("")
	}
	v, unread := p.m.refresh(ctx)
	if unread != nil {
		return fmt.Errorf("%w: %w", errStays, unread)
	}
	key := v.Owners[shard]
	switch {
	case key.Node != p.m.session.ID && err != nil:
		p.spare(shard, askAgain, rebalanceDelay)
		return fmt.Errorf("%w: %w", errStays, err)
	case key.Node != p.m.session.ID:
		p.spare(shard, askAgain, rebalanceDelay)
		return errStays
	}
	p.askNoMore(shard)
	return p.serve(ctx, store.Ownership{Shard: shard, Revision: key.Revision, Session: p.m.session}, have)
}

// spare lets a shard stay where it is for a while.
func (p *placement) spare(shard int, least, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spared.extend(shard, time.Now(), least, most)
}

// askNoMore allows to ask for another shard, unless one is asked for already.
func (p *placement) askNoMore(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancelAsk != nil && p.asked == shard {
		p.cancelAsk()
		p.cancelAsk = nil
	}
}

// wantsToGive reports whether a shard served here belongs to the node that asks for it.
func (m *member) wantsToGive(shard int, target string) bool {
	v := m.view.Load()
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	m.place.arrange(v)
	n, present := v.Nodes[target]
	return present && !n.Draining && n.Owner && v.Outdated(n.Reads.UpTo(0)) == "" &&
		m.place.ranks.best(shard) == target
}

// findLost tells the owners of nodes whose sessions have ended while attempts ran there. That a node is missing
// from the view is a reason to look; the look, made after the attempts' Started, is the evidence.
func (p *placement) findLost(ctx context.Context) {
	missing := p.missing(p.m.view.Load())
	if len(missing) == 0 {
		return
	}
	v, err := p.m.refresh(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.m.log.WarnContext(ctx, "lost attempts are found later", "err", err)
		}
		return
	}
	for node, owners := range missing {
		if _, present := v.Nodes[node]; present {
			continue
		}
		for _, o := range owners {
			o.Inbox().Lose(node)
		}
	}
}

// missing returns the nodes with attempts that the view does not show, and the owners concerned.
func (p *placement) missing(v *store.Membership) map[string][]*shard.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	missing := map[string][]*shard.Owner{}
	for _, o := range p.owners {
		for _, node := range o.RunningNodes() {
			if _, present := v.Nodes[node]; !present {
				missing[node] = append(missing[node], o)
			}
		}
	}
	return missing
}

// stuck returns a shard whose owner has been deciding for longer than the limit; -1 = none.
func (p *placement) stuck(limit time.Duration) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for shard, o := range p.owners {
		if o.DecidesFor() > limit {
			return shard
		}
	}
	return -1
}

// served returns the owners in this process.
func (p *placement) served() []*shard.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*shard.Owner, 0, len(p.owners))
	for _, o := range p.owners {
		all = append(all, o)
	}
	return all
}

// ringOwners makes every owner in this process take a turn.
func (p *placement) ringOwners() {
	for _, o := range p.served() {
		o.Inbox().Wake()
	}
}

func (p *placement) wait() { p.serving.Wait() }

// haveArchived reports whether a shard that is served here knows of entries in the archive.
func (p *placement) haveArchived() bool {
	return slices.ContainsFunc(p.served(), func(o *shard.Owner) bool { return o.Vitals().Archived > 0 })
}
