package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/internal/wire/wiretest"
	"taskledger/projection"
	"taskledger/store"
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
	p, err := readMessage[planned](b)
	if err == nil {
		_, err = p.policy()
	}
	return p, err
}

func decodeLoad(b []byte) (map[int]map[string]int, error) {
	m, err := readMessage[loadMessage](b)
	return m.ready(), err
}

type pageMessage struct {
	tasks []projection.Task
	more  bool
}

func decodePageMessage(b []byte) (m pageMessage, err error) {
	m.tasks, m.more, err = decodePage(b)
	return m, err
}

func encodePage(m pageMessage) []byte {
	page := taskPage{More: m.more}
	for i := range m.tasks {
		page.Tasks = append(page.Tasks, encodeTask(&m.tasks[i]))
	}
	return message.Encode(page)
}

// entryPoints returns every decoder of this package with a message that it accepts.
func entryPoints() []entryPoint {
	failure := &events.Error{Code: "x", Message: "y", Properties: map[string]string{"a": "b"}}
	task := projection.Task{ID: "orders/1", Kind: &projection.Kind{Behavior: "work"}, Status: projection.Failure, Error: failure,
		Progress: &events.Progressed{Done: 1, Note: "n"}, Requests: []string{"r-1", "r-2"}}
	var policy, outcomes, assignments wire.Writer
	(&Policy{}).Encode(&policy)
	outcomes.Array(1)
	(&outcome{task: "a", status: projection.Failure, err: failure}).encode(&outcomes, 0)
	assignments.Array(1)
	(&assignment{attemptName: attemptName{"a", 1}, behavior: "work", params: []byte{1, 50}}).encode(&assignments)
	answers := encodeAnswers([]answer{{}, refused(answerState, "no"), {data: []byte{1}, joined: true, run: 3}})
	all := []entryPoint{
		pointAt("answers", answers, decodeAnswers),
		pointAt("answer message", encodeAnswerMessage(3, &batch{lane: 1, number: 9}, []answer{{}}, true), decodeMessage),
		pointAt("outcomes", outcomes.B, decodeOutcomes),
		pointAt("assignments", assignments.B, decodeAssignments),
		pointAt("names", encodeNames([]attemptName{{"a", 1}, {"b", 2}}), decodeNames),
		pointAt("cancel", encoded(cancelMessage{3, "a", 1}), readMessage[cancelMessage]),
		pointAt("plan", encoded(planned{ID: "a", Policy: policy.B, Merged: []byte("1")}), decodePlanned),
		pointAt("plan request", encoded(planCommand{Behavior: "work", Params: []byte("1")}), readMessage[planCommand]),
		pointAt("plan letter", encoded(planLetter{[]string{"n-1", "n-2"}, planCommand{Behavior: "work"}}), readMessage[planLetter]),
		pointAt("page", encodePage(pageMessage{tasks: []projection.Task{task}, more: true}), decodePageMessage),
		pointAt("task", encodeTask(&task), decodeTask),
		pointAt("info", encoded(shardReport{Owner: "n", Hash: make([]byte, 32), Degraded: "d"}), readMessage[shardReport]),
		pointAt("explanation", encoded(explained{"w", 1, "t"}), readMessage[explained]),
		pointAt("load", encoded(loadMessage{"n", 5, 1, 0, []backlogRow{{3, "work", 7}, {4, "x", 1}}}), decodeLoad),
	}
	for op := uint64(1); newCommand(op) != nil; op++ {
		c := newCommand(op)
		switch c := c.(type) {
		case *completeCommand:
			c.How, c.Error = failed, failure
		case *offerCommand:
			c.Behaviors = []offeredBehavior{{"work", 3}, {"x", 1}}
		case *rollCallCommand:
			c.Attempts = []attemptName{{"a", 1}, {"b", 2}}
		}
		b := &batch{sender: "c-1", number: 7, principal: "ada", commands: []command{c}}
		all = append(all, pointAt(fmt.Sprintf("batch of %T", c), b.encode(), decodeBatch))
	}
	return all
}

func TestDecoders_BombsCostLittle(t *testing.T) {
	for _, p := range entryPoints() {
		t.Run(p.name, func(t *testing.T) {
			wiretest.Check(t, p.sample, func(b []byte) error {
				if len(b) == 0 {
					return errors.New("in some places nothing stands for none")
				}
				return p.decode(b)
			})
		})
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
		roundTrip(t, b, decodeNames, encodeNames)
		roundTrip(t, b, readMessage[cancelMessage], encoded)
		roundTrip(t, b, decodePlanned, encoded)
		roundTrip(t, b, readMessage[planLetter], encoded)
		roundTrip(t, b, readMessage[shardReport], encoded)
		roundTrip(t, b, readMessage[explained], encoded)
		roundTrip(t, b, readMessage[loadMessage], encoded)
		roundTrip(t, b, decodePageMessage, encodePage)
		roundTrip(t, b, decodeTask, func(task projection.Task) []byte { return encodeTask(&task) })
		if ready, err := decodeLoad(b); err == nil && len(ready) > store.MaxShards {
			t.Errorf("load of %d shards", len(ready))
		}
		readSettings(&projection.Task{Params: b})
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

// FuzzNoResponders tells a router that nobody listens on any subject.
func FuzzNoResponders(f *testing.F) {
	f.Add("node.c-1.3.0.1")
	f.Add("node.c-1.3.3.1")
	f.Add("node.c-1.-1.9.1")
	f.Add("node.c-1.99999999999999999999.0.1")
	f.Fuzz(func(t *testing.T, subject string) {
		r := newRouter("c-1", "", 4, nil, nil, slog.New(slog.DiscardHandler))
		r.onMessage(store.Message{Subject: subject, NoResponders: true})
		r.onMessage(store.Message{Subject: subject, Data: []byte(subject)})
	})
}

// sealed returns the stored form of an entry.
func sealed(t testing.TB, e *events.Entry) []byte {
	t.Helper()
	var b events.Builder
	head := *e
	head.Events, head.Origins = nil, nil
	b.Reset(head)
	for _, o := range e.Origins {
		b.AddOrigin(o)
	}
	for _, ev := range e.Events {
		b.Add(ev)
	}
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
