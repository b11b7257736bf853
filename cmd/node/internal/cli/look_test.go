package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/cmd/node/internal/operations"
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
