package builtin

import (
	"context"
	"fmt"
	"io"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
)

// silence is the time within which a server must bring the header of an answer, and any byte of its body after that.
const silence = httpTimeout

// listener ends a request whose server is silent. Time that its caller spends between two reads does not count.
type listener struct {
	host  string // of the URL, without its other parts, which may be secrets
	after func(d time.Duration, f func()) (stop func() bool)
	ctx   context.Context // of the request
	end   context.CancelCauseFunc
}

// listen returns a listener to a host. Whoever has read its answer calls end.
func (g *Getter) listen(ctx context.Context, host string) *listener {
	l := &listener{host: host, after: g.after}
	l.ctx, l.end = context.WithCancelCause(ctx)
	return l
}

// during ends the request if do has not returned in time, and makes the failure of the request of its error.
func (l *listener) during(what string, do func() error) error {
	stop := l.after(silence, func() {
		err := fmt.Errorf("%s: no %s came for %s", l.host, what, silence)
		l.end(behaviors.Code(events.CodeTimeout, err, nil))
	})
	defer stop()
	err := do()
	if err != nil && err != io.EOF {
		return endedOr(l.ctx, err)
	}
	return err
}

// heard is the body of an answer that is listened to.
type heard struct {
	io.ReadCloser
	by *listener
}

// Read implements io.Reader.
func (b heard) Read(p []byte) (n int, err error) {
	err = b.by.during("byte of the answer", func() (err error) {
		n, err = b.ReadCloser.Read(p)
		return err
	})
	return n, err
}

// Close implements io.Closer.
func (b heard) Close() error {
	b.by.end(nil)
	return b.ReadCloser.Close()
}
