package mirror

import (
	"context"
	"io"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/events"
	"taskledger/work/progress"
)

// SilentFor is the time after which a process that has joined gives up.
const SilentFor = silentFor

// CountsOf returns the end of a mirror whose only item failed.
func CountsOf(id events.TaskID, failures []progress.ItemError, outcome error) Counts {
	return counts(id, trees.Sums{Failed: int64(len(failures))}, failures, outcome)
}

// EndOf returns the lines and the object with which the mirror of a work ends.
func EndOf(of *progress.Work) (string, Counts) {
	s := sum(of)
	return words(s), counts(of.Task, s, nil, nil)
}

// Follow follows a work that ask tells of.
func Follow(
	ctx context.Context, id events.TaskID, joined bool, out io.Writer, ask func(context.Context) (progress.Work, error),
) error {
	f := follower{
		task:   id,
		ask:    ask,
		out:    out,
		joined: joined,
	}
	return f.follow(ctx)
}
