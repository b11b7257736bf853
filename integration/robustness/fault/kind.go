// Package fault disturbs a cluster while it works. It has every kind of disturbance, with the proof that it bit, and
// plans of them.
package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"taskledger/integration/robustness/cluster"
)

// Kind is one kind of disturbance.
type Kind struct {
	Name  string
	scope scope
	needs cluster.Need
	// least and most bound the time that it is in force; a fault that takes its own time ignores them.
	least, most time.Duration
	// inflict disturbs, ends the disturbance, and returns what was disturbed and what shows that it was; no proof means
	// that nothing does. An error means that the run is broken. It must heal when ctx ends, too.
	inflict func(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error)
}

// disturbance is one case of a fault.
type disturbance struct {
	duration time.Duration
	random   *rand.Rand
	node     *cluster.Node   // that is claimed for it; nil unless the scope is oneNode
	client   *cluster.Client // that is claimed for it; nil unless the scope is oneClient
	alone    bool            // no other one is in force
	round    int
	begins   func() // says that it begins only now: what came before was waiting
}

// scope names the part of a cluster that a fault disturbs: two faults at a time never have the same, but for two nodes
// or two clients. So the changes that faults make to nodes, clients and servers need no lock.
type scope int

const (
	nothing scope = iota // that another one could disturb
	oneNode
	oneClient
	allNodes
	etcd
	nats
	everything // but clients
	everybody  // everything, and clients
)

// clashes reports whether two faults cannot be in force at a time.
func (f *Kind) clashes(other *Kind) bool {
	if f.scope == everybody || other.scope == everybody {
		return true
	}
	if f.scope == oneNode || other.scope == oneNode {
		wide := []scope{allNodes, everything}
		return slices.Contains(wide, f.scope) || slices.Contains(wide, other.scope)
	}
	if f.scope == oneClient || other.scope == oneClient {
		return false
	}
	if f.scope == everything || other.scope == everything {
		return true
	}
	return f.scope == other.scope && (f.scope != nothing || f == other)
}

// long reports whether the fault takes minutes.
func (f *Kind) long() bool { return f.least >= time.Minute }

// Cannot says why the fault is impossible on this machine, in a run of so many members; "" when it is possible.
func (f *Kind) Cannot(members int) string {
	if f.needs&cluster.NeedMembers != 0 && members < 3 {
		return fmt.Sprintf("takes three members of etcd, not %d", members)
	}
	if _, err := os.Stat("/proc/self/stat"); f.needs&cluster.NeedProc != 0 && err != nil {
		return fmt.Sprintf("takes the state of processes: %v", err)
	}
	if err := cluster.CannotLosePackets(); f.needs&cluster.NeedNamespace != 0 && err != nil {
		return fmt.Sprintf("takes network namespaces: %v", err)
	}
	return ""
}
