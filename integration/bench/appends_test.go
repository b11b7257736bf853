package bench_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/internal/measure"
	"taskledger/store"
)

const (
	entryBytes   = 256
	entryShards  = 64        // as many as entries may be under way: those of one shard wait for each other
	entrySession = time.Hour // longer than any measurement
)

// BenchmarkAppends compares entries of journals in files, strict and opportunistic, with those in the etcd of this
// process, on one disk: with many entries under way, each of its own shard, and with one at a time.
func BenchmarkAppends(b *testing.B) { run(b, appends) }

func appends(tb testing.TB) figures {
	inEtcd := must(servers(tb, entryShards).Open(tb.Context(), ""))(tb)
	tb.Cleanup(func() { ended(tb, inEtcd.Close()) })
	dir := tb.TempDir()
	inFiles := func(d filejournal.Durability) journal {
		at := filepath.Join(dir, string(d))
		s := must(filestore.Open(at, filestore.Config{Shards: entryShards}, filejournal.Options{Durability: d}))(tb)
		tb.Cleanup(func() { _ = s.Close() }) // its directory is removed
		return s
	}
	var sides []measure.Side
	for _, j := range []journal{inEtcd.Store, inFiles(filejournal.Strict), inFiles(filejournal.Opportunistic)} {
		add := own(tb, j)
		sides = append(sides, measure.Closed(entryShards, 1, add), measure.Closed(1, 1, add))
	}
	total, window := lasts(3*time.Second, 24*time.Second), lasts(500*time.Millisecond, 2*time.Second)
	all := must(measure.ByTurns(tb.Context(), total, min(window, 2*time.Second), sides...))(tb)
	f := newFigures(tb)
	for i, name := range []string{"etcd", "strict", "opportunistic"} {
		f.is(name+"-entry/s", all[2*i].Sum().PerSecond())
		f.is(name+"-alone-p50-ms", measure.Quantile(all[2*i+1].Sum().Times, 0.5))
	}
	// Strict is as fast as the etcd inside on a quiet machine, opportunistic twice so.
	f.atLeast("strict-ratio", measure.Ratio(all[2], all[0]), 1)
	f.atLeast("strict-alone-ratio", latencyRatio(all[1], all[3]), 1)
	f.atLeast("opportunistic-ratio", measure.Ratio(all[4], all[0]), 2)
	f.atLeast("opportunistic-alone-ratio", latencyRatio(all[1], all[5]), 2)
	return f
}

// latencyRatio returns the median, over the rounds, of the p50 of one side by that of the other.
func latencyRatio(of, to measure.Series) float64 {
	var ratios []float64
	for i := range of {
		ratios = append(ratios, measure.Quantile(of[i].Times, 0.5)/measure.Quantile(to[i].Times, 0.5))
	}
	return measure.Median(ratios)
}

// journal holds the part of a store that is measured.
type journal interface {
	Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error)
	Take(ctx context.Context, s store.Session, shard int, seen store.Owner) (store.Ownership, error)
	Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (int64, error)
}

// own takes all shards of a store, and returns the turn of a worker who writes the next entry of the shard of its
// number.
func own(tb testing.TB, j journal) measure.Op {
	session := must(j.Join(tb.Context(), store.NodeInfo{Name: "bench"}, entrySession))(tb)
	var owned []store.Ownership
	for shard := range entryShards {
		owned = append(owned, must(j.Take(tb.Context(), session, shard, store.Owner{}))(tb))
	}
	heads := make([]store.Head, entryShards)
	return func(ctx context.Context, worker int) error {
		after := heads[worker]
		data := bytes.Repeat([]byte{byte(after.Number), 'x'}, entryBytes/2)
		revision, err := j.Append(ctx, owned[worker], after, data)
		heads[worker] = store.Head{Number: after.Number + 1, Revision: revision}
		return err
	}
}
