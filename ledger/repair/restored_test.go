package repair_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/etcdstore"
	"taskledger/internal/modeletcd"
	"taskledger/ledger/repair"
	"taskledger/store"
	"taskledger/store/archivetest"
	"taskledger/store/memarchive"
)

// served are members of which one owns shard 0, or owned it.
type served struct {
	repair.Members
	lives bool
}

func (s served) ReadMembers(context.Context) (store.Membership, error) {
	m := store.Membership{Owners: map[int]store.Owner{0: {Node: "n"}}}
	if s.lives {
		m.Nodes = map[string]store.NodeInfo{"n": {}}
	}
	return m, nil
}

// What is given up of a shard is left to the next owner where none lives. An owner that lives has to record it soon:
// one that goes on without it would let the next one give up what it has acknowledged since.
func TestRestored_TakesBackWhatAnOwnerThatServesDoesNotRecord(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		lives   bool
		records time.Duration // after which the owner has recorded it; 0 = never
		kept    bool          // it is left to the next owner
		givenUp bool
	}{
		{name: "no owner lives", kept: true, givenUp: true},
		{name: "the owner records it", lives: true, records: 15 * time.Second, givenUp: true},
		{name: "the owner goes on without it", lives: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := modeletcd.New(time.Now).ConnectInBubble(modeletcd.Direct{})
				defer client.Close() // tells that its context has ended
				s, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: client, Shards: 1})
				if err != nil {
					t.Fatal(err)
				}
				archive, forgotten := memarchive.New(), 0
				if _, err := archive.Archive(t.Context(), 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 5)); err != nil {
					t.Fatal(err)
				}
				journals := repair.Journals{
					Shards:    1,
					Journal:   s,
					Snapshots: s,
					Repairer:  s,
					Losses:    s,
					Members:   served{lives: row.lives},
					Archive:   archive,
					ForgetLogs: func(context.Context, int) error {
						forgotten++
						return errors.New("the logs are away")
					},
				}
				if row.records > 0 {
					time.AfterFunc(row.records, func() {
						l, err := s.Loss(t.Context(), 0)
						if err == nil {
							err = s.Forget(t.Context(), l)
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				began := time.Now()
				found, err := journals.Repair(t.Context(), repair.Options{Restored: true})
				if err != nil || len(found) != 1 {
					t.Fatalf("found %+v, %v", found, err)
				}
				if f := found[0]; f.GivenUp != row.givenUp || strings.Contains(f.Keep, "stop the nodes") == row.givenUp {
					t.Errorf("found %+v", f)
				}
				if f := found[0]; forgotten != 1 || !strings.HasSuffix(f.Problem, "the logs are away") {
					t.Errorf("logs were to be removed %d times: %s", forgotten, f.Problem)
				}
				if took := time.Since(began); took > 25*time.Second || row.kept && took > 0 {
					t.Errorf("it took %s", took)
				}
				if l, err := s.Loss(t.Context(), 0); err != nil || (l.Revision != 0) != row.kept {
					t.Errorf("left to the next owner is %+v, %v", l, err)
				}
			})
		})
	}
}
