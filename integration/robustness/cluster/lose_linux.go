package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Offsets of the ports in the header of TCP, in bytes.
const (
	sourcePort      = 0
	destinationPort = 2
)

// Lose drops the TCP packets of IPv4 to some ports and from some ports, on their arrival, while f runs, and returns how many
// it dropped. One call at a time.
func (n *Namespace) Lose(to, from []uint16, f func()) (lost LostPackets, err error) {
	c, err := nftables.New(nftables.WithNetNSFd(n.fd))
	if err != nil {
		return lost, fmt.Errorf("lose packets: %w", err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "lost"})
	toPorts, fromPorts := drop(c, table, destinationPort, to), drop(c, table, sourcePort, from)
	if err := c.Flush(); err != nil {
		return lost, fmt.Errorf("lose packets: %w", err)
	}
	f()
	var uncounted error
	lost.To, err = dropped(c, toPorts)
	lost.From, uncounted = dropped(c, fromPorts)
	c.DelTable(table)
	return lost, errors.Join(err, uncounted, c.Flush())
}

// drop adds a chain that drops and counts what has one of the ports at an offset of its header.
func drop(c *nftables.Conn, table *nftables.Table, offset uint32, ports []uint16) *nftables.Chain {
	chain := c.AddChain(&nftables.Chain{Name: fmt.Sprint("ports-at-", offset), Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter})
	for _, port := range ports {
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
			&expr.Counter{},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	return chain
}

// dropped returns how many packets a chain has dropped.
func dropped(c *nftables.Conn, chain *nftables.Chain) (n uint64, err error) {
	rules, err := c.GetRules(chain.Table, chain)
	if err != nil {
		return 0, fmt.Errorf("count lost packets: %w", err)
	}
	for _, r := range rules {
		for _, e := range r.Exprs {
			if counter, is := e.(*expr.Counter); is {
				n += counter.Packets
			}
		}
	}
	return n, nil
}
