package command_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
)

// laterKind is a kind of event that some nodes know.
const laterKind = 100

// later is an event of it.
type later struct{ *events.Deleted }

func (later) Kind() events.Kind { return laterKind }

// membersWhoRead is a cluster of nodes that read events up to a kind each.
func membersWhoRead(kinds ...events.Kind) *store.Membership {
	m := &store.Membership{Nodes: map[string]store.NodeInfo{}}
	for i, kind := range kinds {
		id := string(rune('a' + i))
		m.Nodes[id] = store.NodeInfo{ID: id, Name: "node-" + id, Version: "0.9", Reads: store.Reads{Kind: kind}}
	}
	return m
}

func TestDecide_RefusesWhatANodeCannotReadByItsName(t *testing.T) {
	l := ledgerAt(t, atCreated)
	for name, members := range map[string]*store.Membership{
		"a kind less":         membersWhoRead(laterKind, laterKind-1),
		"it does not say":     membersWhoRead(laterKind, 0),
		"nobody reads it":     membersWhoRead(laterKind - 1),
		"it has been written": {Written: store.Reads{Kind: laterKind}, Nodes: membersWhoRead(laterKind, laterKind-1).Nodes},
	} {
		var answer, after command.Answer
		kinds := l.entry(func(d *command.Decider) {
			d.Members = members
			answer = d.Decide(&command.Emit{*l.ask(events.Policy{}), []events.Body{later{}, &events.Suspended{}}})
			after = d.Decide(&command.Operate{Task: ledgerTask, Do: command.DoSuspend})
			l.legal(d)
			if d.Highest >= laterKind {
				t.Errorf("%s: the entry goes up to %s", name, d.Highest)
			}
			d.Decide(&command.Operate{Task: ledgerTask, Do: command.DoResume})
		})
		who := "node node-b"
		if len(members.Nodes) == 1 {
			who = "node node-a"
		}
		want := command.Refused(command.AnswerState, "%s (0.9) cannot read events of kind Kind(100) yet: upgrade it first", who)
		if answer.Code != want.Code || answer.Text != want.Text {
			t.Errorf("%s: answered %+v, want %+v", name, answer, want)
		}
		if after.Code != command.AnswerOK || len(kinds) != 2 {
			t.Errorf("%s: the next commands are answered %+v and record %v", name, after, kinds)
		}
	}
}

// What the fold says of a kind that it does not know shows that the event has come that far.
func TestDecide_RecordsWhatAllNodesRead(t *testing.T) {
	for name, members := range map[string]*store.Membership{
		"all read it":           membersWhoRead(laterKind, laterKind+1),
		"nobody asks for nodes": nil,
	} {
		l := ledgerAt(t, atCreated)
		l.entry(func(d *command.Decider) {
			d.Members = members
			d.Decide(&command.Emit{*l.ask(events.Policy{}), []events.Body{later{}}})
			if len(d.Bugs) != 1 || d.Highest != laterKind {
				t.Errorf("%s: the entry goes up to %s, %v", name, d.Highest, d.Bugs)
			}
			d.Entry.Reset(d.Entry.Entry) // it is not used
		})
	}
}

// A submit has to work while nodes are upgraded: what it would record of itself is left out.
func TestSubmit_ThatJoinsWorksWhileANodeCannotReadJoined(t *testing.T) {
	for highest, want := range map[events.Kind]int{events.KindJoined: 1, events.KindJoined - 1: 0} {
		l := ledgerAt(t, atRunning)
		var answer command.Answer
		kinds := l.entry(func(d *command.Decider) {
			d.Members = membersWhoRead(highest)
			asked := l.ask(events.Policy{Existing: events.RunAgain})
			asked.RequestID = "key"
			answer = d.Decide(asked)
			l.legal(d)
		})
		if answer.Code != command.AnswerOK || !answer.Joined || len(kinds) != want {
			t.Errorf("with a node that reads up to %s: answered %+v, %d events, want %d", highest, answer, len(kinds), want)
		}
	}
}

func TestDecide_HalfOfACommandIsNoDecision(t *testing.T) {
	l := newJournalDriver(t)
	l.entry(func(d *command.Decider) {
		d.Members = membersWhoRead(laterKind - 1)
		if a := d.Decide(&command.Emit{*l.ask(events.Policy{}), []events.Body{later{}}}); d.Err == nil {
			t.Errorf("answered %+v after Created", a)
		}
		d.Entry.Reset(d.Entry.Entry)
	})
}
