package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/logsweep"
	"taskledger/engine/internal/logwriters"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/internal/version"
	"taskledger/ledger"
	"taskledger/meter"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/work/workledger"
)

// Limits of a node.
const (
	defaultSlots = 512
	maxSlots     = 65_536
	defaultTTL   = 10 * time.Second
	minTTL       = 3 * time.Second
	maxTTL       = 60 * time.Second
	defaultGrace = 15 * time.Second
)

// leftBehind bounds the wait of a stopped node for functions that do not return, and for what is left of the logs of
// attempts. A drain has waited for functions, too.
const leftBehind = 500 * time.Millisecond

// sessionPause is the time between two sessions; doubled after each that was shorter than a TTL, up to
// maxSessionPause.
const (
	sessionPause    = 200 * time.Millisecond
	maxSessionPause = 3 * time.Second
)

// NodeConfig configures a node: a client that also owns shards and makes attempts.
type NodeConfig struct {
	Store     store.Store     // required
	Bus       store.Bus       // nil: everything goes by way of the store, at the speed of its watches
	Behaviors []task.Behavior // those that it runs; may be empty: it then only owns shards

	// Name is shown to people, and recorded as the principal of the node's commands: at most 256 bytes; default the
	// host name. It need not be unique. Its first 16 characters begin the ids of the node's sessions, and histories
	// show them alone: names should differ in those, and other characters than [A-Za-z0-9_-] become _ there.
	Name   string
	Slots  int            // attempts at once; default 512, at most 65,536; -1: it makes none
	Limits map[string]int // attempts at once by behavior; a behavior without a limit is bounded by Slots
	Owner  *bool          // whether it owns shards; default true

	Archive  store.Archive // stores entries that are trimmed from the journals; nil = none
	Trimming Trimming      // of the journals; default TrimArchived

	// Logs keeps what tasks write while they run: task.Attempt.Log and Output. nil = no logs are kept. All nodes of a
	// cluster should have the same, since the owner of a task's shard removes its log.
	Logs tasklog.Store

	// Questions holds the functions that answer questions about the node, which others ask with Operations.Ask, by
	// name: 1 to 48 bytes of [a-z0-9-]. The caller must not change the map after NewNode. nil: the node answers none.
	Questions map[string]Question

	// TTL bounds the time without renewal after which the session ends and the node counts as dead; default 10s, 3s
	// to 60s.
	TTL time.Duration

	// Grace is the time that running attempts may go on when Run ends; default 15s; negative: not at all. Run ends 12s
	// after that at the latest.
	Grace time.Duration

	// SessionFile is the path of a file that stores the session across restarts, so that a restarted process can
	// end its last session instead of waiting for its TTL. It must not be shared with another process. "": none.
	SessionFile string

	Meter meter.Meter  // receives what the node measures; nil: none
	Log   *slog.Logger // gets the attributes node, the Name, and session, the id; default: slog.Default()

	// Now is the wall clock; default time.Now. It must return at once, since owners wait for it. Several goroutines
	// call it, with no lock held.
	Now func() time.Time

	// Zones finds a time zone by its name in the IANA database, for the ticks of schedules that the node decides: for
	// programs that bring their own data of time zones, and for tests. Default time.LoadLocation. Several goroutines
	// call it; a zone that it has no data for is an error, which Schedule.Why tells.
	Zones func(name string) (*time.Location, error)
}

// Trimming selects the entries that are removed from the journals once both stored snapshots of their shard cover
// them.
type Trimming uint8

const (
	// TrimArchived removes the entries that NodeConfig.Archive holds. Without an archive nothing is removed, and a
	// node that owns shards warns of it when it starts.
	TrimArchived Trimming = iota
	// TrimNothing keeps the journals whole on purpose. An archive is then only read, for entries that were trimmed
	// before.
	TrimNothing
	// TrimAll needs no archive, and allows none. Events from before the stored snapshots are forgotten: there is no
	// history of them, and no verification from the beginning.
	TrimAll
)

// Node is a member of the cluster that owns shards and makes attempts. It can do everything that a Client can: it
// is one, whose commands reach its own shards by a call.
type Node struct {
	*Client
	cfg       NodeConfig
	types     string // of the behaviors: see typeDigests
	behaviors map[string]task.Behavior
	inCode    []codeSchedule
	exec      *worker.Executor
	offers    *worker.Offers
	member    atomic.Pointer[member]
	ready     chan struct{}
	once      sync.Once
	kill      context.CancelCauseFunc

	settings nodeSettings
	logs     *logwriters.Writers // nil: no logs are kept
	sweep    *logsweep.Sweep
	answers  *answerer

	joined     time.Time   // when its first session began
	clockWrong atomic.Bool // too far off the other nodes'
	relimited  atomic.Bool // limits have changed that its key does not have yet

	archive  archiveWatch
	archived atomic.Int64 // when a shard of the process was archived last, in milliseconds; 0 = never
}

// Validate returns the error with which NewNode would refuse the configuration, except that the Store may be
// missing. It asks nothing outside of the process, so that a process can call it before it opens or creates a
// cluster.
func (c *NodeConfig) Validate() error {
	whole := *c
	_, err := whole.complete()
	return err
}

// NewNode returns a node, or an error if the configuration or one of the behaviors is wrong. It starts nothing:
// call Run.
func NewNode(cfg NodeConfig) (*Node, error) {
	if cfg.Store == nil {
		return nil, &store.InvalidError{Field: "store", Problem: "missing"}
	}
	behaviors, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	inCode, err := codeSchedulesOf(behaviors, cfg.Now())
	if err != nil {
		return nil, err
	}
	client, err := NewClient(ClientConfig{
		Bus:     cfg.Bus,
		Store:   cfg.Store,
		Archive: cfg.reader(),
		Logs:    cfg.Logs,
		Name:    cfg.Name,
		Log:     cfg.Log,
		Now:     cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	client.archives = cfg.archives()
	types := typeDigests(sortedKeys(behaviors), func(id string) string { return behaviors[id].Types() })
	n := &Node{
		Client: client,
		cfg:    cfg,
		types:  types,
		ready:  make(chan struct{}),
	}
	n.killed, n.kill = context.WithCancelCause(context.Background())
	n.behaviors, n.inCode = behaviors, inCode
	n.sweep = logsweep.New(cfg.Logs, cfg.Now, cfg.Log)
	if cfg.Logs != nil {
		n.logs = logwriters.New(n.killed, logwriters.Config{To: cfg.Logs, Meter: cfg.Meter, Log: cfg.Log})
	}
	n.exec = worker.NewExecutor(worker.Config{
		Behaviors: behaviors,
		Slots:     cfg.Slots,
		Limits:    cfg.Limits,
		Shards:    client.cfg.Shards,
		Sender:    client.sender,
		Now:       cfg.Now,
		Log:       cfg.Log,
		Logs:      n.logs,
		Value:     n.attemptValue,
	})
	n.offers = worker.NewOffers(n.exec)
	n.answers = newAnswerer(cfg.Questions, n.exec, client.sender)
	client.local = n.here
	client.sender.Attach(n.offers)
	return n, nil
}

func checkBehavior(b task.Behavior) error {
	if b == nil {
		return &store.InvalidError{Field: "behaviors", Problem: "nil"}
	}
	if err := events.ValidateBehavior(b.ID()); err != nil {
		return &store.InvalidError{Field: "behaviors", Problem: err.Error()}
	}
	if v, ok := b.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			field := "behavior " + b.ID()
			return &store.InvalidError{Field: field, Problem: strings.TrimPrefix(err.Error(), field+": ")}
		}
	}
	if _, err := b.Policy().Complete(); err != nil {
		return &store.InvalidError{Field: "behavior " + b.ID(), Problem: err.Error()}
	}
	return nil
}

// archives reports whether journals are trimmed of what is in the archive, and of nothing else.
func (c *NodeConfig) archives() bool { return c.Archive != nil && c.Trimming == TrimArchived }

// reader is the archive for reading; nil without one.
func (c *NodeConfig) reader() store.ArchiveReader {
	if c.Archive == nil {
		return nil
	}
	return c.Archive
}

// byID are the behaviors of the node by their ids.
func (c *NodeConfig) byID() (map[string]task.Behavior, error) {
	if n := len(c.Behaviors); n > command.MaxOffered {
		return nil, &task.LimitError{Field: "behaviors", Limit: command.MaxOffered, Got: int64(n)}
	}
	behaviors := map[string]task.Behavior{}
	for _, b := range c.Behaviors {
		if err := checkBehavior(b); err != nil {
			return nil, err
		}
		if behaviors[b.ID()] != nil {
			return nil, &store.InvalidError{Field: "behaviors", Problem: fmt.Sprintf("%s is given twice", b.ID())}
		}
		behaviors[b.ID()] = b
	}
	for _, id := range sortedKeys(c.Limits) {
		if n := c.Limits[id]; behaviors[id] == nil || n < 0 {
			problem := fmt.Sprintf("%s=%d, want 0 or more for a behavior of the node: %s",
				id, n, strings.Join(sortedKeys(behaviors), ", "))
			return nil, &store.InvalidError{Field: "limits", Problem: problem}
		}
	}
	_, err := codeSchedulesOf(behaviors, c.Now())
	return behaviors, err
}

// complete sets the defaults, and returns the behaviors by their ids.
func (c *NodeConfig) complete() (map[string]task.Behavior, error) {
	if c.Trimming > TrimAll {
		problem := fmt.Sprintf("%d, want 0 to %d", c.Trimming, TrimAll)
		return nil, &store.InvalidError{Field: "trimming", Problem: problem}
	}
	if c.Archive != nil && c.Trimming == TrimAll {
		return nil, &store.InvalidError{Field: "trimming", Problem: "all although there is an archive"}
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name of the node: %w", err)
		}
		c.Name = host
	}
	if c.Slots < -1 || c.Slots > maxSlots {
		return nil, &store.InvalidError{Field: "slots", Problem: fmt.Sprintf("%d, want -1 to %d", c.Slots, maxSlots)}
	}
	c.Slots = cmp.Or(c.Slots, defaultSlots)
	c.TTL = cmp.Or(c.TTL, defaultTTL)
	if c.TTL < minTTL || c.TTL > maxTTL {
		return nil, &store.InvalidError{Field: "ttl", Problem: fmt.Sprintf("%s, want %s to %s", c.TTL, minTTL, maxTTL)}
	}
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	if c.Owner == nil {
		yes := true
		c.Owner = &yes
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = c.Log.With("node", c.Name)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Zones == nil {
		c.Zones = time.LoadLocation
	}
	if err := checkQuestions(c.Questions); err != nil {
		return nil, err
	}
	return c.byID()
}

// Run joins the cluster and serves until ctx ends. Then it drains: no attempt starts any more, running ones get
// Grace, the contexts of those that are left end, which gives them ten seconds, and they are recorded as Released,
// also where their functions have not returned by then; the shards are handed over, and the lease is revoked. It
// returns nil after a clean drain. If the session ends while it serves, Run cancels every attempt, drops all shards
// and begins a new session. If no session can go on, Run returns an error that wraps store.ErrOutdated or
// store.ErrBroken; after store.ErrBroken all calls of the node end with an error that wraps it and task.ErrClosed.
// Run may be called once: another call returns task.ErrClosed.
func (n *Node) Run(ctx context.Context) error {
	return n.Client.run(ctx, func(ctx context.Context) error {
		defer n.stopWorkers()
		if n.cfg.Archive == nil && n.cfg.Trimming == TrimArchived && *n.cfg.Owner {
			n.cfg.Log.WarnContext(ctx, "no archive is configured: the journals are kept in the store, "+
				"which grows until it refuses new tasks; NodeConfig.Trimming chooses so")
		}
		if err := n.endLastSession(ctx); err != nil {
			n.cfg.Log.WarnContext(ctx, "the session before this one ends by its TTL", "err", err)
		}
		room := newHousekeeper(n.cfg.Store, time.Time{}) // of a store too full for a session
		pause := sessionPause
		for {
			m := newMember(n)
			began := time.Now()
			err := m.run(ctx)
			n.member.Store(nil)
			n.offers.Serve(nil)
			if ctx.Err() != nil || n.killed.Err() != nil || endsForGood(err) {
				return err
			}
			n.cfg.Log.WarnContext(ctx, "session ended, starting again as a new node", "err", err)
			if errors.Is(err, store.ErrFull) {
				m.makeRoom(ctx, room)
			}
			if time.Since(began) > n.cfg.TTL {
				pause = sessionPause
			}
			select {
			case <-ctx.Done():
				return nil
			case <-n.killed.Done():
				return nil
			case <-time.After(pause):
				pause = min(2*pause, maxSessionPause)
			}
		}
	})
}

// endsForGood reports whether no other session of this process would last longer than one that ended with err.
func endsForGood(err error) bool {
	return errors.Is(err, store.ErrOutdated) || errors.Is(err, store.ErrBroken)
}

func (n *Node) stopWorkers() {
	until := time.Now().Add(leftBehind)
	if n.logs != nil {
		defer func() { n.logs.Stop(time.Until(until)) }()
	}
	if attempts, plans := n.exec.Stop(leftBehind); attempts+plans > 0 {
		n.cfg.Log.Warn("functions that do not return are left behind", "attempts", attempts, "plans", plans)
	}
}

// here returns the present session as what the client knows of its node; nil between sessions.
func (n *Node) here() localNode {
	if m := n.member.Load(); m != nil {
		return m
	}
	return nil
}

// attemptValue returns the values that the contexts of attempts hold for the engine.
func (n *Node) attemptValue(key any) any {
	switch key {
	case clientKey{}:
		return n.Client
	case workledger.Key{}:
		return workledger.Opener(n.Client.openWork)
	}
	return nil
}

// SetLimit changes, while the node runs, how many attempts of one of its behaviors are made at once: see
// NodeConfig.Limits. Below 0 the slots alone bound their number. Attempts above a lower limit go on, and at 0 none
// starts. The other nodes learn of it within seconds. It returns a *store.InvalidError for a behavior that the node
// does not run.
func (n *Node) SetLimit(behavior string, limit int) error {
	if n.behaviors[behavior] == nil {
		return &store.InvalidError{Field: "limit", Problem: fmt.Sprintf("the node does not run %.48q", behavior)}
	}
	n.exec.SetLimit(behavior, limit)
	n.relimited.Store(true)
	n.offers.Wake()
	if m := n.member.Load(); m != nil {
		m.place.ringOwners() // at 0 none waits for a slot
	}
	return nil
}

// Ready is closed when the node has joined and first serves all its shards that no other node serves. Shards that
// other nodes serve move to it later, one by one.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Kill ends Run at once and without a drain, as a crash of the process would; for tests.
func (n *Node) Kill() { n.kill(errKilled) }

var errKilled = errors.New("node was killed")

// SessionID returns the id of the present session, "" between sessions. It names the node in events and in NodeInfo.
func (n *Node) SessionID() string {
	if m := n.member.Load(); m != nil {
		return m.session.ID
	}
	return ""
}

func (n *Node) info() store.NodeInfo {
	return store.NodeInfo{
		Name:      n.cfg.Name,
		Version:   version.Version,
		Behaviors: sortedKeys(n.behaviors),
		Types:     n.types,
		Slots:     max(n.cfg.Slots, 0),
		Limits:    n.exec.OwnLimits(),
		Owner:     *n.cfg.Owner && !n.clockWrong.Load(),
		Reads:     ledger.Reads(),
		Joined:    n.cfg.Now().UnixMilli(),
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// endLastSession ends the session that an earlier process left in SessionFile.
func (n *Node) endLastSession(ctx context.Context) error {
	if n.cfg.SessionFile == "" {
		return nil
	}
	last, found, err := readSessionFile(n.cfg.SessionFile)
	if err != nil || !found {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.TTL)
	defer cancel()
	return n.cfg.Store.Leave(ctx, last)
}
