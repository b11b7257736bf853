package works_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/workledger"
)

// window bounds the changes that an attempt of a machine's stream has fetched and not passed.
const window = 8

// streamMachine drives a stream and its holds through whatever may happen to them, and holds them to a model that knows
// which changes were processed, in which order, and events alone.
type streamMachine struct {
	*world
	keys []string // of the changes, by place from 1 on
	size int      // of the data of a change that is held

	done    map[uint64]bool   // processed once, or given up by an operator
	excused map[uint64]bool   // given up, or passed by later ones of its key
	skipped map[string]bool   // keys of changes that an operator had the token pass
	last    map[string]uint64 // the change of a key that was processed last
	runs    *following        // the attempt of the stream; nil = it has read nothing yet
	zombies []*following      // attempts that were lost, and do not know it
	seen    int               // of told
	token   uint64
	holds   map[uint32]*heldNow
	ever    map[uint64]bool // was held
}

// heldNow is a hold as events tell it, and what its task has processed of it.
type heldNow struct {
	key     string
	passed  bool
	places  []uint64
	visited int // of places, from the first on
}

// following is an attempt of the stream, as package work makes it.
type following struct {
	record *works.Stream
	ref    events.Ref
	from   uint64            // the token at which it began
	next   uint64            // to be fetched
	ended  map[uint64]bool   // processed, or recorded as held
	held   map[string]bool   // keys
	hashes map[uint64]bool   // of keys that were held when it began
	wanted []workledger.Hold // in the order in which they were asked for
}

func hashOfKey(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

func placeOf(at string) uint64 {
	n, _ := strconv.ParseUint(at, 10, 64) // "" is 0
	return n
}

// key returns that of the change at a place.
func (m *streamMachine) key(place uint64) string { return m.keys[place-1] }

// processed notes that a change is processed, and holds that it overtakes none of its key.
func (m *streamMachine) processed(t *rapid.T, place uint64, by string, passed bool) {
	for p := uint64(1); p < place; p++ {
		if m.key(p) == m.key(place) && !m.done[p] && !passed {
			t.Fatalf("%s processes change %d of key %s before change %d", by, place, m.key(place), p)
		}
	}
	m.done[place] = true
	if !passed {
		m.last[m.key(place)] = place
	}
}

// giveUp notes that a change need not be processed any more.
func (m *streamMachine) giveUp(places ...uint64) {
	for _, p := range places {
		m.done[p], m.excused[p] = true, true
	}
}

// follow holds the events since the last check to the model.
func (m *streamMachine) follow(t *rapid.T) {
	for _, ev := range m.told[m.seen:] {
		m.seen++
		switch b := ev.Body.(type) {
		case *events.TokenMoved:
			m.moves(t, b)
		case *events.WorkReset:
			m.reset(placeOf(b.Token))
		case *events.ChangeHeld:
			h := m.holds[b.Hold]
			if h == nil {
				h = &heldNow{key: b.Key, passed: b.Passed}
				m.holds[b.Hold] = h
			}
			place := placeOf(b.At)
			h.places, m.ever[place] = append(h.places, place), true
			if b.Passed {
				m.giveUp(place)
			}
		case *events.HoldMoved:
			h := m.holds[b.Hold]
			if int(b.Done) > h.visited {
				t.Fatalf("%d changes leave hold %d, whose task has processed %d of %v", b.Done, b.Hold, h.visited, h.places)
			}
			h.places, h.visited = h.places[b.Done:], h.visited-int(b.Done)
			if b.Ended {
				delete(m.holds, b.Hold)
			}
		case *events.Deleted:
			number := events.HoldNumber(parent, ev.Task)
			if h := m.holds[number]; h != nil {
				m.giveUp(h.places...)
				delete(m.holds, number)
			}
		}
	}
}

// reset notes that an operator has set the token: what it passes need not be processed. A hold may have what came again
// of its key, and not what was to follow that again.
func (m *streamMachine) reset(to uint64) {
	for p := uint64(1); p <= to; p++ {
		if !m.done[p] && !m.isHeld(p) {
			m.giveUp(p)
		}
		if p > m.token {
			m.skipped[m.key(p)] = true
		}
	}
	m.token = to
}

// isHeld reports whether a hold has a change.
func (m *streamMachine) isHeld(place uint64) bool {
	for _, h := range m.holds {
		if slices.Contains(h.places, place) {
			return true
		}
	}
	return false
}

// moves holds that a token passes only what is processed or was held.
func (m *streamMachine) moves(t *rapid.T, b *events.TokenMoved) {
	if b.Token == "" {
		return
	}
	to := placeOf(b.Token)
	if to < m.token {
		t.Fatalf("the token goes back from %d to %d", m.token, to)
	}
	for p := m.token + 1; p <= to; p++ {
		if !m.done[p] && !m.ever[p] {
			t.Fatalf("the token passes change %d, which nobody has processed or holds", p)
		}
	}
	m.token = to
}

// check holds what must always be so.
func (m *streamMachine) check(t *rapid.T) {
	m.follow(t)
	of := m.work()
	if of == nil || of.Stream == nil {
		return
	}
	if got := placeOf(of.Stream.Token); got != m.token {
		t.Fatalf("the token is at %d, events lead to %d", got, m.token)
	}
	if of.Stream.Len() != len(m.holds) {
		t.Fatalf("%d holds, events lead to %d", of.Stream.Len(), len(m.holds))
	}
	blocks := map[string]bool{}
	for _, h := range of.Stream.Holds() {
		is := m.holds[h.Number]
		var places []uint64
		for i := range h.Changes {
			places = append(places, placeOf(h.Changes[i].At))
		}
		if is == nil || !slices.Equal(places, is.places) {
			t.Fatalf("hold %d has %v, events lead to %+v", h.Number, places, is)
		}
		if h.Data() > events.MaxHeldBytes || len(h.Changes) > events.MaxHeldChanges {
			t.Fatalf("hold %d has %d changes of %d bytes", h.Number, len(h.Changes), h.Data())
		}
		if !h.Passed && blocks[h.Key] {
			t.Fatalf("key %s has two holds", h.Key)
		}
		blocks[h.Key] = blocks[h.Key] || !h.Passed
		if is := m.task(h.ID); is == nil {
			t.Fatalf("hold %d has no task", h.Number)
		}
	}
}

// step carries out a step of an attempt.
func (m *streamMachine) step(t *rapid.T, id events.TaskID, kindly bool) {
	if id != parent {
		m.stepHold(t, id, kindly)
		return
	}
	if is := m.task(parent); m.runs == nil || m.runs.ref != is.Started {
		m.beginRun(t)
		return
	}
	r := m.runs
	var may []string
	if r.next <= uint64(len(m.keys)) && r.next-r.from <= window+uint64(len(r.ended)) {
		may = append(may, "fetch", "fetch")
	}
	able := m.able(r)
	if len(able) > 0 {
		may = append(may, "process", "process", "process")
	}
	switch {
	case len(may) == 0 && len(r.wanted) == 0:
		m.finish(t, true)
		return
	case len(may) == 0 || len(r.wanted) > 0:
		may = append(may, "move")
	case rapid.IntRange(0, 3).Draw(t, "moves") == 0:
		may = append(may, "move")
	}
	switch rapid.SampledFrom(may).Draw(t, "does") {
	case "fetch":
		r.next++
	case "process":
		m.process(t, r, rapid.SampledFrom(able).Draw(t, "change"), kindly)
	case "move":
		m.move(t, r)
	}
}

// beginRun has an attempt of the stream read where it begins.
func (m *streamMachine) beginRun(t *rapid.T) {
	p := part("all", 1, 1)
	p.Form = events.FormPrecise
	a := m.plan("d", p)
	if works.State(a.State) == works.Next {
		a = m.begin(a.Partition)
	}
	if works.State(a.State) == works.Wait {
		a = m.take(parent)
	}
	switch works.State(a.State) {
	case works.Go:
	case works.Over:
		m.complete(parent, command.Succeeded)
		return
	default:
		m.complete(parent, command.Released)
		return
	}
	r := &following{
		record: m.record(parent),
		ref:    m.task(parent).Started,
		ended:  map[uint64]bool{},
		held:   map[string]bool{},
		hashes: map[uint64]bool{},
	}
	at := m.position(r.record)
	r.from = placeOf(at.Token)
	r.next = r.from + 1
	for _, hash := range at.Held {
		r.hashes[hash] = true
	}
	for _, key := range m.keys {
		r.held[key] = r.hashes[hashOfKey(key)]
	}
	m.runs = r
}

// able returns the changes that an attempt may process: those before which none of their key is open.
func (m *streamMachine) able(r *following) (all []uint64) {
	busy := map[string]bool{}
	for p := r.from + 1; p < r.next; p++ {
		if key := m.key(p); !r.ended[p] && !busy[key] {
			busy[key] = true
			if !r.wants(p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// wants reports whether a change waits for its hold.
func (r *following) wants(place uint64) bool {
	return slices.ContainsFunc(r.wanted, func(h workledger.Hold) bool { return placeOf(h.Change.At) == place })
}

// process processes a change, or wants it to be held.
func (m *streamMachine) process(t *rapid.T, r *following, place uint64, kindly bool) {
	at, key := strconv.FormatUint(place, 10), m.key(place)
	h := begins(key, at)
	h.Change.Data = fmt.Appendf(nil, "%q", strings.Repeat("x", m.size))
	if r.held[key] {
		h.Append, h.Change.Code, h.Change.Message = true, "", ""
		r.wanted = append(r.wanted, h)
		return
	}
	fate := "done"
	if !kindly {
		fate = rapid.SampledFrom([]string{"done", "done", "done", "later", "later", "park", "pass"}).Draw(t, "fate")
	}
	h.Parked, h.Passed = fate == "park" || fate == "pass", fate == "pass"
	if fate != "done" {
		r.wanted = append(r.wanted, h)
		return
	}
	m.processed(t, place, "the stream", false)
	r.ended[place] = true
}

// move tells how far an attempt has come, with the first of the holds that it wants, and goes on by the answer.
func (m *streamMachine) move(t *rapid.T, r *following) {
	n := rapid.IntRange(min(1, len(r.wanted)), len(r.wanted)).Draw(t, "holds")
	batch := slices.Clone(r.wanted[:n])
	held := map[uint64]bool{}
	for _, h := range batch {
		held[placeOf(h.Change.At)] = true
	}
	to := r.from
	for to+1 < r.next && (r.ended[to+1] || held[to+1]) {
		to++
	}
	tell := workledger.Move{Holds: batch, Open: int64(r.next - 1 - to)}
	if to > r.from {
		tell.Token = strconv.FormatUint(to, 10)
	}
	moved, err := r.record.Move(context.Background(), tell)
	if _, full := errors.AsType[*store.InvalidError](err); full {
		_, err = r.record.Move(context.Background(), workledger.Move{Holds: batch})
		if err == nil {
			t.Error("holds without room are recorded where they come alone")
		}
	}
	m.follow(t)
	switch {
	case err != nil: // a limit has ended the stream, or the attempt is over
		m.runs = nil
		if is := m.task(parent); is.OnNode() {
			m.complete(parent, command.Released)
		}
	case len(moved.Freed) > 0:
		r.wanted = slices.DeleteFunc(r.wanted, func(h workledger.Hold) bool {
			return h.Append && held[placeOf(h.Change.At)] && slices.Contains(moved.Freed, h.Key)
		})
		for _, key := range moved.Freed {
			r.held[key] = false
		}
	default:
		r.wanted = r.wanted[n:]
		for _, h := range batch {
			r.ended[placeOf(h.Change.At)] = true
			r.held[h.Key] = r.held[h.Key] || !h.Passed
		}
	}
}

// finish ends an attempt of the stream in order: with its last move, and with the bucket if everything is processed.
func (m *streamMachine) finish(t *rapid.T, complete bool) {
	r := m.runs
	r.wanted = nil // they come again
	if m.move(t, r); m.runs == nil {
		return
	}
	m.runs = nil
	if !complete {
		m.complete(parent, command.Released)
		return
	}
	if a := m.world.move(parent, works.Bucket{Ended: 1}); works.State(a.State) == works.Over {
		m.complete(parent, command.Succeeded)
		return
	}
	m.complete(parent, command.Released)
}

// stepHold has the attempt of a hold's task process some of its changes, and tell it.
func (m *streamMachine) stepHold(t *rapid.T, id events.TaskID, kindly bool) {
	record := m.record(id)
	number := events.HoldNumber(parent, id)
	left := strings.Fields(m.held(record, 0))
	n := len(left)
	if !kindly {
		n = rapid.IntRange(0, len(left)).Draw(t, "processes")
	}
	for i, at := range left[:n] {
		h := m.holds[number]
		m.processed(t, placeOf(at), string(id), h.passed)
		h.visited = max(h.visited, i+1)
	}
	tells := kindly || rapid.IntRange(0, 3).Draw(t, "tells") > 0
	if tells && n > 0 {
		c := &works.Held{From: m.stream().Hold(number).Done, Processed: uint64(n)}
		c.Task, c.Started, c.Node = m.attempt(id)
		left = strings.Fields(m.held(record, n))
		if !kindly && rapid.IntRange(0, 3).Draw(t, "repeats") == 0 {
			m.must(c)
		}
	}
	m.follow(t)
	switch {
	case len(left) == 0:
		m.complete(id, command.Succeeded)
	case !kindly && rapid.Bool().Draw(t, "fails"):
		m.complete(id, command.Failed)
	}
}

// start1 starts a task that is ready, if there is one.
func (m *streamMachine) start1(t *rapid.T) {
	if all := m.ready(); len(all) > 0 {
		node := rapid.IntRange(1, 3).Draw(t, "node")
		m.start(rapid.SampledFrom(all).Draw(t, "starts"), fmt.Sprint("n-", node))
	}
}

// lose loses a node. The attempt of the stream goes on there, and does not know it.
func (m *streamMachine) lose(t *rapid.T, node string) {
	if is := m.task(parent); m.runs != nil && is.OnNode() && is.Node == node && len(m.zombies) < 3 {
		m.zombies = append(m.zombies, m.runs)
	}
	m.world.lose(node)
}

// haunt has an attempt that was lost tell how far it has come, which changes nothing.
func (m *streamMachine) haunt(t *rapid.T) {
	if len(m.zombies) == 0 {
		t.Skip("none")
	}
	z := rapid.SampledFrom(m.zombies).Draw(t, "attempt")
	before := len(m.told)
	_, err := z.record.Move(context.Background(), workledger.Move{
		Token: strconv.Itoa(len(m.keys)),
		Holds: []workledger.Hold{begins("k9", "999")},
	})
	if err == nil || len(m.told) != before {
		t.Fatalf("an attempt that was lost is heard: %v, %d events", err, len(m.told)-before)
	}
}

// setToken has an operator set the token of the stream, which may be refused.
func (m *streamMachine) setToken(t *rapid.T) {
	to := strconv.Itoa(rapid.IntRange(0, len(m.keys)).Draw(t, "token"))
	if m.decide(&works.Reset{
		Task:   string(parent),
		What:   int64(events.ResetToken),
		Token:  []byte(to),
		Reason: "restored",
	}).Code == command.AnswerOK {
		m.runs = nil
	}
}

// replay goes on with the state to which the recorded events lead.
func (m *streamMachine) replay(t *rapid.T) {
	again := projection.NewShard(0)
	for _, e := range m.entries {
		if err := again.Replay(e); err != nil {
			t.Fatal(err)
		}
	}
	if again.Digest(nil) != m.state.Digest(nil) {
		t.Fatal("replayed, the shard differs")
	}
	m.state = again
	m.state.MakeDue(m.now)
	m.takeOver()
}

// ids returns those of all tasks, sorted.
func (m *streamMachine) ids() (all []events.TaskID) {
	for is := range m.state.Tasks() {
		all = append(all, is.ID)
	}
	slices.Sort(all)
	return all
}

// settled reports whether nothing is left to do.
func (m *streamMachine) settled() bool {
	is := m.task(parent)
	return is.Status == task.Success && m.token == uint64(len(m.keys)) && len(m.holds) == 0
}

// settle lets the stream come to its end, with nothing in its way, and holds that nothing was forgotten.
func (m *streamMachine) settle(t *rapid.T) {
	for range 500 {
		m.rest()
		m.check(t)
		if m.settled() {
			break
		}
		for _, id := range m.ids() {
			switch is := m.task(id); {
			case is == nil:
			case is.Suspended:
				m.operate(id, task.Resume)
			case is.Final() && (id != parent || m.token < uint64(len(m.keys)) || is.Status == task.Failure):
				m.operate(id, task.Retry)
			}
		}
		m.now += 4_000_000
		m.state.MakeDue(m.now)
		for _, id := range m.ready() {
			m.start(id, "n-1")
		}
		for _, id := range m.running() {
			for range 12 {
				if is := m.task(id); is != nil && is.OnNode() {
					m.step(t, id, true)
				}
			}
		}
	}
	if !m.settled() {
		t.Fatalf("the stream does not end: %+v", m.show())
	}
	most := map[string]uint64{}
	for i, key := range m.keys {
		place := uint64(i) + 1
		if !m.done[place] {
			t.Errorf("change %d of key %s is forgotten", place, key)
		}
		if !m.excused[place] && !m.skipped[key] {
			most[key] = place
		}
	}
	for key, place := range most {
		if m.last[key] < place {
			t.Errorf("the last that was processed of key %s is change %d, want %d", key, m.last[key], place)
		}
	}
}

func TestStream_NothingOvertakesAndNothingIsForgottenWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &streamMachine{
			world:   newWorld(t),
			size:    rapid.SampledFrom([]int{1, 1, 30_000, 70_000}).Draw(t, "bytes"),
			done:    map[uint64]bool{},
			excused: map[uint64]bool{},
			skipped: map[string]bool{},
			last:    map[string]uint64{},
			holds:   map[uint32]*heldNow{},
			ever:    map[uint64]bool{},
		}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			m.keys = append(m.keys, fmt.Sprint("k", rapid.IntRange(1, 2).Draw(t, "key")))
		}
		m.submit(task.Policy{
			MaxAttempts: rapid.IntRange(1, 4).Draw(t, "attempts"),
			MaxLost:     rapid.IntRange(1, 3).Draw(t, "losses"),
			LostDelay:   time.Second,
			Backoff:     task.Backoff{Base: time.Second, Max: 10 * time.Second},
		})
		pick := func(t *rapid.T, ids []events.TaskID) events.TaskID {
			if len(ids) == 0 {
				t.Skip("none")
			}
			return rapid.SampledFrom(ids).Draw(t, "task")
		}
		goOn := func(t *rapid.T) {
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				m.start1(t)
				if all := m.running(); len(all) > 0 {
					m.step(t, pick(t, all), false)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"go on":  goOn,
			"go on2": goOn,
			"go on3": goOn,
			"go on4": goOn,
			"go on5": goOn,
			"go on6": goOn,
			"go on7": goOn,
			"go on8": goOn,
			"fail":   func(t *rapid.T) { m.complete(pick(t, m.running()), command.Failed) },
			"leave": func(t *rapid.T) {
				if is := m.task(parent); m.runs == nil || !is.OnNode() || m.runs.ref != is.Started {
					t.Skip("none")
				}
				m.finish(t, false)
			},
			"release": func(t *rapid.T) { m.complete(pick(t, m.running()), command.Released) },
			"lose":    func(t *rapid.T) { m.lose(t, fmt.Sprint("n-", rapid.IntRange(1, 3).Draw(t, "node"))) },
			"haunt":   m.haunt,
			"wait": func(t *rapid.T) {
				m.now += events.Millis(rapid.SampledFrom([]int{10_000, 10_000, 4_000_000}).Draw(t, "for"))
				m.state.MakeDue(m.now)
			},
			"turn":    func(*rapid.T) { m.turn() },
			"restore": func(t *rapid.T) { m.restore(t) },
			"replay":  m.replay,
			"token":   m.setToken,
			"operate": func(t *rapid.T) {
				do := rapid.SampledFrom([]task.Operation{task.Cancel, task.Suspend, task.Resume, task.Retry, task.RunNow}).Draw(t, "do")
				m.decide(&command.Operate{Task: parent, Do: do})
			},
			"operate hold": func(t *rapid.T) {
				all := slices.DeleteFunc(m.ids(), func(id events.TaskID) bool { return id == parent })
				do := rapid.SampledFrom([]task.Operation{task.Delete, task.Resume, task.Retry, task.Cancel, task.Suspend}).Draw(t, "do")
				m.decide(&command.Operate{Task: pick(t, all), Do: do})
			},
		})
		m.settle(t)
	})
}
