package testcluster

import (
	"context"
	"slices"
	"testing"

	"taskledger/engine"
)

// AwaitShards polls until every shard is as wanted, and returns what was told of the shards then.
func AwaitShards(
	t testing.TB, at *engine.Client, what string, holds func(engine.ShardInfo) bool,
) (last []engine.ShardInfo) {
	t.Helper()
	var err error
	defer func() {
		if t.Failed() {
			t.Logf("%s: %+v, %v", what, last, err)
		}
	}()
	Await(t, what, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		last, err = at.Operations().Shards(ctx)
		return err == nil && !slices.ContainsFunc(last, func(s engine.ShardInfo) bool { return !holds(s) }) || t.Failed()
	})
	return last
}
