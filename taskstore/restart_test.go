package taskstore_test

import (
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/taskstore"
)

// The original began to count anew after a restart, and overwrote what it had: here nothing is lost, and no id comes twice.
func TestStore_RestartsLoseNothingAndReuseNoID(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{Shards: 4, NoNATS: true})
	const per = 50
	seen := map[int64]bool{}
	for round := range 4 {
		node := c.StartNode("a", nil)
		s, err := taskstore.Open(node, "s", taskstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range per {
			made, err := s.Update(t.Context(), &taskstore.Update{Adds: []taskstore.Add{{Group: "g"}}})
			if err != nil {
				t.Fatal(err)
			}
			if id := made[0].ID; seen[id] || id != int64(len(seen)+1) {
				t.Fatalf("round %d: id %d after %d", round, id, len(seen))
			}
			seen[made[0].ID] = true
		}
		n := 0
		for _, err := range s.Linear().Group(t.Context(), taskstore.Page{Group: "g", Owned: true}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != len(seen) {
			t.Errorf("round %d: %d items of %d", round, n, len(seen))
		}
		node.Stop()
	}
}
