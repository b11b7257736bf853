package trees

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/task"
	"taskledger/work"
)

// FollowID is the id of the work that follows the source, and of its behavior.
const FollowID = "mirror-follow"

const (
	// scanEvery is the least time between the beginnings of two scans.
	scanEvery = time.Second
	// scanShare is the least number of times that a scan takes between its end and the next one.
	scanShare = 3
	// maxScans bounds the scans whose changes are not all in the target and that are told apart.
	maxScans = 1_000
	// maxBackoff bounds the back-off of attempts that cannot scan.
	maxBackoff = 10 * time.Second
	// maxLost bounds the losses of a run, which has no end, and lostDelay is the first step of the wait after one.
	maxLost   = 1_000
	lostDelay = 10 * time.Millisecond
)

// CanFollow returns a *store.InvalidError if the system does not tell when entries of the source were changed.
func (p *Pair) CanFollow() error {
	info, err := p.source.Lstat(".")
	if err != nil {
		return err
	}
	if _, known := changedAt(info); !known {
		return refuse("follow", "this system does not tell when files were changed")
	}
	return nil
}

// FollowParams are the parameters of the work that follows the source.
type FollowParams struct {
	Params
	// Since is the time before which everything of the source is in the target.
	Since time.Time `json:"since"`
}

// Change is an entry of either tree that may not be equal to that of the other one.
type Change struct {
	Path  string `json:"path"` // relative to the tree, with slashes
	Scan  uint64 `json:"scan"` // the number of the scan that has found it
	Again bool   `json:"again,omitempty"`
}

// Follow defines the work that keeps the target equal to the source from a time on, as a stream. Its only run goes on
// until it is cancelled: it scans the source about once a second for what has changed behind the last scan, by the
// times at which entries were changed, and lists directories that were for what has vanished. Whatever a change is, the
// entry of the target is made equal to that of the source as they are then, so that a change may come twice.
//
// The token tells a time up to which all changes are in the target. A scan tells changes until they are older than lag,
// and its tokens have the time of the scan before it: only when all that it told is settled the stream goes on behind
// it. What could not be mirrored is therefore tried again every tryAgain in this attempt, and when another one begins.
// A directory that a scan could not read, in either tree, is tried again by each, until one tells all that is in it.
// A directory that was not empty is tried again after lag, and then after twice the last wait, up to tryAgain.
func (p *Pair) Follow(l Limits) *work.Work[FollowParams, work.Change[Change]] {
	began := time.Now()
	return p.follow(l, &follower{
		pair:  p,
		lag:   lag,
		every: scanEvery,
		clock: func() moment {
			now := time.Now()
			return moment{wall: now.Round(0), passed: now.Sub(began)}
		},
	})
}

func (p *Pair) follow(l Limits, f *follower) *work.Work[FollowParams, work.Change[Change]] {
	l = l.complete()
	deletes := int64(math.MaxInt64)
	if l.MaxDeletes != nil {
		deletes = *l.MaxDeletes
	}
	options := &work.Options{Policy: task.Policy{
		MaxLost:   maxLost,
		LostDelay: lostDelay,
		Backoff:   task.Backoff{Max: maxBackoff},
		Existing:  task.RunAgain,
	}}
	return work.DefineStream(FollowID, options, work.Stream[FollowParams, Change]{
		ID:      "follow",
		Threads: l.Threads,
		Changes: f.changes,
		Process: f.process,
		Rules: []work.Rule{{
			Code:    CodeChanged,
			React:   work.Retry,
			Times:   3,
			Backoff: 100 * time.Millisecond,
		}, {
			Code:  CodeChanged, // so it comes again
			React: work.Ignore,
		}, {
			React:   work.Retry,
			Times:   3,
			Backoff: 200 * time.Millisecond,
		}, {
			React: work.GoOn,
		}},
		Thresholds: []work.Threshold{{
			Counter: CounterCopies,
			Limit:   math.MaxInt64,
		}, {
			Counter: CounterDeletes,
			Limit:   deletes,
		}},
	})
}

// follower follows a source in this process.
type follower struct {
	pair  *Pair
	lag   time.Duration // as lag
	every time.Duration // as scanEvery
	clock func() moment
	open  unsettled
}

// moment is a time by the clock, which may be set, and a time that has passed, whatever becomes of the clock.
type moment struct {
	wall   time.Time
	passed time.Duration
}

// setBack returns how far the clock was set back since an earlier moment; 0 = it was not.
func (m moment) setBack(since moment) time.Duration {
	return max(0, m.passed-since.passed-m.wall.Sub(since.wall))
}

// process carries out a change.
func (f *follower) process(ctx context.Context, c work.Change[Change]) error {
	skipped, err := f.pair.equalize(ctx, c.Value.Path)
	switch {
	case err != nil:
		wait := f.open.longest()
		if errors.Is(err, errNotEmpty) {
			wait = f.lag
		}
		f.open.fail(c.Value.Path, c.Value.Scan, time.Now(), wait)
		if errors.Is(err, errNotEmpty) {
			return work.Skip(err.Error())
		}
		if c.Value.Again && ctx.Err() == nil {
			return work.Skip("it failed again: " + err.Error())
		}
		return err
	default:
		f.open.settle(c.Value.Path, c.Value.Scan)
	}
	if skipped != "" {
		return work.Skip(skipped)
	}
	return nil
}

// changes yields what has changed behind a token, until ctx ends.
func (f *follower) changes(ctx context.Context, params FollowParams, from string) iter.Seq2[work.Change[Change], error] {
	return func(yield func(work.Change[Change], error) bool) {
		at := token{at: params.Since.Add(-f.lag)}
		if from != "" {
			var err error
			if at, err = parseToken(from); err != nil {
				yield(work.Change[Change]{}, err)
				return
			}
		}
		f.open.begin()
		a := attempt{
			follower: f,
			last:     f.clock(),
			token:    at,
			scanner:  f.scanner(at),
			yield:    yield,
		}
		if err := a.run(ctx, params.Params); err != nil {
			yield(work.Change[Change]{}, err)
		}
	}
}

// scanner returns a scanner that tells everything that has changed behind a token.
func (f *follower) scanner(at token) scanner {
	since := at.at
	if since.After(f.clock().wall) { // the clock was set back: nothing tells what has changed since
		since = time.Time{}
	}
	return scanner{
		pair: f.pair,
		from: since,
		see:  func(path string) { f.open.see(blindKey(path)) },
	}
}

// attempt is an attempt that follows the source.
type attempt struct {
	*follower
	last    moment // when the last scan began
	token   token  // the last one that was yielded
	scanner scanner
	scans   []scanEnd // those that have told changes, and the first, of which no token has told that all are settled
	told    bool      // scans has had one
	yield   func(work.Change[Change], error) bool
	stopped bool // yield wants no more
}

// scanEnd tells up to which time a scan has told all changes.
type scanEnd struct {
	scan  uint64
	limit time.Time
}

// run scans until ctx ends, or nobody wants more.
func (a *attempt) run(ctx context.Context, params Params) error {
	if err := a.pair.check(params); err != nil {
		return err
	}
	scan := a.open.next()
	err := a.scanner.remains(ctx, func(t told) bool { return a.tell(t, scan, false) })
	for err == nil && !a.stopped {
		began := time.Now()
		if err = a.scan(ctx, a.clock()); err == nil && !a.stopped {
			err = pause(ctx, max(a.every-time.Since(began), scanShare*time.Since(began)))
		}
	}
	if a.stopped {
		return nil
	}
	return err
}

// setBack moves the times up to which changes were told back as far as the clock was set back since the last scan:
// changes that were made since then have earlier times than they would have had.
func (a *attempt) setBack(now moment) {
	back := now.setBack(a.last)
	a.last = now
	if !a.scanner.from.IsZero() {
		a.scanner.from = a.scanner.from.Add(-back)
	}
	a.token.at = a.token.at.Add(-back)
	for i := range a.scans {
		a.scans[i].limit = a.scans[i].limit.Add(-back)
	}
}

// scan tells what has changed, and moves the token on behind what is settled.
func (a *attempt) scan(ctx context.Context, now moment) error {
	a.setBack(now)
	if a.open.again() { // else the token would stand for as long as the attempt goes on
		for at := range a.scanner.blind { // the next scan tells again where it cannot look
			a.open.settle(blindKey(at), math.MaxUint64)
		}
		a.scanner, a.scans = a.follower.scanner(a.token), nil
	}
	scan := a.open.next()
	limit := now.wall.Add(-a.lag)
	tells := false
	for _, at := range a.open.due(time.Now()) {
		if !a.scanner.again(at, func(t told) bool { return a.tell(t, scan, true) }) {
			return nil
		}
	}
	ended, err := a.scanner.scan(ctx, limit, func(t told) bool {
		tells = true
		return a.tell(t, scan, false)
	})
	if err != nil || !ended {
		return err
	}
	if (tells || !a.told) && len(a.scans) < maxScans { // the first one shows that the attempt gets on
		a.scans, a.told = append(a.scans, scanEnd{scan, limit}), true
	}
	return a.move()
}

// move yields the time up to which all is settled, if it is a later one than that of the token.
func (a *attempt) move() error {
	settled, moves := a.open.settled(), false
	for len(a.scans) > 0 && a.scans[0].scan <= settled {
		a.token.at, moves = a.scans[0].limit, true
		a.scans = a.scans[1:]
	}
	if moves {
		a.token.number++
		a.stopped = !a.yield(work.Change[Change]{Token: a.token.String(), Position: true}, nil)
	}
	return nil
}

// tell yields a change, and reports whether to go on.
func (a *attempt) tell(t told, scan uint64, again bool) bool {
	if t.blind {
		a.open.add(blindKey(t.path), scan)
	} else {
		a.open.add(t.path, scan)
	}
	if t.err != nil && !t.blind { // nobody carries it out
		a.open.fail(t.path, scan, time.Now(), a.open.longest())
	}
	a.token.number++
	a.stopped = a.stopped || !a.yield(work.Change[Change]{
		Key:   keyOf(t.key),
		Token: a.token.String(),
		Value: Change{Path: t.path, Scan: scan, Again: again},
	}, t.err)
	return !a.stopped
}

// blindKey returns the name by which a path is unsettled as one at which no scan can look. What is told of the path
// otherwise may be settled meanwhile.
func blindKey(at string) string { return at + "/" }

// keyOf returns the key of a path: the path itself as far as it is UTF-8, or its hash where it is too long.
func keyOf(at string) string {
	at = strings.ToValidUTF8(at, string(utf8.RuneError))
	if len(at) <= work.MaxKeyBytes {
		return at
	}
	sum := sha256.Sum256([]byte(at))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// pause waits, until ctx ends.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
