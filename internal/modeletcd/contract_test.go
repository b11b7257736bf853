package modeletcd_test

import (
	"sync"
	"testing"
	"time"

	"taskledger/etcdstore"
	"taskledger/internal/modeletcd"
	"taskledger/internal/testcluster"
	"taskledger/store/storetest"
)

func TestModel_StoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		m := modeletcd.New(time.Now)
		tick(t, m)
		raw := m.Connect(modeletcd.Direct{})
		t.Cleanup(func() { raw.Close() })
		return storetest.Fixture{A: openStore(t, m), B: openStore(t, m), Strays: testcluster.Strays{T: t, Etcd: raw}}
	})
}

// tick lets leases lapse by the wall clock until the test ends.
func tick(t *testing.T, m *modeletcd.Model) {
	t.Helper()
	var ticking sync.WaitGroup
	ticker, end := time.NewTicker(20*time.Millisecond), make(chan struct{})
	ticking.Go(func() {
		for {
			select {
			case <-ticker.C:
				m.Tick()
			case <-end:
				return
			}
		}
	})
	t.Cleanup(func() {
		ticker.Stop()
		close(end)
		ticking.Wait()
	})
}

// openStore opens a store with a client of its own.
func openStore(t *testing.T, m *modeletcd.Model) *etcdstore.Store {
	t.Helper()
	client := m.Connect(modeletcd.Direct{})
	t.Cleanup(func() { client.Close() })
	s, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
