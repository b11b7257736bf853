package fault

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"taskledger/integration/robustness/cluster"
	"taskledger/internal/testcluster"
)

// losePackets has the kernel lose what a node sends on links of its, or what it is sent: connections go on, and nobody is
// told. What was sent meanwhile is sent again by TCP, later and later.
func losePackets(to reach, ways []testcluster.Direction) func(context.Context, *cluster.Cluster, disturbance) (string, string, error) {
	return func(ctx context.Context, _ *cluster.Cluster, d disturbance) (target, proof string, err error) {
		ports, err := portsOf(to(d.node.Links))
		if err != nil {
			return d.node.Name, "", err
		}
		var requests, replies []uint16
		if slices.Contains(ways, testcluster.Forth) {
			requests = ports
		}
		if slices.Contains(ways, testcluster.Back) {
			replies = ports
		}
		lost, err := d.node.In.Lose(requests, replies, func() { cluster.Sleep(ctx, d.duration) })
		if lost.To+lost.From > 0 {
			proof = fmt.Sprintf("the kernel dropped %d packets to servers and %d from them", lost.To, lost.From)
		}
		return d.node.Name, proof, err
	}
}

// Cutters says what cuts links on this machine.
func Cutters() string {
	if cluster.CannotLosePackets() != nil {
		return "proxies alone"
	}
	return "the kernel, in network namespaces (packets-lost-*), and proxies (the others)"
}

// portsOf returns where links begin.
func portsOf(all []*testcluster.Link) (ports []uint16, err error) {
	for _, l := range all {
		address, err := netip.ParseAddrPort(l.Address)
		if err != nil {
			return nil, err
		}
		ports = append(ports, address.Port())
	}
	return ports, nil
}
