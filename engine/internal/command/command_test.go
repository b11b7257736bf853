package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/requests"
	"taskledger/task"
)

// Generators of what travels. Empty binary strings and empty maps travel as none, so none are made.
var (
	genText    = rapid.StringN(0, 20, 40)
	genRequest = rapid.Custom(func(t *rapid.T) requests.Request {
		return requests.Request{ID: genText.Draw(t, "id"), Run: rapid.Uint32().Draw(t, "run"), At: events.Millis(rapid.Int64().Draw(t, "at"))}
	})
	genRef     = rapid.Custom(func(t *rapid.T) events.Ref { return events.Ref(rapid.Uint64().Draw(t, "ref")) })
	genTime    = rapid.Custom(func(t *rapid.T) events.Millis { return events.Millis(rapid.Int64().Draw(t, "time")) })
	genID      = rapid.Custom(func(t *rapid.T) events.TaskID { return events.TaskID(genText.Draw(t, "id")) })
	genPayload = rapid.Custom(func(t *rapid.T) events.Payload {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "payload")
	})
	genMillis = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "ms")) * time.Millisecond
	})
	genPolicy = rapid.Custom(func(t *rapid.T) events.Policy {
		return events.Policy{Timeout: genMillis.Draw(t, "timeout"), MaxAttempts: rapid.IntRange(0, 100).Draw(t, "attempts"),
			MaxLost: rapid.IntRange(0, 100).Draw(t, "losses"), LostDelay: genMillis.Draw(t, "delay"),
			Backoff:  events.Backoff{Base: genMillis.Draw(t, "base"), Max: genMillis.Draw(t, "max")},
			Existing: events.Existing(rapid.IntRange(0, 1).Draw(t, "existing")), Priority: rapid.Int64().Draw(t, "priority"),
			Retain: genMillis.Draw(t, "retain"), RetainCount: rapid.IntRange(1, 1_000_000).Draw(t, "retain count"), Every: genMillis.Draw(t, "every")}
	})
	genError = rapid.Custom(func(t *rapid.T) *events.Error {
		e := &events.Error{Code: genText.Draw(t, "code"), Message: genText.Draw(t, "message"), Retryable: rapid.Bool().Draw(t, "retryable"),
			Properties: rapid.MapOfN(genText, genText, 0, 3).Draw(t, "properties")}
		if len(e.Properties) == 0 {
			e.Properties = nil
		}
		return e
	})
	genSubmit = rapid.Custom(func(t *rapid.T) command.Submit {
		c := command.Submit{genID.Draw(t, "task"), genText.Draw(t, "behavior"), genPolicy.Draw(t, "policy"), rapid.Int64().Draw(t, "priority"),
			genTime.Draw(t, "not before"), genMillis.Draw(t, "delay"), genPayload.Draw(t, "params"), genText.Draw(t, "request"), rapid.Bool().Draw(t, "merges"), rapid.Bool().Draw(t, "run now"), nil, 0, false}
		if rapid.Bool().Draw(t, "described") {
			c.Tags, c.Deadline = rapid.SliceOfN(genText, 1, events.MaxTags).Draw(t, "tags"), genTime.Draw(t, "deadline")
		}
		return c
	})
	genAttempts = rapid.Custom(func(t *rapid.T) (all []command.AttemptName) {
		for range rapid.IntRange(0, 3).Draw(t, "attempts") {
			all = append(all, command.AttemptName{genID.Draw(t, "task"), genRef.Draw(t, "started")})
		}
		return all
	})
	genIDs = rapid.Custom(func(t *rapid.T) []int64 {
		if rapid.Bool().Draw(t, "no ids") {
			return nil
		}
		return rapid.SliceOfN(rapid.Int64(), 1, 3).Draw(t, "ids")
	})
	genProgress = rapid.Custom(func(t *rapid.T) events.Progressed {
		return events.Progressed{Done: rapid.Int64().Draw(t, "done"), Total: rapid.Int64().Draw(t, "total"), Note: genText.Draw(t, "note")}
	})
)

// genCommand makes a command of a number that New knows.
func genCommand(t *rapid.T, op uint64) command.Command {
	switch c := commands.Table.New(op).(type) {
	case *command.Submit:
		*c = genSubmit.Draw(t, "submit")
		return c
	case *command.Merge:
		return &command.Merge{genSubmit.Draw(t, "submit"), genRef.Draw(t, "life"), rapid.Uint64().Draw(t, "seq"), rapid.Bool().Draw(t, "operator")}
	case *command.Complete:
		*c = command.Complete{Task: genID.Draw(t, "task"), Started: genRef.Draw(t, "started"), Node: genText.Draw(t, "node"),
			How: command.Completion(rapid.IntRange(0, 3).Draw(t, "how")), Result: genPayload.Draw(t, "result"), Next: genTime.Draw(t, "next"),
			ByPolicy: rapid.Bool().Draw(t, "policy"), Random: rapid.Uint32().Draw(t, "random"), Wait: genMillis.Draw(t, "wait")}
		if c.How == command.Failed || rapid.Bool().Draw(t, "error") {
			c.Error = genError.Draw(t, "error")
		}
		return c
	case *command.Progress:
		return &command.Progress{genID.Draw(t, "task"), genRef.Draw(t, "started"), genText.Draw(t, "node"), genProgress.Draw(t, "progress")}
	case *command.Operate:
		return &command.Operate{genID.Draw(t, "task"), task.Operation(rapid.IntRange(0, int(task.OperationCount)-1).Draw(t, "do")), genText.Draw(t, "reason"), genRef.Draw(t, "seen")}
	case *command.Pause:
		return &command.Pause{genText.Draw(t, "behavior"), rapid.Bool().Draw(t, "paused"), genText.Draw(t, "reason")}
	case *command.Offer:
		*c = command.Offer{Node: genText.Draw(t, "node"), Lease: genTime.Draw(t, "lease"), Slots: rapid.Int().Draw(t, "slots")}
		for range rapid.IntRange(0, 3).Draw(t, "behaviors") {
			c.Behaviors = append(c.Behaviors, command.OfferedBehavior{genText.Draw(t, "behavior"), rapid.Int().Draw(t, "slots")})
		}
		return c
	case *command.Reconcile:
		return &command.Reconcile{genText.Draw(t, "node"), rapid.Int64().Draw(t, "epoch"), genAttempts.Draw(t, "attempts"), rapid.Uint64().Draw(t, "answered"),
			genRef.Draw(t, "from"), genRef.Draw(t, "to")}
	case *command.HandOver:
		return &command.HandOver{genText.Draw(t, "node")}
	case *command.Get:
		return &command.Get{genID.Draw(t, "task"), rapid.Bool().Draw(t, "linear")}
	case *command.Await:
		return &command.Await{genID.Draw(t, "task"), genRef.Draw(t, "life"), uint64(rapid.Uint32().Draw(t, "run"))}
	case *command.List:
		return &command.List{rapid.Uint64Range(0, 4).Draw(t, "status"), rapid.Uint64Range(0, 10).Draw(t, "substatus"), genText.Draw(t, "behavior"), genText.Draw(t, "affinity"),
			genText.Draw(t, "prefix"), genText.Draw(t, "node"), genText.Draw(t, "creator"), rapid.Int64().Draw(t, "created from"), rapid.Int64().Draw(t, "created to"),
			rapid.Int64().Draw(t, "ended from"), rapid.Int64().Draw(t, "ended to"), rapid.Uint64().Draw(t, "before"), rapid.Int64().Draw(t, "until"),
			rapid.Int64Range(0, 1000).Draw(t, "limit"), rapid.Int64().Draw(t, "look"), genText.Draw(t, "cluster"), rapid.Bool().Draw(t, "work"), genText.Draw(t, "tag")}
	case *command.Info:
		return c
	case *command.Tally:
		return &command.Tally{genText.Draw(t, "behavior")}
	case *command.Explain:
		return &command.Explain{genID.Draw(t, "task")}
	case *command.Plan:
		return &command.Plan{genText.Draw(t, "behavior"), genPayload.Draw(t, "params"), rapid.Bool().Draw(t, "merge"), genPayload.Draw(t, "stored")}
	case *command.Settings:
		return &command.Settings{rapid.Bool().Draw(t, "linear")}
	case *command.Barrier:
		return &command.Barrier{rapid.Uint64().Draw(t, "number")}
	case *stores.Update:
		*c = stores.Update{Store: genText.Draw(t, "store"), Client: rapid.Int64().Draw(t, "client"), Key: genText.Draw(t, "key"), Depends: genIDs.Draw(t, "depends"), Deletes: genIDs.Draw(t, "deletes")}
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			c.Changes = append(c.Changes, stores.Change{ID: rapid.Int64().Draw(t, "id"), Group: genText.Draw(t, "group"), At: rapid.Int64().Draw(t, "at"), Keep: rapid.Bool().Draw(t, "keep"), Data: genPayload.Draw(t, "data")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "adds") {
			c.Adds = append(c.Adds, stores.Add{Group: genText.Draw(t, "group"), At: rapid.Int64().Draw(t, "at"), Data: genPayload.Draw(t, "data")})
		}
		return c
	case *stores.Claim:
		return &stores.Claim{Store: genText.Draw(t, "store"), Client: rapid.Int64().Draw(t, "client"), Key: genText.Draw(t, "key"), Group: genText.Draw(t, "group"), Duration: rapid.Int64().Draw(t, "duration"), Random: rapid.Uint64().Draw(t, "random"), Depends: genIDs.Draw(t, "depends")}
	case *stores.Read:
		return &stores.Read{Store: genText.Draw(t, "store"), IDs: genIDs.Draw(t, "ids"), Linear: rapid.Bool().Draw(t, "linear")}
	case *stores.Page:
		return &stores.Page{Store: genText.Draw(t, "store"), Group: genText.Draw(t, "group"), After: rapid.Int64().Draw(t, "after"), Limit: rapid.Int64().Draw(t, "limit"), Owned: rapid.Bool().Draw(t, "owned"), Linear: rapid.Bool().Draw(t, "linear")}
	case *stores.Groups:
		return &stores.Groups{Store: genText.Draw(t, "store"), After: genText.Draw(t, "after"), Linear: rapid.Bool().Draw(t, "linear")}
	case *stores.Await:
		return &stores.Await{Store: genText.Draw(t, "store"), Group: genText.Draw(t, "group"), Sender: genText.Draw(t, "sender"), Count: rapid.Int64().Draw(t, "count")}
	}
	if c := drawSchedules(t, commands.Table.New(op)); c != nil {
		return c
	}
	if c := drawWorks(t, commands.Table.New(op)); c != nil {
		return c
	}
	t.Fatalf("command %d has no generator", op)
	return nil
}

// commandCount is one more than the highest number of a command.
func commandCount() (n uint64) {
	for n = 1; commands.Table.New(n) != nil; n++ {
	}
	return n
}

// Batches are cut by size: an entry must hold what they say.
func TestCommand_SizeCoversItsBytes(t *testing.T) {
	count := commandCount()
	rapid.Check(t, func(t *rapid.T) {
		for op := uint64(1); op < count; op++ {
			c := genCommand(t, op)
			var w wire.Writer
			if command.Encode(&w, c); len(w.B) > c.Size() {
				t.Fatalf("%T takes %d bytes, its size is %d", c, len(w.B), c.Size())
			}
		}
	})
}

// The numbers are on the wire: none changes, and each has its command.
func TestNew_EveryNumberHasItsCommand(t *testing.T) {
	want := []string{1: "Submit", "Merge", "Complete", "Progress", "Operate", "Pause", "Offer", "Reconcile", "HandOver", "Get", "Await", "List",
		"Info", "Explain", "Plan", "Barrier", "Settings", "Tally",
		"stores.Update", "stores.Claim", "stores.Read", "stores.Page", "stores.Groups", "stores.Await",
		"schedules.Set", "schedules.Steer", "schedules.Run", "schedules.Backfill", "schedules.Get", "schedules.List",
		"works.Plan", "works.Begin", "works.Bucket", "works.Permits", "works.Reset", "works.Rerun", "works.Show",
		"works.Move", "works.Held", "works.Position", "works.Left"}
	for op := range uint64(len(want)) {
		c := commands.Table.New(op)
		if op == 0 {
			if c != nil {
				t.Errorf("number 0 is %T", c)
			}
			continue
		}
		name := want[op]
		if !strings.Contains(name, ".") {
			name = "command." + name
		}
		if got := fmt.Sprintf("%T", c); got != "*"+name || c.Op() != op {
			t.Errorf("number %d is %s, want %s", op, got, name)
		}
	}
	if c := commands.Table.New(uint64(len(want))); c != nil {
		t.Errorf("number %d is %T, want none", len(want), c)
	}
}
