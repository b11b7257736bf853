package history

import (
	"strconv"

	"taskledger/events"
)

// Visit tells that the function of a stream has done with a change, or that a message of one is acknowledged.
type Visit struct {
	Task  string          // that has the stream
	By    string          // the task of the attempt: Task, or that of a hold
	Token events.Position // names the attempt
	Place uint64          // of the change, or the message, in its feed
	Key   string          // "" = the message is acknowledged
	At    int64           // later than all that the attempt knew when it began to
}

// Feed tells what the source of a stream has.
type Feed struct {
	Task      string
	Pushed    bool       // there are messages, which may have several changes
	Keys      [][]string // of the changes at each place, from place 1 on
	Published []int64    // when each place was there
}

// Brook is the behavior of the streams of the traffic, whose changes have the tokens 1, 2, 3 and so on.
const Brook = "brook"

// brookKeys is the number of keys that the changes of brooks have.
const brookKeys = 5

// BrookKey returns the key of the change of a brook at a place.
func BrookKey(place uint64) string { return strconv.FormatUint(place*place%brookKeys, 10) }
