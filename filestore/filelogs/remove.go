package filelogs

import (
	"context"
	"fmt"

	"taskledger/events"
	"taskledger/tasklog"
)

// Trim implements tasklog.Store.
func (l *Logs) Trim(ctx context.Context, of tasklog.Attempt, upTo tasklog.End) error {
	err := ctx.Err()
	if err == nil {
		err = of.Check()
	}
	if err == nil {
		err = l.remove(of.Shard, removal{
			life:    of.Life,
			attempt: of.Number,
			upTo:    upTo.Place,
		})
	}
	if err != nil {
		return fmt.Errorf("trim the log of attempt %d up to line %d: %w", of.Number, upTo.Line, err)
	}
	return nil
}

// Forget implements tasklog.Store.
func (l *Logs) Forget(ctx context.Context, shard uint16, life events.Ref, before uint32) error {
	if life == tasklog.EveryLife {
		before = 0
	}
	err := ctx.Err()
	if err == nil {
		err = l.remove(shard, removal{life: life, before: before})
	}
	if err != nil {
		return fmt.Errorf("forget logs of shard %d: %w", shard, err)
	}
	return nil
}

// remove writes a removal where there is something to remove, and then removes it.
func (l *Logs) remove(shard uint16, r removal) error {
	l.mu.Lock()
	at, err := l.removeNow(shard, r)
	l.mu.Unlock()
	if err == nil && at.in != nil {
		err = l.syncTo(at)
	}
	return err
}

func (l *Logs) removeNow(shard uint16, r removal) (at stored, err error) {
	if err := l.ready(); err != nil {
		return at, err
	}
	some := false
	for _, a := range l.index.removes(shard, r) {
		some = some || r.attempt == 0 || l.index.of(a)[0].place <= r.upTo
	}
	if !some {
		return at, nil
	}
	if at, err = l.put(shard, encodeRemoval(r)); err != nil {
		return at, err
	}
	at.in.removals += at.next - at.at
	gone := l.index.remove(shard, r)
	l.forgetAll(gone)
	l.expire()
	return at, l.makeRoom()
}
