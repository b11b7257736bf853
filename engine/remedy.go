package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/ledger/repair"
	"taskledger/store"
)

// remedyTimeout bounds the reads that choose a remedy before questions to the shard are answered.
const remedyTimeout = 300 * time.Millisecond

// remedy returns the one thing to do about a shard that cannot be served, of which an entry is damaged or missing;
// 0 = none is known. If known is false it may help or not: the reads that choose it have failed.
func (m *member) remedy(ctx context.Context, shard int, entry uint64, why error) (text string, known bool) {
	text, err := m.findRemedy(ctx, shard, entry, why)
	if err != nil {
		text = fmt.Sprintf("taskledger repair shows whether entry %d can be removed; "+
			"else restore it from a backup of etcd", entry)
	}
	text += "; the shard is then served by itself"
	if shard == m.settingsShard() {
		text += ". It holds what is paused: nodes that begin a session meanwhile start nothing"
	}
	return text, err == nil
}

func (m *member) findRemedy(ctx context.Context, of int, entry uint64, why error) (string, error) {
	switch {
	case errors.Is(why, events.ErrVersion):
		return "let nodes of the version of taskledger that wrote it serve the shard", nil
	case errors.Is(why, shard.ErrOnlyArchive):
		return "wait until all entries are read, from the archive on", nil
	case store.InFiles(m.cfg.Store):
		return shard.CopyRemedy, nil
	case errors.Is(why, shard.ErrArchiveAway):
		return "bring the archive, NATS with JetStream, back", nil
	case errors.Is(why, shard.ErrContradicts):
		return "restore etcd from a backup, in which journal and snapshots are of one time", nil
	case errors.Is(why, shard.ErrCutOff):
		return "restore the missing entries from a backup of etcd, or, where etcd was restored to an earlier time " +
			"on purpose, give up what came after it: taskledger repair --restored", nil
	case entry == 0:
		return "taskledger verify names what is damaged: restore that from a backup of etcd", nil
	}
	if _, err := m.loader.Snapshots.Pointer(ctx, of); errors.Is(err, events.ErrDamaged) {
		return "restore the snapshot pointer of the shard from a backup of etcd", nil
	}
	switch first, err := m.loader.Reader.First(ctx, of); {
	case err != nil:
		return "", err
	case entry < first && m.cfg.reader() != nil:
		return "restore the archive from a backup of NATS, with all nodes stopped", nil
	case entry < first:
		return "restore the snapshots of the shard, which alone stand for the entries before, " +
			"from a backup of etcd", nil
	}
	strays, err := m.node.journals().Strays(ctx, of)
	for _, s := range strays {
		switch {
		case s.Entry != entry:
		case s.Keep == "":
			return "taskledger repair --yes removes it, since it is no entry", nil
		case s.Keep == repair.KeepReplaced:
			return fmt.Sprintf("restore entry %d from a backup of etcd, "+
				"or remove its key if the backup has none", entry), nil
		}
	}
	kept := func(s repair.Stray) bool { return s.Keep != "" }
	if err == nil && len(strays) > 0 && !slices.ContainsFunc(strays, kept) { // without the strays nothing is missing
		return fmt.Sprintf("taskledger repair --yes removes %s, since it is no entry", strays[0].Key), nil
	}
	return fmt.Sprintf("restore entry %d from a backup of etcd", entry), err
}
