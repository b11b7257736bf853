package ring_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"taskledger/internal/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("node-", i)
	}
	return all
}

var genNodes = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,12}`), 1, 20, rapid.ID[string])

func TestPlace_EveryNodeRanksEveryShardOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, shards := genNodes.Draw(t, "nodes"), rapid.SampledFrom([]int{1, 2, 16, 64, 256}).Draw(t, "shards")
		want := slices.Sorted(slices.Values(nodes))
		placement := ring.Place(shards, nodes)
		if len(placement) != shards {
			t.Fatalf("%d shards placed, want %d", len(placement), shards)
		}
		for shard, order := range placement {
			if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, want) {
				t.Fatalf("shard %d is ranked by %v, want %v", shard, got, want)
			}
		}
	})
}

func TestPlace_NoNodeGetsMoreThanTheCeilingOfTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, shards := genNodes.Draw(t, "nodes"), rapid.IntRange(1, 256).Draw(t, "shards")
		load := map[string]int{}
		for _, order := range ring.Place(shards, nodes) {
			load[order[0]]++
		}
		most := (shards + len(nodes) - 1) / len(nodes)
		for node, n := range load {
			if n > most {
				t.Fatalf("%s has %d of %d shards on %d nodes, want at most %d", node, n, shards, len(nodes), most)
			}
		}
	})
}

func TestPlace_DependsOnTheSetOfNodesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := genNodes.Draw(t, "nodes")
		shuffled := rapid.Permutation(nodes).Draw(t, "shuffled")
		before := slices.Clone(shuffled)
		if !reflect.DeepEqual(ring.Place(64, nodes), ring.Place(64, shuffled)) {
			t.Fatal("the order of the nodes changed the placement")
		}
		if !slices.Equal(before, shuffled) {
			t.Fatal("the caller's nodes were reordered")
		}
	})
}

// The placement is computed by members of different versions at the same time: it must not change.
func TestPlace_IsPinned(t *testing.T) {
	got := ""
	for _, order := range ring.Place(16, names(3)) {
		got += order[0][len("node-"):]
	}
	if want := "0212110021221100"; got != want {
		t.Errorf("shards fall to %s, want %s", got, want)
	}
}

// moved counts the shards whose first node differs.
func moved(a, b [][]string) (n int) {
	for shard := range a {
		if a[shard][0] != b[shard][0] {
			n++
		}
	}
	return n
}

// Uncapped, a join moves shards/nodes; the cap moves some more.
func TestPlace_JoinAndLeaveMoveFewShards(t *testing.T) {
	const shards = 256
	for n := 2; n <= 16; n++ {
		placement, joined := ring.Place(shards, names(n)), ring.Place(shards, names(n+1))
		if got, most := moved(placement, joined), 3*shards/(n+1)+n; got > most {
			t.Errorf("a join of %d nodes moves %d of %d shards, want at most %d", n, got, shards, most)
		}
	}
}

func TestPlace_WithoutNodesNobodyServes(t *testing.T) {
	for _, order := range ring.Place(16, nil) {
		if len(order) != 0 {
			t.Errorf("shard served by %v", order)
		}
	}
}
