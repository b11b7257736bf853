package engine

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/testkit"
	"taskledger/internal/wire"
	"taskledger/item"
	"taskledger/meter"
	"taskledger/projection"
	"taskledger/projection/items"
	"taskledger/projection/listing"
	"taskledger/projection/requests"
	"taskledger/projection/settings"
	"taskledger/store"
	"taskledger/task"
)

// entryPoint is a function that decodes bytes of another process.
type entryPoint struct {
	name   string
	sample []byte
	decode func([]byte) error
}

// pointAt makes an entry point of a decoder.
func pointAt[T any](name string, sample []byte, decode func([]byte) (T, error)) entryPoint {
	return entryPoint{name, sample, func(b []byte) error { _, err := decode(b); return err }}
}

// encoded is message.Encode of messages of one type.
func encoded[T any](m T) []byte { return message.Encode(m) }

func decodePlanned(b []byte) (planned, error) {
	p, err := command.ReadLenient[planned](b)
	if err == nil {
		_, err = p.policy()
	}
	return p, err
}

func decodeAnswerMessage(b []byte) (answers []command.Answer, err error) {
	_, _, _, answers, _, err = command.DecodeAnswerMessage(b)
	return answers, err
}

func decodeLoad(b []byte) (map[int]map[string]int, error) {
	m, err := command.ReadLenient[loadMessage](b)
	return m.ready(), err
}

func encodePage(p command.Page) []byte {
	page := struct {
		Tasks   [][]byte
		Seen    []int64
		Before  uint64
		Until   int64
		Done    bool
		Looked  int64
		Cluster string
		Head    uint64
	}{nil, nil, uint64(p.Next.Before), int64(p.Next.Until), p.Done, int64(p.Looked), p.Cluster, p.Head}
	for i := range p.Tasks {
		page.Tasks = append(page.Tasks, command.EncodeTask(&p.Tasks[i]))
		page.Seen = append(page.Seen, 0)
	}
	return message.Encode(page)
}

// someItems are two items of a group.
func someItems() *items.Stores {
	all := new(items.Stores)
	for id := range uint64(2) {
		if err := all.Fold(&events.Event{Task: events.StoreItem("s", id+1), Seq: 1, Position: events.Position{Ref: events.RefOf(1, int(id))},
			Body: &events.ItemAdded{ID: id + 1, Group: "g", At: 5, Owner: 1, Data: events.Bytes([]byte("x"))}}); err != nil {
			panic(err)
		}
	}
	return all
}

// decodeGroups leaves out whether there are more.
func decodeGroups(data []byte) ([]item.Group, error) {
	groups, _, err := stores.DecodeGroups(data)
	return groups, err
}

func encodeTallies(rows []task.Count) []byte {
	var told struct {
		Tasks int64
		Rows  []struct {
			Behavior          string
			Status, Substatus uint64
			Tasks             int64
		}
	}
	for _, r := range rows {
		told.Tasks += r.Tasks
		told.Rows = append(told.Rows, struct {
			Behavior          string
			Status, Substatus uint64
			Tasks             int64
		}{r.Behavior, uint64(r.Status), uint64(r.Substatus), r.Tasks})
	}
	return message.Encode(told)
}

// entryPoints returns every decoder of this package with a message that it accepts.
func entryPoints() []entryPoint {
	failure := &events.Error{Code: "x", Message: "y", Properties: map[string]string{"a": "b"}}
	full := projection.Task{ID: "orders/1", Kind: &projection.Kind{Behavior: "work"}, Status: task.Failure, Error: failure,
		Progress: &events.Progressed{Done: 1, Note: "n"}, Requests: requests.List{{ID: "r-1", Run: 1, At: 7}, {ID: "r-2", Run: 2, At: 8}}}
	var policy, outcomes, assignments wire.Writer
	(&task.Policy{}).Encode(&policy)
	outcomes.Array(1)
	(&outcome.Outcome{Task: "a", Status: task.Failure, Err: failure}).Encode(&outcomes, 0)
	assignments.Array(1)
	(&command.Assignment{AttemptName: command.AttemptName{Task: "a", Started: 1}, Behavior: "work", Params: []byte{1, 50}}).Encode(&assignments)
	answers := command.EncodeAnswers([]command.Answer{{}, command.Refused(command.AnswerState, "no"), {Data: []byte{1}, Joined: true, Run: 3}})
	report := command.ShardReport{Owner: "n", Hash: make([]byte, 32), Degraded: "d"}
	report.Behaviors, report.Figures = meter.Pack([]meter.Figures{{Behavior: "work"}, {Behavior: meter.Other}})
	all := []entryPoint{
		pointAt("answers", answers, command.DecodeAnswers),
		pointAt("answer message", command.EncodeAnswerMessage(3, &command.Batch{Lane: 1, Number: 9}, []command.Answer{{}}, true), decodeAnswerMessage),
		pointAt("outcomes", outcomes.B, outcome.Decode),
		pointAt("assignments", assignments.B, command.DecodeAssignments),
		pointAt("names", command.EncodeNames([]command.AttemptName{{Task: "a", Started: 1}, {Task: "b", Started: 2}}), command.DecodeNames),
		pointAt("cancel", encoded(cancelMessage{3, "a", 1, "", ""}), command.ReadMessage[cancelMessage]),
		pointAt("plan", encoded(planned{ID: "a", Policy: policy.B, Merged: []byte("1")}), decodePlanned),
		pointAt("plan request", encoded(command.Plan{Behavior: "work", Params: []byte("1")}), command.ReadMessage[command.Plan]),
		pointAt("plan letter", encoded(command.PlanMessage{Planners: []string{"n-1", "n-2"}, Plan: command.Plan{Behavior: "work"}}), command.ReadMessage[command.PlanMessage]),
		pointAt("page", encodePage(command.Page{Part: listing.Part{Tasks: []projection.Task{full}, Next: listing.Place{Before: 7, Until: 9}, Looked: 3, Head: 11}, Cluster: "c"}), command.DecodePage),
		pointAt("tallies", encodeTallies([]task.Count{{Behavior: "work", Status: task.Failure, Substatus: task.SubFinal, Tasks: 7}}), command.DecodeTallies),
		pointAt("items", lookAt(someItems(), &stores.Page{Store: "s", Group: "g", Owned: true}), stores.DecodeFound),
		pointAt("groups of items", lookAt(someItems(), &stores.Groups{Store: "s"}), decodeGroups),
		pointAt("registration", stores.Awaited{Group: "g", Available: 1, DueIn: 2}.Encode(), stores.DecodeAwaited),
		pointAt("hint", stores.EncodeHint(stores.Hint{Store: "s", Group: "g", Count: 1}), stores.DecodeHint),
		pointAt("task", command.EncodeTask(&full), command.DecodeTask),
		pointAt("info", encoded(report), command.ReadLenient[command.ShardReport]),
		pointAt("explanation", encoded(explanation.Encoded{Why: "w", Since: 1, Text: "t", Substatus: 3}), command.ReadLenient[explanation.Encoded]),
		pointAt("load", encoded(loadMessage{"n", 5, 1, 0, []backlogRow{{3, "work", 7}, {4, "x", 1}}}), decodeLoad),
	}
	for op := uint64(1); commands.Table.New(op) != nil; op++ {
		c := commands.Table.New(op)
		switch c := c.(type) {
		case *command.Complete:
			c.How, c.Error = command.Failed, failure
		case *command.Offer:
			c.Behaviors = []command.OfferedBehavior{{Behavior: "work", Slots: 3}, {Behavior: "x", Slots: 1}}
		case *command.Reconcile:
			c.Attempts = []command.AttemptName{{Task: "a", Started: 1}, {Task: "b", Started: 2}}
		case *stores.Update:
			c.Depends, c.Deletes = []int64{1, 2}, []int64{3}
			c.Changes, c.Adds = []stores.Change{{ID: 1, Group: "g", Data: []byte("x")}}, []stores.Add{{Group: "g"}, {Group: "h", Data: []byte("y")}}
		case *stores.Read:
			c.IDs = []int64{1, 2}
		}
		b := &command.Batch{Sender: "c-1", Number: 7, Principal: "ada", Commands: []command.Command{c}}
		all = append(all, pointAt(fmt.Sprintf("batch of %T", c), b.Encode(), commands.Table.DecodeBatch))
	}
	return all
}

func TestDecoders_BombsCostLittle(t *testing.T) {
	for _, p := range entryPoints() {
		t.Run(p.name, func(t *testing.T) {
			testkit.CheckBombs(t, p.sample, func(b []byte) error {
				if len(b) == 0 {
					return errors.New("in some places nothing stands for none")
				}
				return p.decode(b)
			})
		})
	}
}

// A task of no text takes thirty bytes, and some hundred decoded: there are no more of them than a page has.
func TestPage_OfTheSmallestTasksCostsLittle(t *testing.T) {
	for n, sound := range map[int]bool{command.MaxPage: true, command.MaxPage + 1: false, 40_000: false} {
		page := command.Page{Part: listing.Part{Tasks: slices.Repeat([]projection.Task{{Kind: &projection.Kind{}}}, n)}}
		err := testkit.Bounded(t, testkit.Bomb{Name: fmt.Sprintf("%d tasks", n), Data: encodePage(page)}, func(b []byte) error {
			_, err := command.DecodePage(b)
			return err
		})
		if (err == nil) != sound || !sound && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("a page of %d tasks: %v", n, err)
		}
	}
}

// FuzzDecodeReplies decodes any bytes as each of the messages that have no target of their own: what is accepted is
// written and read again as the same.
func FuzzDecodeReplies(f *testing.F) {
	for _, p := range entryPoints() {
		if !strings.HasPrefix(p.name, "batch") {
			f.Add(p.sample)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		roundTrip(t, b, command.DecodeNames, command.EncodeNames)
		roundTrip(t, b, command.ReadMessage[cancelMessage], encoded)
		roundTrip(t, b, decodePlanned, encoded)
		roundTrip(t, b, command.ReadMessage[command.PlanMessage], encoded)
		roundTrip(t, b, command.ReadLenient[command.ShardReport], encoded)
		roundTrip(t, b, command.ReadLenient[explanation.Encoded], encoded)
		roundTrip(t, b, command.ReadLenient[loadMessage], encoded)
		roundTrip(t, b, command.DecodePage, encodePage)
		roundTrip(t, b, command.DecodeTallies, encodeTallies)
		roundTrip(t, b, command.DecodeTask, func(task projection.Task) []byte { return command.EncodeTask(&task) })
		if ready, err := decodeLoad(b); err == nil && len(ready) > store.MaxShards {
			t.Errorf("load of %d shards", len(ready))
		}
		roundTrip(t, b, command.DecodeSettings, func(s settings.State) []byte { return command.EncodeSettings(&s) })
	})
}

// roundTrip decodes b, and what came of it once more.
func roundTrip[T any](t *testing.T, b []byte, decode func([]byte) (T, error), encode func(T) []byte) {
	t.Helper()
	v, err := decode(b)
	if err != nil {
		return
	}
	if again, err := decode(encode(v)); err != nil || !reflect.DeepEqual(again, v) {
		t.Fatalf("written and read again:\n%+v, %v; want\n%+v", again, err, v)
	}
}

// lookAt returns the encoded answer to a question about items that is bounded by nothing but its size.
func lookAt(all *items.Stores, c command.Command) []byte {
	return stores.Find(all, c, 0, command.Budget{Items: math.MaxInt, Over: func() bool { return false }}).Answer().Data
}
