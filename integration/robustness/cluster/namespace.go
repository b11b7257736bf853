// Package namespace makes network namespaces of Linux in which the kernel loses packets. Unlike a proxy it tells nobody: no
// end of a connection sees it closed, TCP sends again, and new connections are not answered.
//
// A nil *Namespace is the one that this process is in.
package cluster

import (
	"errors"
	"sync"
)

// Lost counts the packets that were lost.
type LostPackets struct{ To, From uint64 }

// Cannot says why this process can make no namespaces, or lose no packets in them; nil when it can. It tries once.
func CannotLosePackets() error { return cannotLosePackets() }

var cannotLosePackets = sync.OnceValue(func() error {
	n, err := NewNamespace()
	if err != nil {
		return err
	}
	_, err = n.Lose([]uint16{1}, []uint16{1}, func() {})
	return errors.Join(err, n.Close())
})
