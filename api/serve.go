package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/api/doors"
)

const (
	headerWithin = 5 * time.Second
	idleWithin   = 60 * time.Second
	// maxHeader bounds the first line and the headers together; net/http takes 4 KiB more than it is told.
	maxHeader = 16<<10 - 4<<10
	// closeWithin bounds requests under way: their bodies, their answers, and a second.
	closeWithin = 2*answerWithin + time.Second
)

// Drain ends requests that wait or stream, and later ones, too, and lets no connection stay for another request. New
// requests are answered on, until the context of Serve ends.
func (a *API) Drain() { a.drain() }

// Serve answers the requests of the listeners until ctx ends, and closes them. Requests that wait or stream end first,
// then the others, and then connections. Whoever makes the listeners bounds their connections, by a doors.Budget below
// TLS.
func (a *API) Serve(ctx context.Context, listeners ...net.Listener) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	waiting, drain := context.WithCancel(serving)
	defer drain()
	base := context.WithValue(context.WithoutCancel(ctx), drainKey{}, waiting)
	s := &http.Server{
		Handler:                      a,
		ReadHeaderTimeout:            headerWithin,
		IdleTimeout:                  idleWithin,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is answered as all others are
		ErrorLog:                     slog.NewLogLogger(a.shared.log.Handler(), slog.LevelDebug),
		BaseContext: func(l net.Listener) context.Context {
			if b, ok := l.(below); ok {
				return context.WithValue(base, belowKey{}, b.path)
			}
			return base
		},
		ConnContext: doors.Context,
	}
	unasked := unasked{conns: map[net.Conn]bool{}}
	s.ConnState = unasked.note
	defer context.AfterFunc(a.drains, func() {
		drain()
		s.SetKeepAlivesEnabled(false)
	})()
	var g errgroup.Group
	for _, l := range listeners {
		g.Go(func() error {
			defer stop()
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	<-serving.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	unasked.close()
	if err := s.Shutdown(closing); err != nil {
		_ = s.Close() // what has not ended by then is cut off
	}
	return g.Wait()
}

// unasked holds the connections on which no byte of a request has come yet. Shutdown of net/http would wait 5 s for
// them.
type unasked struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
}

// note implements http.Server.ConnState.
func (u *unasked) note(c net.Conn, is http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is != http.StateNew {
		delete(u.conns, c)
		return
	}
	if u.conns[c] = true; u.ended {
		_ = c.Close() // it came while the listeners were being closed
	}
}

// close closes the connections, and later ones as they come.
func (u *unasked) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for c := range u.conns {
		_ = c.Close() // nothing was asked, so nothing is lost
	}
}
