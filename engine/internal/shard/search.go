package shard

import (
	"context"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/signal"
)

const (
	// maxSearches bounds the searches in the journal that an owner makes at once, or retains the answers of.
	maxSearches = 8
	// retainFound bounds the time for which an answer waits for a caller that was told to ask again.
	retainFound = 10 * time.Second
	// askedAgain bounds the time within which such a caller asks again: a search that nobody asks for any longer
	// gives its place to another.
	askedAgain = 2 * readAgain
)

// searches holds the searches of an owner in its journal and archive. One may take longer than its callers can
// wait: they get the answer when they ask again.
type searches struct {
	host    Host
	stopped <-chan struct{} // closed when the owner is gone

	mu    sync.Mutex
	under map[any]*search // what is looked for -> the look
	slots chan struct{}   // taken by what is in under
}

type search struct {
	found     chan struct{} // closed when there is an answer
	collected signal.Signal // signalled when nobody is left who was told to ask again
	ended     bool
	answer    command.Answer
	owed      int       // were told to ask again, and have not yet
	here      int       // wait for the answer now
	left      time.Time // when the last of them went
	cancel    context.CancelFunc
}

func newSearches(host Host, stopped <-chan struct{}) *searches {
	return &searches{
		host:    host,
		stopped: stopped,
		under:   map[any]*search{},
		slots:   make(chan struct{}, maxSearches),
	}
}

// find looks for something, alone for all who do. When ctx ends before there is an answer it has to be asked again.
func (all *searches) find(ctx context.Context, key any, look func(context.Context) command.Answer) command.Answer {
	s := all.join(key)
	if s == nil {
		if len(all.slots) == maxSearches {
			all.displace()
		}
		select {
		case all.slots <- struct{}{}:
		case <-ctx.Done():
			return command.Answer{Code: command.AnswerTryAgain}
		}
		s = all.begin(key, look)
	}
	select {
	case <-s.found:
	case <-ctx.Done():
	}
	a := all.leave(s)
	if a.Code == command.AnswerTryAgain {
		return tryLater(ctx)
	}
	return a
}

// join finds a search that has begun.
func (all *searches) join(key any) *search {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.joinLocked(key)
}

func (all *searches) joinLocked(key any) *search {
	s := all.under[key]
	if s == nil {
		return nil
	}
	s.here++
	if s.owed > 0 {
		s.owed--
		s.tellLocked()
	}
	return s
}

// displace ends the search whose callers have been gone for longest, and for so long that they will not come back.
func (all *searches) displace() {
	all.mu.Lock()
	defer all.mu.Unlock()
	var gone any
	for key, s := range all.under {
		if s.here == 0 && time.Since(s.left) >= askedAgain && (gone == nil || s.left.Before(all.under[gone].left)) {
			gone = key
		}
	}
	if gone != nil {
		all.under[gone].cancel()
		delete(all.under, gone)
	}
}

// leave takes what was found until now.
func (all *searches) leave(s *search) command.Answer {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.here--
	s.left = time.Now()
	if !s.ended {
		s.owed++
		return command.Answer{Code: command.AnswerTryAgain}
	}
	return s.answer
}

func (all *searches) end(s *search, a command.Answer) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.ended, s.answer = true, a
	if a.Code == command.AnswerTryAgain {
		s.owed = 0
	}
	close(s.found)
	s.tellLocked()
}

func (s *search) tellLocked() {
	if s.ended && s.owed == 0 {
		s.collected.Notify()
	}
}

// begin begins a search in a slot that was taken for it, unless somebody has meanwhile. It ends with the owner.
func (all *searches) begin(key any, look func(context.Context) command.Answer) *search {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.joinLocked(key); s != nil {
		<-all.slots
		return s
	}
	s := &search{found: make(chan struct{}), collected: signal.New(), here: 1}
	var displaced context.Context
	displaced, s.cancel = context.WithCancel(context.Background())
	all.under[key] = s
	all.host.Spawn(func(session context.Context) {
		defer s.cancel()
		defer context.AfterFunc(session, s.cancel)()
		ctx, cancel := all.untilStopped(displaced)
		defer cancel()
		all.end(s, look(ctx))
		kept := time.NewTimer(retainFound)
		defer kept.Stop()
		select {
		case <-s.collected:
		case <-kept.C:
		case <-ctx.Done():
		}
		all.mu.Lock()
		if all.under[key] == s {
			delete(all.under, key)
		}
		all.mu.Unlock()
		<-all.slots
	})
	return s
}

// untilStopped returns a context that ends with the owner, too.
func (all *searches) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	all.host.Spawn(func(context.Context) {
		defer cancel()
		select {
		case <-all.stopped:
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}
