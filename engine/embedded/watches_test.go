package embedded_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine/embedded"
)

// As many watches as a node of 256 shards has begin and end at once while keys change, and nobody waits for ever.
func TestEtcdClient_HundredsOfWatchesBeginAndEndAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := embedded.StartServers(ctx, embedded.ServersConfig{Dir: t.TempDir(), NoNATS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for round := range 3 {
		watching, end := context.WithCancel(ctx)
		var all sync.WaitGroup
		var begun sync.WaitGroup
		for i := range 512 {
			begun.Add(1)
			all.Go(func() {
				once := sync.OnceFunc(begun.Done)
				defer once()
				for range s.EtcdClient().Watch(watching, fmt.Sprint("key/", i), clientv3.WithCreatedNotify()) {
					once()
				}
			})
		}
		begun.Wait()
		for i := range 512 {
			if _, err := s.EtcdClient().Put(ctx, fmt.Sprint("key/", i), "x"); err != nil {
				t.Fatal(err)
			}
		}
		end()
		all.Wait()
		if ctx.Err() != nil {
			t.Fatalf("round %d: watches did not begin and end", round)
		}
	}
}
