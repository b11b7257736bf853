package listing

import "taskledger/projection"

// Part holds what the owner of a shard tells of a list from a place on.
type Part struct {
	Tasks  []projection.Task // that match, newest first
	Next   Place             // where it goes on; where it began when nothing was looked at
	Done   bool              // there is nothing to go on with
	Looked int               // as in Found
	Head   uint64            // as in Found
}
