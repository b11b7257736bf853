package remote

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"taskledger/api"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger/repair"
	"taskledger/meter"
	"taskledger/store"
	"taskledger/task"
)

// observer implements operations.Observer.
type observer struct{ *link }

// nodes is api.Nodes as far as it is read here.
type nodes struct {
	Nodes []struct {
		Name      string    `json:"node"`
		Session   string    `json:"session"`
		Version   string    `json:"version"`
		Behaviors []string  `json:"behaviors"`
		Types     string    `json:"types"`
		Slots     int       `json:"slots"`
		Owner     bool      `json:"owner"`
		Draining  bool      `json:"draining"`
		JoinedAt  time.Time `json:"joined_at"`
		Reads     struct {
			Kind     string `json:"kind"`
			Entry    uint64 `json:"entry"`
			Snapshot uint64 `json:"snapshot"`
			Rules    uint64 `json:"rules"`
		} `json:"reads"`
		ClockAheadMs int64 `json:"clock_ahead_ms"`
	} `json:"nodes"`
}

// Nodes implements operations.Observer.
func (o observer) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	var told nodes
	_, err := o.ask(ctx, request{
		does:   "list nodes",
		method: http.MethodGet,
		path:   "/v1/nodes",
		most:   pageBytes,
	}, &told)
	if err != nil {
		return nil, err
	}
	all := make([]store.NodeInfo, len(told.Nodes))
	for i, n := range told.Nodes {
		all[i] = store.NodeInfo{
			ID:        n.Session,
			Name:      n.Name,
			Version:   n.Version,
			Behaviors: n.Behaviors,
			Types:     n.Types,
			Slots:     n.Slots,
			Owner:     n.Owner,
			Draining:  n.Draining,
			Reads: store.Reads{
				Kind:     kindOf(n.Reads.Kind),
				Entry:    n.Reads.Entry,
				Snapshot: n.Reads.Snapshot,
				Rules:    n.Reads.Rules,
			},
			Joined:     n.JoinedAt.UnixMilli(),
			ClockAhead: n.ClockAheadMs,
		}
	}
	return all, nil
}

// kindOf returns the kind of a name; 0 = this program does not know it.
func kindOf(name string) events.Kind {
	for _, k := range events.Kinds() {
		if k.String() == name {
			return k
		}
	}
	return 0
}

// Shards implements operations.Observer.
func (o observer) Shards(ctx context.Context) ([]engine.ShardInfo, error) {
	q := newParams()
	q.flag("figures", true)
	var told api.Shards
	_, err := o.ask(ctx, request{
		does:   "list shards",
		method: http.MethodGet,
		path:   "/v1/shards",
		query:  q.Values,
		most:   pageBytes,
	}, &told)
	if err != nil {
		return nil, err
	}
	for i, f := range told.Figures[:min(len(told.Figures), len(told.Shards))] {
		told.Shards[i].Figures, err = meter.Unpack(f.Behaviors, f.Numbers)
		if err != nil {
			return nil, fmt.Errorf("list shards: %w: figures of shard %d: %w", store.ErrUnavailable, told.Shards[i].Shard, err)
		}
	}
	return told.Shards, nil
}

// Settings implements operations.Observer.
func (o observer) Settings(ctx context.Context) (task.Settings, error) {
	told, err := behaviorsOf(ctx, o.link, "read the settings", "")
	return task.Settings{Paused: told.Paused}, err
}

// Repair implements operations.Observer: it has no route.
func (observer) Repair(context.Context, repair.Options) ([]repair.Stray, error) {
	return nil, fmt.Errorf("repair: %w: it works on a cluster in etcd, beside its node or at --etcd", ErrNoRoute)
}

// Ask implements operations.Observer: it has no route.
func (observer) Ask(_ context.Context, session, name string, _ []byte) ([]byte, error) {
	return nil, fmt.Errorf("question %s of node %s: %w: ask over the bus of the cluster", name, session, ErrNoRoute)
}
