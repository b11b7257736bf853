package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/ledger"
	"taskledger/store"
)

// member is a node during one session. When the session ends everything in it ends, and the node begins another.
type member struct {
	node     *Node // that outlives the session, as do these of its:
	cfg      *NodeConfig
	exec     *worker.Executor
	offers   *worker.Offers
	worker   *worker.Session // what attempts and offers know of the session
	sender   *sender.Sender
	settings *nodeSettings

	log     *slog.Logger
	notices *notice.Log // nil before it has joined
	shards  int         // of the cluster

	// What it needs of the outside.
	bus          store.Bus
	owners       store.Owners
	mailbox      store.Mailbox
	sweeper      store.Sweeper
	housekeeping store.Housekeeping
	loader       *shard.Loader

	lease
	membership
	scope
	admission admission
	place     *placement
	load      *load
	draining  atomic.Bool
	heard     atomic.Bool // the settings, during this session
}

func newMember(n *Node) *member {
	s := n.cfg.Store
	m := &member{
		node:         n,
		cfg:          &n.cfg,
		exec:         n.exec,
		offers:       n.offers,
		sender:       n.sender,
		settings:     &n.settings,
		log:          n.cfg.Log,
		shards:       s.Cluster().Shards,
		bus:          n.cfg.Bus,
		owners:       s,
		mailbox:      s,
		sweeper:      s,
		housekeeping: s,
		loader: &shard.Loader{
			Journal:   s,
			Snapshots: s,
			Trimmer:   s,
			Losses:    s,
			Archive:   n.cfg.Archive,
			Archives:  n.cfg.archives(),
			Reader:    ledger.NewReader(s, s, n.cfg.reader(), n.cfg.archives()),
			Log:       n.cfg.Log,
		},
		lease:      lease{sessions: s, ttl: n.cfg.TTL},
		membership: membership{members: s},
	}
	m.membership.begin()
	m.admission.begin()
	m.place = newPlacement(m)
	m.load = newLoad(m)
	return m
}

// watchArchive inspects the archive until ctx ends.
func (m *member) watchArchive(ctx context.Context) error {
	m.node.archive.Run(ctx, m.cfg.Archive, m.place.haveArchived, m.log)
	return nil
}

// setSchedules sets the schedules in the code of this node.
func (m *member) setSchedules(ctx context.Context) error {
	setEach(ctx, slices.Clone(m.node.inCode), m.node.Schedules().setFromCode, m.log)
	return nil
}

func (m *member) now() events.Millis { return events.MillisOf(m.cfg.Now()) }

// run joins, serves until ctx ends and then drains, or returns why the session ended.
func (m *member) run(ctx context.Context) error {
	if err := m.join(ctx); err != nil {
		if ctx.Err() != nil || m.node.killed.Err() != nil {
			return nil
		}
		return err
	}
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	m.end = end
	defer end(nil)
	defer context.AfterFunc(m.node.killed, func() { end(errKilled) })()
	g, session := errgroup.WithContext(base)
	m.ctx = session
	m.worker = worker.NewSession(session, m.session.ID, m.ttl, workerHost{m}, workerHost{m}, m.log)
	defer m.worker.End()
	m.offers.Serve(m.worker)
	m.node.member.Store(m)
	for _, loop := range []func(context.Context) error{
		m.renew, m.watchFence, m.watchMembers, m.place.run, m.load.run, m.followSettings, m.offerSlots, m.reconcile,
		m.sweepMailboxes, m.maintain, m.serveBus, m.answerPlans, m.watchArchive, m.setSchedules,
		m.node.sweep.Run,
	} {
		g.Go(func() error { return m.guard(session, loop) })
	}
	var stopBy time.Time // zero: no drain has begun
	select {
	case <-session.Done():
	case <-ctx.Done():
		stopBy = m.drain(session)
	}
	cause := context.Cause(base)
	m.exec.GiveUp(m.worker)
	end(errStopped)
	if err := g.Wait(); err != nil && cause == nil {
		cause = err
	}
	m.place.wait()
	m.tasks.Wait()
	if m.node.killed.Err() != nil { // also where the session had ended just before
		return nil
	}
	return errors.Join(cause, m.leave(ctx, stopBy))
}

var (
	errStopped = errors.New("node has stopped")
	errExpired = errors.New("the session could not be renewed in time")
	// errEndedEarly reports that what lasts as long as the session has ended before it.
	errEndedEarly = errors.New("ended before the session")
)

// guard runs a loop of the session; one that ends early ends the session.
func (m *member) guard(ctx context.Context, loop func(context.Context) error) error {
	err := loop(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errEndedEarly
	}
	return err
}

// key returns the present content of the node key.
func (m *member) key() store.NodeInfo {
	info := m.node.info()
	info.Draining, info.Joined = m.draining.Load(), m.joinedAt
	info.Load = m.load.forKey()
	return info
}

// updateKey makes the node key say what is the case when it is written: others may be updating it, too.
func (m *member) updateKey(ctx context.Context) error {
	return m.sessions.Update(ctx, m.session, m.key)
}

func (m *member) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(m.ttl, 10*time.Second))
	defer cancel()
	defer context.AfterFunc(m.node.killed, cancel)()
	if err := m.lease.begin(ctx, m.node.info()); err != nil {
		return err
	}
	if m.node.joined.IsZero() {
		m.node.joined = m.began
	}
	m.log = m.log.With("session", m.session.ID)
	m.loader.Log, m.notices = m.log, notice.New(m.log)
	if m.cfg.SessionFile == "" {
		return nil
	}
	if err := writeSessionFile(m.cfg.SessionFile, m.session); err != nil { // it only spares a restarted process a wait
		m.log.WarnContext(ctx, "session is not remembered: a restart waits for its TTL", "err", err)
	}
	return nil
}

// mayStart reports whether the session is young enough to take on work, and to answer from memory.
func (m *member) mayStart() bool { return m.age() < m.ttl*2/3 && m.ctx.Err() == nil }

// renew extends the lease every second, by single requests, while the owners turn: a hung process must lose its
// shards.
func (m *member) renew(ctx context.Context) error {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if stuck := m.place.stuck(m.ttl / 2); stuck >= 0 {
			m.log.ErrorContext(ctx, "session is not renewed: an owner does not turn", "shard", stuck)
			continue
		}
		err := m.extend(ctx)
		switch {
		case errors.Is(err, store.ErrSessionEnded), errors.Is(err, store.ErrBroken):
			return err
		case err != nil && ctx.Err() == nil:
			m.log.WarnContext(ctx, "etcd did not renew the session, trying again", "err", err)
		}
	}
}

// watchFence ends the session by the local monotonic clock.
func (m *member) watchFence(ctx context.Context) error {
	timer := time.NewTimer(m.expiry())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		left := m.expiry() - m.age()
		if left <= 0 {
			m.exec.GiveUp(m.worker)
			return errExpired
		}
		timer.Reset(left)
	}
}

// watchMembers keeps the view of the membership current.
func (m *member) watchMembers(ctx context.Context) error {
	var failing notice.Onset
	for members, err := range m.members.WatchMembers(ctx) {
		if failing.Begins(err) {
			m.log.WarnContext(ctx, "the watch of nodes and owners in etcd failed, trying again", "err", err)
		}
		if err != nil {
			continue
		}
		if err := m.see(&members); err != nil {
			return err
		}
	}
	return fmt.Errorf("watch of the members %w", errEndedEarly)
}

// see takes a membership as the view, unless a later one is. It may be called by several goroutines.
func (m *member) see(v *store.Membership) error {
	old, err := m.take(v, m.session)
	if old == nil {
		return err
	}
	m.notices.Members(m.session.ID, old, v)
	moved := false
	for shard, owner := range v.Owners {
		if old.Owners[shard] != owner {
			moved = true
			m.sender.OwnerChanged(shard)
			m.node.futures.AskAll(shard)
			m.offers.OwnerChanged(shard)
		}
	}
	if moved {
		m.node.extensions.again()
	}
	m.load.see()
	m.place.wake.Notify()
	m.offers.Wake()
	for id := range v.Nodes {
		if _, known := old.Nodes[id]; !known {
			m.place.ringOwners() // its offers may have come before it was seen
			break
		}
	}
	return nil
}

// refresh reads the membership now and takes it as the view.
func (m *member) refresh(ctx context.Context) (*store.Membership, error) {
	at := m.now()
	members, err := m.members.ReadMembers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	missing := m.place.missing(&members)
	m.sight(at, &members, func(node string) bool { return missing[node] != nil })
	return &members, m.see(&members)
}

// readable makes sure that all nodes can read entries with events up to a kind: it records that no other node may
// join any more, and checks that none is present. Every view with that record has all nodes that joined before it.
// The error wraps command.ErrDecideAnew when the entry need only be decided anew, with the nodes that are known now.
func (m *member) readable(ctx context.Context, kind events.Kind) error {
	v, need := m.view.Load(), ledger.Reads().UpTo(kind)
	if v.Written.Lacks(need) != "" {
		err := m.sessions.Raise(ctx, need)
		if err == nil {
			v, err = m.refresh(ctx)
		}
		if err != nil {
			return fmt.Errorf("write what needs an upgrade: %w", err)
		}
	}
	problem := v.Outdated(need)
	switch {
	case problem == "":
		return nil
	case v.Outdated(need.UpTo(0)) != "":
		return errors.New(problem)
	}
	return fmt.Errorf("%w: %s", command.ErrDecideAnew, problem)
}

// cancelAttempt hints to the node of an attempt that it is to end. The next Reconcile repeats it.
func (m *member) cancelAttempt(shard int, c shard.Cancel) {
	if c.Node == m.session.ID {
		m.exec.Cancel(shard, c.Started, worker.CancelledBy(c.By, c.Reason))
		return
	}
	m.sender.Hint("node."+c.Node+".cancel", "", message.Encode(cancelMessage{
		Shard:   int64(shard),
		Task:    c.Task,
		Started: c.Started,
		By:      c.By,
		Reason:  c.Reason,
	}))
}

// announce reports the outcomes of a committed entry to all that may wait for them.
func (m *member) announce(shard int, outcomes []outcome.Outcome) {
	m.node.futures.Report(shard, outcomes)
	m.node.sweep.Deleted(shard, outcomes)
	if m.bus == nil || !m.sender.Connected() {
		return
	}
	for _, data := range outcome.Encode(outcomes) {
		m.sender.Hint(futures.Subject(shard), "", data)
	}
	public := outcome.CloudEvents{Source: m.source(), Shard: shard}
	var text []byte
	var subject string
	var last *outcome.Outcome // of which the subject is
	for i := range outcomes {
		o := &outcomes[i]
		if o.Status == 0 {
			continue
		}
		if last == nil || o.Behavior != last.Behavior || o.Status != last.Status {
			subject, last = "completed."+o.Behavior+"."+o.Status.String(), o
		}
		text = public.Append(text[:0], o)
		m.sender.Hint(subject, "", text)
	}
}

func (m *member) source() string { return "taskledger/" + m.cfg.Store.Cluster().ID }

// sessionID implements localNode.
func (m *member) sessionID() string { return m.session.ID }

// leaving implements localNode.
func (m *member) leaving() bool { return m.draining.Load() }

// busConnected implements localNode.
func (m *member) busConnected() { m.load.busConnected() }

// unservedSince implements localNode.
func (m *member) unservedSince(shard int) time.Time { return m.place.unservedSince(shard) }
