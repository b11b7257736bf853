package cluster

import (
	"errors"
	"sync"
)

// LostPackets counts the packets that were lost.
type LostPackets struct{ To, From uint64 }

// CannotLosePackets says why this process can make no namespaces, or lose no packets in them; nil when it can. It tries
// once.
func CannotLosePackets() error { return cannotLosePackets() }

var cannotLosePackets = sync.OnceValue(func() error {
	n, err := NewNamespace()
	if err != nil {
		return err
	}
	_, err = n.Lose([]uint16{1}, []uint16{1}, func() {})
	return errors.Join(err, n.Close())
})
