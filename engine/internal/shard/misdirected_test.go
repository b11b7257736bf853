package shard_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/schedules"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// A sender that counts other shards than the cluster has would run a task twice, in two shards.
func TestOwner_RefusesWhatBelongsToAnotherShard(t *testing.T) {
	t.Parallel()
	const shards = 16
	b := newFixture(t)
	b.cfg.Shards = shards
	named := func(format string, here bool) string {
		for i := 0; ; i++ {
			if id := fmt.Sprintf(format, i); (events.TaskID(id).Shard(shards) == 0) == here {
				return strings.TrimSuffix(strings.TrimPrefix(id, events.StorePrefix), "/0")
			}
		}
	}
	submit := func(id events.TaskID) *command.Submit {
		s := submitOf(events.Policy{})
		s.Task = id
		return s
	}
	asks := func(here bool) []command.Command {
		id := events.TaskID(named("t%d", here))
		of := named(events.StorePrefix+"s%d/0", here)
		return []command.Command{
			submit(id),
			&command.Merge{Submit: *submit(id), Life: events.RefOf(1, 0), Seq: 1},
			&command.Operate{Task: id, Do: task.Cancel},
			&command.Get{Task: id},
			&command.Await{Task: id},
			&command.Explain{Task: id},
			stores.UpdateOf(of, &item.Update{Client: 1, Adds: []item.Add{{Group: "g"}}}),
			stores.ClaimOf(of, &item.Claim{Client: 1, Group: "g", Duration: 1e9}, 7),
			&stores.Read{Store: of, IDs: []int64{1}},
			&stores.Page{Store: of, Group: "g"},
			&stores.Groups{Store: of},
			&stores.Await{Store: of, Group: "g", Sender: "s"},
		}
	}
	lane := func(c command.Command) uint8 {
		if _, decided := c.(interface {
			Decide(*command.Decider) command.Answer
		}); decided {
			return command.LaneSubmit
		}
		return command.LaneQuery
	}
	ask := func(c command.Command) command.Answer {
		l := b.next("somebody", lane(c), c)
		b.deliver(l)
		b.turn()
		if last := len(l.got) - 1; last >= 0 && len(l.got[last]) == 1 { // the first may acknowledge the question
			return l.got[last][0]
		}
		t.Fatalf("%T: answers are %+v, want one", c, l.got)
		return command.Answer{}
	}
	for _, c := range asks(false) {
		a := ask(c)
		wrong, is := errors.AsType[*store.InvalidError](a.Err("x"))
		if !is || wrong.Field != "shards" || !strings.HasSuffix(wrong.Problem, "must be 16") {
			t.Errorf("%T of another shard: %+v", c, a)
		}
	}
	if b.sealed() != 0 {
		t.Errorf("%v were recorded", b.kinds())
	}
	for _, c := range asks(true) {
		if a := ask(c); a.Code == command.AnswerInvalid {
			t.Errorf("%T of the owner's shard: %+v", c, a)
		}
	}
}

// A command that is new says to which shard it belongs, or is one of those that any owner answers.
func TestOwner_KnowsWhereEveryCommandBelongs(t *testing.T) {
	t.Parallel()
	anywhere := []command.Command{
		&command.Complete{},
		&command.Progress{},
		&command.Offer{},
		&command.Reconcile{},
		&command.HandOver{},
		&command.List{},
		&command.Info{},
		&command.Plan{},
		&command.Barrier{},
		&command.Tally{},
		&schedules.List{},
	}
	for op := range commands.Table {
		c := commands.Table.New(uint64(op))
		if c == nil {
			continue
		}
		_, addressed := c.(interface{ Shard(count int) int })
		free := slices.ContainsFunc(anywhere, func(f command.Command) bool { return f.Op() == c.Op() })
		if addressed == free {
			t.Errorf("%T: addressed %t, and answered by any owner %t", c, addressed, free)
		}
	}
}

func BenchmarkShard_Misdirected(b *testing.B) {
	here, c := command.Shard{Count: 1}, &command.Get{Task: "orders/0001"}
	b.ReportAllocs()
	for b.Loop() {
		if _, refused := here.Misdirected(c); refused {
			b.Fatal("refused")
		}
	}
}
