package worker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"taskledger/events"
	"taskledger/store"
)

// parents is the number of contexts that share the attempts of a session. With one, starting and ending attempts would
// contend for its lock.
const parents = 64

// Host is the node that makes the attempts, during one session.
type Host interface {
	// MayStart reports whether the session is young enough to take on work.
	MayStart() bool
	// Payload reads the parameters or the result that an event carries.
	Payload(ctx context.Context, shard int, ref events.Ref) (events.Payload, error)
	// TypesDiffer reports whether another node runs a behavior with other types of parameters or results.
	TypesDiffer(behavior string) bool
}

// Cluster shows where work is.
type Cluster interface {
	// View returns the membership as it was seen last.
	View() *store.Membership
	// ReadyHere returns the ready tasks by behavior of the shards that this node serves. The caller may change it.
	ReadyHere() map[string]int
	// ReadyAt returns the ready tasks by behavior of a shard, as its owner reported after a time; nil when that is
	// not known. Nobody may change it.
	ReadyAt(shard int, owner string, after time.Time) map[string]int
}

// Session is one session of the node. Attempts that belong to another one are left alone by what concerns it.
type Session struct {
	ID      string
	Lease   time.Duration
	host    Host
	cluster Cluster
	log     *slog.Logger
	ctx     context.Context // ends with the session
	parents [parents]context.Context
	stops   [parents]context.CancelFunc
	next    atomic.Uint32 // of the parents
	over    atomic.Bool   // its attempts were given up
}

// NewSession returns a session that ends with ctx. Its caller calls End after that.
func NewSession(
	ctx context.Context, id string, lease time.Duration, host Host, cluster Cluster, log *slog.Logger,
) *Session {
	s := &Session{
		ID:      id,
		Lease:   lease,
		host:    host,
		cluster: cluster,
		log:     log,
		ctx:     ctx,
	}
	for i := range s.parents {
		s.parents[i], s.stops[i] = context.WithCancel(ctx)
	}
	return s
}

// End releases what the session holds of its context, which has ended: before that attempts would not learn why it
// ends.
func (s *Session) End() {
	for _, stop := range s.stops {
		stop()
	}
}

func (s *Session) nextParent() context.Context { return s.parents[s.next.Add(1)%parents] }

// GiveUp cancels and forgets the attempts of a session that is over. Nobody may take them for missing: functions
// may go on.
func (x *Executor) GiveUp(s *Session) {
	s.over.Store(true)
	x.CancelAll(s, ErrFenced)
}
