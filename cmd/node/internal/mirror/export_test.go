package mirror

import (
	"context"
	"io"

	"taskledger/events"
	"taskledger/work/progress"
)

// SilentFor is the time after which a process that has joined gives up.
const SilentFor = silentFor

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
