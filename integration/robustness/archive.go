package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/store"
)

// readAgain is the pause after an archive could not be read.
const readAgain = 200 * time.Millisecond

// archived reads the archive of every shard, again and again while it is away. One that cannot be read is damage; there must
// be one once entries were trimmed.
func archived(ctx context.Context, r *cluster.Cluster, archive store.ArchiveReader, trimmed bool) [][]history.Record {
	all := make([][]history.Record, cluster.Shards)
	for shard := range all {
		for {
			var err error
			all[shard], err = readArchive(ctx, archive, shard)
			if err == nil || errors.Is(err, store.ErrNoArchive) && !trimmed {
				break
			}
			lasting := errors.Is(err, events.ErrDamaged) || errors.Is(err, store.ErrTrimmed)
			if !lasting {
				cluster.Sleep(ctx, readAgain)
			}
			if lasting || ctx.Err() != nil {
				r.Broken(check.Archived, "shard %d cannot be read after the faults: %v", shard, err)
				break
			}
		}
	}
	return all
}

func readArchive(ctx context.Context, archive store.ArchiveReader, shard int) (all []history.Record, _ error) {
	for rec, err := range archive.ReadArchive(ctx, shard, 1) {
		if err != nil {
			return all, err
		}
		all = append(all, history.Record{Number: rec.Number, Revision: rec.Revision, Data: rec.Data})
	}
	return all, nil
}

// union returns what archive and journal hold of a shard, both in order. An entry that is alike in both, since it was archived
// and not trimmed yet, is there once; one that differs is there twice, which no journal may be.
func union(archived, journal []history.Record) (all []history.Record) {
	for len(archived) > 0 && len(journal) > 0 {
		a, j := archived[0], journal[0]
		if a.Number <= j.Number {
			archived = archived[1:]
		}
		if a.Number < j.Number || a.Number == j.Number && !alike(a, j) {
			all = append(all, a)
		}
		if j.Number <= a.Number {
			all, journal = append(all, j), journal[1:]
		}
	}
	return slices.Concat(all, archived, journal)
}

// alike compares two forms of the entry of one number.
func alike(a, b history.Record) bool {
	return a.Revision == b.Revision && bytes.Equal(a.Data, b.Data)
}
