package store

import (
	"context"
)

// Message is what came over the bus.
type Message struct {
	Subject      string
	Reply        string // where an answer is awaited; "" = nowhere
	Data         []byte // owned by the receiver
	NoResponders bool   // nobody listens on the subject that a message with this Reply was sent to
}

// Bus carries hints and requests, at most once and unordered; natsbus implements it. Subjects are relative to the
// cluster. Messages on every subject but completed.> are authenticated with the cluster key: forged or garbled ones
// never reach a handler. Methods may be called concurrently.
type Bus interface {
	// Publish sends without waiting and does not keep data. An error means that the message was not sent, nil proves
	// nothing.
	Publish(subject, reply string, data []byte) error
	// Subscribe calls h for every message on subject, one at a time, until ctx ends; of the subscribers that share a
	// queue name, one gets each message. It returns when the subscription is made; it does not wait for
	// a connection: without one it is made as soon as there is one, and Notify tells true after that.
	Subscribe(ctx context.Context, subject, queue string, h func(Message)) error
	// Notify calls h with whether the bus is connected: at once, at each change, and with true again whenever messages
	// may have been missed. Calls are made one at a time, until ctx ends.
	Notify(ctx context.Context, h func(connected bool)) error
}
