package store

import (
	"context"
)

// Message is a message that came over the bus.
type Message struct {
	Subject      string
	Reply        string // where an answer is awaited; "" = nowhere
	Data         []byte // owned by the receiver
	NoResponders bool   // it is no answer: nobody listens on the subject to which a message with this Reply was sent
}

// Bus carries hints and requests, at most once and unordered. Subjects are relative to the cluster. Messages on
// every subject but completed.> are authenticated with the cluster key: forged or garbled ones never reach a
// handler.
type Bus interface {
	// Publish sends without waiting and does not keep data. An error means that the message was not sent, nil proves
	// nothing.
	Publish(subject, reply string, data []byte) error
	// Subscribe calls h for every message on subject, one at a time, until ctx ends; of the subscribers that share
	// a queue name, one gets each message. It returns when the subscription is made. Without a connection it
	// returns as well; the subscription is then made as soon as there is a connection, before Notify reports that.
	Subscribe(ctx context.Context, subject, queue string, h func(Message)) error
	// Notify calls h with whether the bus is connected: at once, at each change, and again with true whenever
	// messages may have been missed. Calls are made one at a time, until ctx ends.
	Notify(ctx context.Context, h func(connected bool)) error
}

// Refusing is a Bus that knows what its servers do not permit. Messages that are not permitted are lost like any
// others, but for ever.
type Refusing interface {
	// Refused says what was last not permitted; "" = nothing.
	Refused() string
}
