package work

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"taskledger/work/internal/prefix"
	"taskledger/work/internal/threads"
	"taskledger/work/workledger"
)

const (
	// moveEvery is the time between two moves of a token, unless a change is to be held.
	moveEvery = time.Second
	// maxAhead bounds the changes that are processed and not passed, because one before them is open.
	maxAhead = 10_000
)

// outcome tells what became of a change. The zero value is that of a position, which counts as nothing.
type outcome struct {
	of    ending
	error *ItemError
}

// ending says how a change counts.
type ending uint8

const (
	uncounted ending = iota
	changeDone
	changeFailed
	changeSkipped
)

// sum sums up outcomes, and keeps the first errors.
type sum struct {
	counts Counts
	firstErrors
}

func (s *sum) add(o outcome) {
	switch o.of {
	case changeDone:
		s.counts.Done++
	case changeFailed:
		s.counts.Failed++
	case changeSkipped:
		s.counts.Skipped++
	}
	if o.error != nil {
		s.keep(*o.error)
	}
}

// wanted is a change that shall be held. Its item is set aside until tell is called.
type wanted struct {
	hold    workledger.Hold
	place   uint64
	outcome outcome
	tell    func(threads.Verdict)
}

// size returns the bytes of a hold as they count for a move.
func (w *wanted) size() int {
	c := &w.hold.Change
	return len(w.hold.Key) + len(c.At) + len(c.Data) + len(c.Code) + len(c.Message)
}

// mover records how far a stream has come: the token, counts, and which changes are held.
type mover struct {
	record workledger.Stream
	// whole has the token and the counts wait for the end of the run.
	whole bool
	// simulates tells that the first move is due even if nothing has come: it tells where a simulation ends.
	simulates bool
	begin     string // the token at which the run begins

	mu      sync.Mutex
	changes prefix.Prefix[outcome]
	passed  sum    // of what was passed and is not recorded
	token   string // of what was passed last and is not recorded
	wanted  []*wanted
	flying  bool // a move with holds is under way: nothing is passed meanwhile
	held    map[uint64]bool
	told    bool // changes were told to be open
	moved   time.Time
	any     bool // a move was recorded

	bell chan struct{} // rings when there may be something to record
}

func newMover(record workledger.Stream, at workledger.Position) *mover {
	m := &mover{
		record: record,
		begin:  at.Token,
		held:   map[uint64]bool{},
		moved:  time.Now(),
		bell:   make(chan struct{}, 1),
	}
	for _, key := range at.Held {
		m.held[key] = true
	}
	return m
}

// keyHash returns the number of a key in workledger.Position.
func keyHash(key string) uint64 {
	s := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(s[:])
}

// holds reports whether changes of a key are held.
func (m *mover) holds(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.held) > 0 && m.held[keyHash(key)]
}

// room reports whether another change may come.
func (m *mover) room() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes.Len() < maxAhead
}

// add adds a change that has come.
func (m *mover) add(token string) (place uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.ring()
	return m.changes.Add(token, time.Now())
}

// has reports whether a change with the token is not passed.
func (m *mover) has(token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes.Has(token)
}

// end tells what became of a change.
func (m *mover) end(place uint64, o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes.End(place, o)
	m.pass()
	m.ring()
}

// pass passes what has ended before everything that is open. The lock is held.
func (m *mover) pass() {
	if m.flying {
		return
	}
	last, token := m.changes.Front(m.passed.add)
	m.changes.Pass(last)
	if token != "" {
		m.token = token
	}
}

// want asks for a hold.
func (m *mover) want(w *wanted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = append(m.wanted, w)
	m.ring()
}

func (m *mover) ring() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// run records what is new, at most once a second and at once what is to be held, until stopping is closed. It calls
// fail with the error that ends it.
func (m *mover) run(ctx context.Context, stopping <-chan struct{}, fail func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		after, due := m.due()
		if due {
			if err := m.move(ctx, false); err != nil {
				fail(err)
				return
			}
			continue
		}
		var ring <-chan time.Time
		if after > 0 {
			timer.Reset(after)
			ring = timer.C
		}
		select {
		case <-stopping:
			return
		case <-m.bell:
		case <-ring:
		}
	}
}

// due reports whether something is to be recorded now, or after a time; 0 stands for not yet.
func (m *mover) due() (after time.Duration, now bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.wanted) > 0:
		return 0, true
	case !m.news(m.changes.Open() > 0):
		return 0, false
	}
	after = moveEvery - time.Since(m.moved)
	return max(after, 0), after <= 0
}

// news reports whether a move would tell something, if it told whether changes are open. The lock is held.
func (m *mover) news(open bool) bool {
	return open != m.told || !m.whole && (m.token != "" || m.passed.counts != Counts{})
}

// finish records what is left once no change is processed any more. complete tells that all that the source has was
// processed.
func (m *mover) finish(ctx context.Context, complete bool) error {
	m.mu.Lock()
	m.wanted = nil // they come again
	if m.whole && complete {
		m.whole = false
	}
	if complete && m.simulates && !m.any && m.token == "" {
		m.token = m.begin
	}
	news := m.news(false)
	m.mu.Unlock()
	if !news {
		return nil
	}
	return m.move(ctx, true)
}

// move records what is new, with as many of the wanted holds as a move takes.
func (m *mover) move(ctx context.Context, last bool) error {
	ctx, done := lasting(ctx)
	defer done()
	move, batch, upTo := m.next(last)
	answer, err := m.record.Move(ctx, move)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.ring()
	m.flying = false
	switch {
	case err != nil:
		return fmt.Errorf("recording how far the stream is: %w", err)
	case len(answer.Freed) > 0:
		err = m.free(batch, answer.Freed)
	default:
		m.recorded(move, batch, upTo)
	}
	m.pass()
	return err
}

// next returns the next move with the holds in it, and up to which place its counts go.
func (m *mover) next(last bool) (move workledger.Move, batch []*wanted, upTo uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := 0
	for _, w := range m.wanted {
		if size += w.size(); size > MaxHeldBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, w)
		move.Holds = append(move.Holds, w.hold)
		m.changes.End(w.place, w.outcome)
	}
	m.wanted = m.wanted[len(batch):]
	m.flying = true
	passed := m.passed
	passed.errors = append([]ItemError(nil), passed.errors...)
	upTo, token := m.changes.Front(passed.add)
	if token == "" {
		token = m.token
	}
	if !m.whole {
		move.Token, move.Items, move.Errors = token, passed.counts, passed.errors
	}
	move.Open, move.Oldest = int64(m.changes.Open()), m.changes.Oldest()
	if last { // they are known to nobody when the attempt has ended
		move.Open, move.Oldest = 0, time.Time{}
	}
	return move, batch, upTo
}

// recorded notes that a move was recorded. The lock is held.
func (m *mover) recorded(move workledger.Move, batch []*wanted, upTo uint64) {
	if m.whole { // what it passes now counts at the end
		m.flying = false
		m.pass()
	} else {
		m.changes.Pass(upTo)
		m.passed, m.token = sum{}, ""
		m.any = m.any || move.Token != ""
	}
	m.moved, m.told = time.Now(), move.Open > 0
	for _, w := range batch {
		if !w.hold.Passed {
			m.held[keyHash(w.hold.Key)] = true
		}
		w.tell(threads.Verdict{})
	}
}

// errFreed tells of an answer that a ledger never gives.
var errFreed = errors.New("the answer frees keys of which no change was to be appended")

// free has the changes be processed whose holds have ended, and wants the others again. The lock is held.
func (m *mover) free(batch []*wanted, keys []string) error {
	freed := map[string]bool{}
	for _, key := range keys {
		freed[key] = true
		delete(m.held, keyHash(key))
	}
	var rest []*wanted
	for _, w := range batch {
		m.changes.Reopen(w.place)
		if w.hold.Append && freed[w.hold.Key] {
			w.tell(threads.Verdict{Again: true})
			continue
		}
		rest = append(rest, w)
	}
	m.wanted = append(rest, m.wanted...)
	if len(rest) == len(batch) {
		return errFreed
	}
	return nil
}

// lasting returns a context that goes on for a while after ctx has ended, so that what it is for is not half done.
func lasting(ctx context.Context) (context.Context, func()) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(giveBack)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, func() {
		stop()
		cancel()
	}
}
