package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/engine"
	"taskledger/store"
)

// silentStore is a cluster whose shards answer, and whose store does not.
type silentStore struct{ operations.Observer }

func (silentStore) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (silentStore) Shards(ctx context.Context) ([]engine.ShardInfo, error) {
	return []engine.ShardInfo{{Owner: "owner-of-0"}}, ctx.Err()
}

func TestShards_AreShownWithoutTheNamesOfNodes(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, answerWithin} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var out, problems bytes.Buffer
			a := &app{Program: Program{Out: &out, Err: &problems}, output: "table"}
			if err := a.showShards(ctx, silentStore{}); err != nil || !strings.Contains(out.String(), "owner-of-0") ||
				!strings.Contains(problems.String(), "names of nodes") {
				t.Errorf("with %s: %v, printed %q, %q", limit, err, out.String(), problems.String())
			}
		})
	}
}

// silentShard is a cluster with two shards. Nobody answers for the second one; the store works.
type silentShard struct{ operations.Observer }

func (silentShard) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	return []store.NodeInfo{{ID: "session-of-a", Name: "a"}}, context.Cause(ctx)
}

func (silentShard) Shards(ctx context.Context) ([]engine.ShardInfo, error) {
	<-ctx.Done()
	return []engine.ShardInfo{{Owner: "session-of-a"}, {Shard: 1, Problem: "nobody answers"}}, nil
}

func TestShards_ThatAnswerAreShownWithTheirOwnersBesideOneThatDoesNot(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, answerWithin} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var out, problems bytes.Buffer
			a := &app{Program: Program{Out: &out, Err: &problems}, output: "table"}
			if err := a.showShards(ctx, silentShard{}); err != nil || ctx.Err() != nil || problems.Len() > 0 ||
				!strings.Contains(out.String(), "a session-of-a") || !strings.Contains(out.String(), "nobody answers") {
				t.Errorf("with %s: %v, printed %q, %q", limit, err, out.String(), problems.String())
			}
		})
	}
}

// quarantined is a cluster of two shards, of which the second one is quarantined: its owner has numbers of none.
type quarantined struct{ silentShard }

func (quarantined) Shards(context.Context) ([]engine.ShardInfo, error) {
	return []engine.ShardInfo{{Owner: "a", Tasks: 2}, {Shard: 1, Owner: "b", Problem: "quarantined"}}, nil
}

func TestShards_ShowNoNumbersOfOneThatIsNotServed(t *testing.T) {
	var out bytes.Buffer
	a := &app{Program: Program{Out: &out}, output: "table"}
	if err := a.showShards(t.Context(), quarantined{}); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"0 a 0 - - - 2 0 0", "1 b - - - - - - - quarantined"} {
		if got := strings.Join(strings.Fields(rows[i+1]), " "); got != want {
			t.Errorf("row %q, want %q", got, want)
		}
	}
}

// inFiles is a cluster of two shards whose store is in files, of which nobody answers for the second one.
type inFiles struct{ silentShard }

func (inFiles) Shards(context.Context) ([]engine.ShardInfo, error) {
	return []engine.ShardInfo{
		{Owner: "a", Durability: "opportunistic"},
		{Shard: 1, Durability: "opportunistic", Problem: "nobody answers"},
	}, nil
}

func TestShards_ShowTheDurabilityOfAStoreInFilesAlone(t *testing.T) {
	for _, row := range []struct {
		of      operations.Observer
		heading string
		first   string
	}{
		{inFiles{}, "READY DURABILITY PROBLEM", "0 a 0 - - - 0 0 0 opportunistic"},
		{quarantined{}, "READY PROBLEM", "0 a 0 - - - 2 0 0"},
	} {
		var out bytes.Buffer
		a := &app{Program: Program{Out: &out}, output: "table"}
		if err := a.showShards(t.Context(), row.of); err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(out.String()), "\n")
		heading, first := strings.Join(strings.Fields(rows[0]), " "), strings.Join(strings.Fields(rows[1]), " ")
		if !strings.HasSuffix(heading, row.heading) || first != row.first {
			t.Errorf("%s, %s", heading, first)
		}
	}
}

// lossy is a cluster of two shards, the second one of which has lost entries twice.
type lossy struct{ silentShard }

func (lossy) Shards(context.Context) ([]engine.ShardInfo, error) {
	return []engine.ShardInfo{{Owner: "a"}, {Shard: 1, Owner: "a", Losses: 2}}, nil
}

func TestShards_TellHowOftenEntriesWereLost(t *testing.T) {
	var out bytes.Buffer
	a := &app{Program: Program{Out: &out}, output: "table"}
	if err := a.showShards(t.Context(), lossy{}); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"READY LOSSES PROBLEM", "0 0 0 0", "0 0 0 2"} {
		if got := strings.Join(strings.Fields(rows[i]), " "); !strings.HasSuffix(got, want) {
			t.Errorf("row %q, want %q at the end", got, want)
		}
	}
}

// members is a cluster of the given nodes.
type members struct {
	operations.Observer
	nodes []store.NodeInfo
}

func (m members) Nodes(context.Context) ([]store.NodeInfo, error) { return m.nodes, nil }

func TestSessionOf_TakesANameOrASessionAndSaysWhatIsWrong(t *testing.T) {
	node := func(name, drawn string) store.NodeInfo {
		return store.NodeInfo{Name: name, ID: store.SessionID(name, drawn)}
	}
	cluster := members{nodes: []store.NodeInfo{node("a", "aaaaaaaaaa"), node("twin", "aaaaaaaaaa"), node("twin", "bbbbbbbbbb"),
		node("web-1.example.com", "aaaaaaaaaa")}}
	for given, want := range map[string]string{
		"a": "a-aaaaaaaaaa", "a-aaaaaaaaaa": "a-aaaaaaaaaa", "twin-bbbbbbbbbb": "twin-bbbbbbbbbb", "a-bbbbbbbbbb": "a-bbbbbbbbbb",
		"web-1.example.com": "web-1_example_co-aaaaaaaaaa", "web-1_example_co": "web-1_example_co-aaaaaaaaaa",
	} {
		if got, err := sessionOf(t.Context(), cluster, given); got != want || err != nil {
			t.Errorf("--node %s: session %q, %v; want %q", given, got, err, want)
		}
	}
	for given, want := range map[string]string{"twin": "twin-aaaaaaaaaa, twin-bbbbbbbbbb", "b": "there are a, twin, twin, web-1.example.com"} {
		got, err := sessionOf(t.Context(), cluster, given)
		if _, usage := errors.AsType[*exitcode.UsageError](err); !usage || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("--node %s: session %q, %v; want %q", given, got, err, want)
		}
	}
	if _, err := sessionOf(t.Context(), members{}, "a"); err == nil || !strings.Contains(err.Error(), "no node is present") {
		t.Errorf("without nodes: %v", err)
	}
}

func TestShards_SayThatOneHasMostOfTheTasks(t *testing.T) {
	of := func(tasks ...int) (all []engine.ShardInfo) {
		for i, n := range tasks {
			all = append(all, engine.ShardInfo{Shard: i, Tasks: n})
		}
		return all
	}
	for name, c := range map[string]struct {
		shards []engine.ShardInfo
		says   bool
	}{
		"one has most":       {of(100, 1100, 50), true},
		"all have some":      {of(400, 600, 500), false},
		"there are few":      {of(0, 999, 0), false},
		"there is one alone": {of(5000), false},
		"there is no task":   {of(0, 0), false},
	} {
		if got := crowded(c.shards); (got != "") != c.says || c.says && !strings.HasPrefix(got, "shard 1 has 1100 of 1250 tasks: ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
