package api

import "time"

// Class sets how long a request may take.
type Class uint8

// The classes.
const (
	Short  Class = iota // the node answers within 10 s
	Poll                // it waits as long as the request asks for, 60 s at most, besides
	Stream              // it writes for as long as there is something; each write has 30 s
	Pages               // it asks for page after page, each within 10 s; beyond one it is a stream
)

const (
	answerWithin = 10 * time.Second
	writeWithin  = 30 * time.Second
	// lastWriteWithin bounds the write of what a stream holds already, once the server drains.
	lastWriteWithin = time.Second
	// A reader must take each piece of a large answer within progressWithin.
	progressWithin = 5 * time.Second
	// MaxWait is the longest that a request may wait for an outcome.
	MaxWait = 60 * time.Second
)
