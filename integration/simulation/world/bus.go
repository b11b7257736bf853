package world

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"taskledger/store"
)

// errNoBus reports a Publish without a connection.
var errNoBus = errors.New("bus is not connected")

// bus carries messages among its ports: at most once unless it duplicates, in no order, without any promise.
type bus struct {
	dice *dice

	mu            sync.Mutex
	subscriptions map[string][]*subscription // by first token, which no pattern leaves open
	unruly        unruly
	handlers      sync.WaitGroup
}

// unruly holds the shares, of 1, of the messages that the bus mistreats for a while.
type unruly struct{ lose, double, late float64 }

func newBus(d *dice) *bus { return &bus{dice: d, subscriptions: map[string][]*subscription{}} }

// misbehave sets how messages are treated from now on.
func (b *bus) misbehave(u unruly) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unruly = u
}

// port is one process' connection to the bus. It implements store.Bus.
type port struct {
	bus  *bus
	dead context.Context
	hits *tally

	mu     sync.Mutex
	down   int    // faults because of which there is no connection, and everybody knows
	silent int    // faults because of which nothing passes, and nobody knows
	sender string // of the client or node that has the port; "" until it subscribes to its answers

	telling   sync.Mutex // held while listeners are called
	listeners map[int]func(connected bool)
	nextID    int
}

// port makes a connection, which ends with dead.
func (b *bus) port(dead context.Context) *port {
	return &port{bus: b, dead: dead, hits: newTally(), listeners: map[int]func(bool){}}
}

// disconnect breaks the connection, or mends it, and tells.
func (p *port) disconnect(down bool) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	if down {
		p.down++
	} else {
		p.down--
	}
	p.mu.Unlock()
	p.tell()
}

// tell tells the listeners whether there is a connection. The caller holds telling.
func (p *port) tell() {
	p.mu.Lock()
	up := p.down == 0
	p.mu.Unlock()
	for _, tell := range p.listeners {
		tell(up)
	}
}

// hush lets no message pass, without a word; or lets them pass again and tells that some were missed.
func (p *port) hush(silent bool) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	if silent {
		p.silent++
	} else {
		p.silent--
	}
	missed := p.silent == 0 && p.down == 0
	p.mu.Unlock()
	if missed {
		p.tell()
	}
}

// gone reports whether the connection is broken and everybody knows, so that what comes here is missed.
func (p *port) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down > 0 {
		p.hits.add(muffled)
	}
	return p.down > 0
}

// passes reports whether a message gets through here.
func (p *port) passes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead.Err() != nil {
		return false
	}
	if p.silent > 0 || p.down > 0 {
		p.hits.add(muffled)
		return false
	}
	return true
}

// Publish implements store.Bus.
func (p *port) Publish(subject, reply string, data []byte) error {
	p.mu.Lock()
	down := p.down > 0 || p.dead.Err() != nil
	p.mu.Unlock()
	if down {
		p.hits.add(muffled)
		return errNoBus
	}
	if p.passes() {
		p.bus.carry(p, store.Message{Subject: subject, Reply: reply, Data: slices.Clone(data)})
	}
	return nil
}

// Subscribe implements store.Bus.
func (p *port) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	pattern := strings.Split(subject, ".")
	if len(pattern) == 5 && pattern[0] == "node" {
		p.mu.Lock()
		p.sender = pattern[1]
		p.mu.Unlock()
	}
	s := &subscription{port: p, ctx: ctx, pattern: pattern, queue: queue, handle: h}
	p.bus.mu.Lock()
	defer p.bus.mu.Unlock()
	p.bus.subscriptions[pattern[0]] = append(p.bus.subscriptions[pattern[0]], s)
	context.AfterFunc(ctx, func() {
		p.bus.mu.Lock()
		defer p.bus.mu.Unlock()
		same := p.bus.subscriptions[pattern[0]]
		at := slices.Index(same, s)
		p.bus.subscriptions[pattern[0]] = slices.Delete(same, at, at+1)
	})
	return nil
}

// Notify implements store.Bus.
func (p *port) Notify(ctx context.Context, h func(connected bool)) error {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.nextID++
	id := p.nextID
	p.listeners[id] = h
	context.AfterFunc(ctx, func() {
		p.telling.Lock()
		defer p.telling.Unlock()
		delete(p.listeners, id)
	})
	p.mu.Lock()
	up := p.down == 0
	p.mu.Unlock()
	h(up)
	return nil
}

// subscription is one handler.
type subscription struct {
	port    *port
	ctx     context.Context
	pattern []string
	queue   string
	mu      sync.Mutex // held while handle runs
	handle  func(store.Message)
}

func (s *subscription) matches(subject []string) bool {
	for i, token := range s.pattern {
		switch {
		case token == ">":
			return len(subject) > i
		case i >= len(subject) || token != "*" && token != subject[i]:
			return false
		}
	}
	return len(subject) == len(s.pattern)
}

// carry brings a message to everybody who listens, or the news to its sender that nobody does.
func (b *bus) carry(from *port, m store.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to := b.receivers(m.Subject)
	if len(to) == 0 && m.Reply != "" {
		for _, s := range b.receivers(m.Reply) {
			if s.port == from {
				b.bring(s, store.Message{Subject: m.Reply, NoResponders: true})
				return
			}
		}
	}
	for _, s := range to {
		b.bring(s, m)
		if b.dice.chance(b.unruly.double) {
			s.port.hits.add(doubled)
			b.bring(s, m)
		}
	}
}

// receivers returns who gets a message on the subject: of those that share a queue, one.
func (b *bus) receivers(subject string) (to []*subscription) {
	tokens := strings.Split(subject, ".")
	var queues map[string][]*subscription
	for _, s := range b.subscriptions[tokens[0]] {
		switch {
		case !s.matches(tokens):
		case s.port.gone(): // where it was connected nobody listens for it any more
		case s.queue == "":
			to = append(to, s)
		default:
			if queues == nil {
				queues = map[string][]*subscription{}
			}
			queues[s.queue] = append(queues[s.queue], s)
		}
	}
	for _, group := range queues {
		to = append(to, group[b.dice.n(len(group))])
	}
	return to
}

// bring hands a message to a handler after a moment.
func (b *bus) bring(s *subscription, m store.Message) {
	if b.dice.chance(b.unruly.lose) {
		s.port.hits.add(muffled)
		return
	}
	delay := b.dice.between(50*time.Microsecond, 2*time.Millisecond)
	if b.dice.chance(b.unruly.late) {
		s.port.hits.add(delayed)
		delay = b.dice.between(10*time.Millisecond, 3*time.Second)
	}
	b.handlers.Add(1)
	time.AfterFunc(delay, func() {
		defer b.handlers.Done()
		if s.ctx.Err() == nil && s.port.passes() {
			m.Data = slices.Clone(m.Data)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.handle(m)
		}
	})
}

// mail returns whose mail the port gets; "" when nobody subscribed to any.
func (p *port) mail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sender
}

// wait returns when no message is under way. Nobody may publish any more.
func (b *bus) wait() { b.handlers.Wait() }
