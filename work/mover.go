package work

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"taskledger/store"
	"taskledger/task"
	"taskledger/work/internal/prefix"
	"taskledger/work/workledger"
)

const (
	// moveEvery is the time between two moves of a token, unless a change is to be held.
	moveEvery = time.Second
	// lagEvery is the time after which it is told again how many changes are open, if that has changed.
	lagEvery = 10 * time.Second
	// maxAhead bounds the changes that are processed and not passed, because one before them is open.
	maxAhead = 10_000
	// maxHeld bounds the keys that are taken for held: with more of them the record is asked which are, half as many
	// at most.
	maxHeld = 2 * MaxHolds
)

// mover records how far a stream has come: the token, counts, and which changes are held.
type mover struct {
	record workledger.Stream
	// whole has the token and the counts wait for the end of the run.
	whole bool
	// simulates tells that the first move is due even if nothing has come: it tells where a simulation ends.
	simulates bool
	begin     string // the token at which the run begins
	// lag returns, of a pushed stream, how many messages are open and since when. Such a stream has no token, so
	// its changes are not added: they count when their message is acknowledged.
	lag func(ctx context.Context) (open int64, oldest time.Time)
	// wake has the run ask again whether another change may come; nil = nobody waits for that.
	wake func()

	mu      sync.Mutex
	changes prefix.Prefix[outcome]
	passed  sum    // counts what was passed and is not recorded
	late    sum    // counts messages that were acknowledged while a move was under way
	token   string // belongs to the change that was passed last, until it is recorded
	wanted  []*wanted
	flying  bool // a move is under way: nothing is passed meanwhile
	unsure  bool // nobody knows whether the last move was recorded: the attempt makes no other one
	opens   int  // messages of a pushed stream that are not acknowledged
	held    map[uint64]bool
	before  int64 // changes that an attempt before this one told to be open, until this one tells how many are
	told    bool  // changes were told to be open
	lagged  int64 // so many, and since when
	oldest  time.Time
	moved   time.Time
	any     bool   // a move was recorded
	failed  bool   // the run has failed: what it failed at is open
	fence   uint64 // the least fencing token of what is processed from now on

	bell chan struct{} // rings when there may be something to record
}

func newMover(record workledger.Stream, at workledger.Position) *mover {
	m := &mover{
		record: record,
		begin:  at.Token,
		before: at.Open,
		moved:  time.Now(),
		bell:   make(chan struct{}, 1),
	}
	m.learn(at)
	return m
}

// learn takes over which keys are held. The lock is held, or nobody else knows the mover.
func (m *mover) learn(at workledger.Position) {
	m.held = make(map[uint64]bool, len(at.Held))
	for _, key := range at.Held {
		m.held[key] = true
	}
	m.fence = max(m.fence, at.Fence)
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

// fenced returns the least fencing token of a change that is processed now.
func (m *mover) fenced() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fence
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

// end tells what became of a change.
func (m *mover) end(place uint64, o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes.End(place, o)
	m.pass()
	m.ring()
}

// opened notes that a message of a pushed stream has come.
func (m *mover) opened() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens++
	m.ring()
}

// closed notes that a message of a pushed stream is acknowledged, and what became of its changes.
func (m *mover) closed(all []outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens--
	for _, o := range all {
		m.late.add(o)
	}
	m.pass()
	m.ring()
}

// pass passes what has ended before everything that is open. The lock is held.
func (m *mover) pass() {
	if m.flying {
		return
	}
	m.passed.join(m.late)
	m.late = sum{}
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

// run records what is new, at most once a second and at once what is to be held, until stopping is closed.
func (m *mover) run(ctx context.Context, stopping <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		after, due := m.due()
		if due {
			if err := m.move(ctx, false); err != nil {
				return err
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
			return nil
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
	case m.news(m.changes.Open()+m.opens > 0):
	case m.told || m.lagged > 0: // a source may know by now that nothing is open any more
		after = lagEvery - time.Since(m.moved)
		return max(after, 0), after <= 0
	default:
		return 0, false
	}
	after = moveEvery - time.Since(m.moved)
	return max(after, 0), after <= 0
}

// news reports whether a move would tell something, if it told whether changes are open. The lock is held.
func (m *mover) news(open bool) bool {
	return open != m.told || !m.whole && (m.token != "" || m.passed.counts != Counts{})
}

// finish records what is left once no change is processed any more, and what is open then. complete tells that all that
// the source has was processed, and failed that something else than the end of its context has ended the run.
func (m *mover) finish(ctx context.Context, complete, failed bool) error {
	m.mu.Lock()
	m.wanted = nil // they come again
	if m.whole && complete {
		m.whole = false
	}
	if complete && m.simulates && !m.any && m.token == "" {
		m.token = m.begin
	}
	m.failed = failed && m.lag == nil
	open := !complete && (m.failed || m.changes.Open()+m.opens > 0)
	m.told = m.told || m.before > 0 && (complete || open)
	news := !m.unsure && m.news(open)
	m.mu.Unlock()
	if !news {
		return nil
	}
	return m.move(ctx, true)
}

// portion says what a move tells.
type portion int

const (
	whole portion = iota
	tokenAlone
	holdsAlone
)

// move records what is new, with as many of the wanted holds as a move takes. Where there is no room for those, what
// was processed before them is recorded alone, and then the holds, which end the stream unless there is room by then.
func (m *mover) move(ctx context.Context, last bool) error {
	ctx, done := lasting(ctx)
	defer done()
	full, err := m.tell(ctx, last, whole)
	if !full {
		return err
	}
	if _, err := m.tell(ctx, last, tokenAlone); err != nil {
		return err
	}
	_, err = m.tell(ctx, last, holdsAlone)
	return err
}

// tell makes a move. full reports that it was refused since there is no room for its holds, and tells more than those.
func (m *mover) tell(ctx context.Context, last bool, what portion) (full bool, err error) {
	var known int64
	var oldest time.Time
	if m.lag != nil {
		known, oldest = m.lag(ctx)
	}
	move, batch, upTo, open := m.next(what)
	if m.lag != nil {
		move.Open, move.Oldest = known, oldest
	}
	if m.same(&move, open) {
		return false, nil
	}
	answer, err := m.record.Move(ctx, move)
	switch {
	case err != nil:
		m.refused(batch, err)
		invalid, is := errors.AsType[*store.InvalidError](err)
		full = is && invalid.Field == workledger.FieldHolds && what == whole && (move.Token != "" || move.Items != Counts{})
		return full, fmt.Errorf("recording how far the stream is: %w", err)
	case len(answer.Freed) > 0:
		return false, m.free(batch, &answer)
	}
	if m.recorded(move, batch, upTo, open, what); last {
		return false, nil
	}
	return false, m.forget(ctx)
}

// forget forgets the keys whose holds have ended, where many are taken for held: those that have no later change would
// never be told to be free, and a run may have no end.
func (m *mover) forget(ctx context.Context) error {
	m.mu.Lock()
	held := len(m.held)
	m.mu.Unlock()
	if held <= maxHeld {
		return nil
	}
	at, err := m.record.Position(ctx)
	if err != nil {
		return fmt.Errorf("asking which keys of %d are held: %w", held, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learn(at)
	return nil
}

// next returns the next move with the holds in it, up to which place its counts go, and whether changes are open.
func (m *mover) next(what portion) (move workledger.Move, batch []*wanted, upTo uint64, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := 0
	for _, w := range m.wanted {
		if what == tokenAlone {
			break
		}
		if size += w.size(); size > MaxHeldBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, w)
		move.Holds = append(move.Holds, w.hold)
		if m.lag == nil {
			m.changes.End(w.place, w.outcome)
		}
	}
	m.wanted = m.wanted[len(batch):]
	m.flying = true
	passed := m.passed
	passed.errors = slices.Clone(passed.errors)
	upTo, token := m.changes.Front(passed.add)
	switch {
	case what == holdsAlone:
		upTo = m.changes.Passed()
	case !m.whole:
		move.Token = cmp.Or(token, m.token)
		move.Items, move.Errors = passed.counts, passed.errors
	}
	move.Open, move.Oldest = int64(m.changes.Open()), m.changes.Oldest()
	if m.failed && move.Open == 0 { // the source has failed at one that nobody has seen
		move.Open, move.Oldest = 1, time.Now()
	}
	return move, batch, upTo, move.Open > 0 || m.opens > 0
}

// same reports whether a move tells nothing new, and has it made all the same then: nobody need record it.
func (m *mover) same(move *workledger.Move, open bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := open == m.told && move.Open == m.lagged && move.Oldest.Equal(m.oldest) &&
		move.Token == "" && move.Items == (Counts{}) && len(move.Holds) == 0
	if is {
		m.moved = time.Now()
		m.land()
	}
	return is
}

// recorded notes that a move was recorded, and whether changes were open.
func (m *mover) recorded(move workledger.Move, batch []*wanted, upTo uint64, open bool, what portion) {
	m.mu.Lock()
	if !m.whole && what != holdsAlone { // else what it passes counts at the end
		m.changes.Pass(upTo)
		m.passed, m.token = sum{}, ""
		m.any = m.any || move.Token != ""
	}
	m.moved, m.told, m.lagged, m.oldest, m.before = time.Now(), open, move.Open, move.Oldest, 0
	for _, w := range batch {
		if !w.hold.Passed {
			m.held[keyHash(w.hold.Key)] = true
		}
	}
	m.land()
	m.mu.Unlock()
	for _, w := range batch {
		w.recorded()
	}
}

// land passes what has ended while a move was under way. The lock is held.
func (m *mover) land() {
	m.flying = false
	m.pass()
	m.ring()
	if m.wake != nil {
		m.wake()
	}
}

// refused takes back what a move told that failed: what it was to hold is open. Where it may be recorded all the same,
// no other one follows, since its token might go back and its counts count twice: the next attempt goes on where the
// record says.
func (m *mover) refused(batch []*wanted, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reopen(batch)
	m.wanted = append(batch, m.wanted...)
	m.unsure = !refuses(err)
	m.land()
}

// refuses reports whether an error of a record tells that nothing was recorded.
func refuses(err error) bool {
	_, invalid := errors.AsType[*store.InvalidError](err)
	_, limit := errors.AsType[*task.LimitError](err)
	_, state := errors.AsType[*task.StateError](err)
	_, busy := errors.AsType[*task.OverloadError](err)
	return invalid || limit || state || busy
}

// reopen has changes be open that were to be held. The lock is held.
func (m *mover) reopen(batch []*wanted) {
	if m.lag != nil {
		return
	}
	for _, w := range batch {
		m.changes.Reopen(w.place)
	}
}

// errFreed tells of an answer that a ledger never gives.
var errFreed = errors.New("the answer frees keys of which no change was to be appended")

// free has the changes be processed whose holds have ended, and wants the others again.
func (m *mover) free(batch []*wanted, is *workledger.Moved) error {
	keys := is.Freed
	m.mu.Lock()
	m.fence = max(m.fence, is.Fence) // of all keys: those with a hold begin no change meanwhile
	for _, key := range keys {
		delete(m.held, keyHash(key))
	}
	m.reopen(batch)
	var rest, freed []*wanted
	for _, w := range batch {
		if w.hold.Append && slices.Contains(keys, w.hold.Key) {
			freed = append(freed, w)
		} else {
			rest = append(rest, w)
		}
	}
	m.wanted = append(rest, m.wanted...)
	m.land()
	m.mu.Unlock()
	for _, w := range freed {
		w.freed()
	}
	if len(freed) == 0 {
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
