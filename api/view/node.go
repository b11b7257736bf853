package view

import (
	"strings"
	"time"

	"taskledger/store"
)

// Node is a member as JSON shows it.
type Node struct {
	Name      string   `json:"node"`
	Session   string   `json:"session"`
	Version   string   `json:"version"`
	Behaviors []string `json:"behaviors"`
	Types     string   `json:"types"`
	Slots     int      `json:"slots"`
	Owner     bool     `json:"owner"`
	Draining  bool     `json:"draining"`
	JoinedAt  string   `json:"joined_at"`

	Reads store.Reads `json:"reads"`

	ClockAheadMs int64 `json:"clock_ahead_ms,omitempty"`
}

// OfNode shows a member.
func OfNode(n store.NodeInfo) Node {
	return Node{
		Name:         n.Name,
		Session:      n.ID,
		Version:      n.Version,
		Behaviors:    n.Behaviors,
		Types:        n.Types,
		Slots:        n.Slots,
		Owner:        n.Owner,
		Draining:     n.Draining,
		JoinedAt:     time.UnixMilli(n.Joined).UTC().Format(time.RFC3339),
		Reads:        n.Reads,
		ClockAheadMs: n.ClockAhead,
	}
}

// Owner names the node that owns a shard, by its name and its session id.
func Owner(name, session string) string {
	if name == session {
		return session
	}
	return strings.TrimSpace(name + " " + session)
}

// Clock says in words how far a node's clock is off the others'.
func Clock(aheadMs int64) string {
	switch ahead := time.Duration(aheadMs) * time.Millisecond; {
	case ahead > 0:
		return ahead.String() + " ahead"
	case ahead < 0:
		return (-ahead).String() + " behind"
	}
	return "-"
}
