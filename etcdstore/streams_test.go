package etcdstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
)

// A client and a server in one process talk over channels without room: many watches of one stream that end at once would make
// each wait for the other.
func TestWatch_ManyOfAClientInTheProcessEndAtOnce(t *testing.T) {
	f := newFixture(t)
	_, raw := testcluster.StartEtcd(t)
	s := openStore(t, etcdstore.Config{Cluster: cluster, Client: raw, Shards: 256})
	for round := range 3 {
		ctx, stop := context.WithCancel(f.ctx)
		var watching, posting, ready sync.WaitGroup
		ready.Add(256)
		for shard := range 256 {
			watching.Go(func() {
				seen := sync.OnceFunc(ready.Done)
				defer seen()
				for _, err := range s.Batches(ctx, shard) {
					if err != nil {
						t.Error(err)
					}
					seen()
				}
			})
		}
		posting.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				f.must(s.Post(f.ctx, n%256, fmt.Sprint("sender-", round), 1, []byte{byte(n), 1}))
			}
		})
		ready.Wait()
		stop()
		watching.Wait()
		posting.Wait()
	}
}
