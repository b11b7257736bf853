package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/engine/local"
	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/journal"
	"taskledger/filestore/memjournal"
	"taskledger/task"
)

// crammed is a journal that has no room for snapshots of shards, though for entries.
type crammed struct {
	memjournal.Journal
	full atomic.Bool
}

// WriteSnapshot implements journal.Journaler.
func (c *crammed) WriteSnapshot(k journal.Key, s journal.Snapshot) error {
	if c.full.Load() && k.Shard != journal.Notes && len(s.Parts) > 0 {
		return journal.ErrFull
	}
	return c.Journal.WriteSnapshot(k, s)
}

// The pauses between tries of a snapshot grow to five minutes, and nothing else is written meanwhile.
func TestNode_GoesOnByItselfOnceThereIsRoomWhateverItHasGivenUpBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(crammed)
		j.full.Store(true)
		cfg := local.Config{Journal: j, Node: quiet(), Store: filestore.Config{Shards: 1}}
		cfg.Node.TTL = 10 * time.Second
		later := behaviors.Define[string, string]("later", nil)
		cfg.Node.Behaviors = []task.Behavior{later.Bind(func(context.Context, string) (string, error) { return "", nil })}
		n, err := local.StartWith(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		submitted, text := 0, strings.Repeat("text", 50<<10)
		submit := func() error {
			id := events.TaskID(fmt.Sprint("task-", submitted))
			f, err := later.SubmitWith(t.Context(), n.Client, text, task.SubmitOptions{ID: id, Delay: 1000 * time.Hour})
			if err == nil {
				submitted++
				f.Close()
			}
			return err
		}
		for err = submit(); err == nil && submitted < 100; err = submit() {
			time.Sleep(2 * time.Second)
		}
		if _, full := errors.AsType[*task.OverloadError](err); !full {
			t.Fatalf("without room for a snapshot %d tasks are submitted, and then %v", submitted, err)
		}
		for range 60 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		j.full.Store(false)
		time.Sleep(3 * time.Second) // the node looks how full the store is every second
		if err := submit(); err != nil {
			t.Errorf("with room again: %v", err)
		}
		closed(t, n)
	})
}
