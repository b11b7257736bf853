package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	submitters  = 3
	submitEvery = 50 * time.Millisecond // of each
)

// load submits tasks to whichever node takes them. The effect of each task is one request, which load counts itself.
type load struct {
	doors   []*door
	counter *http.Server
	address string // of counter

	mu      sync.Mutex
	effects map[string]int // by the path of a task
	taken   []string       // ids that a node has acknowledged
}

func newLoad(doors []*door) (*load, error) {
	l := &load{doors: doors, effects: map[string]int{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l.address = listener.Addr().String()
	l.counter = &http.Server{Handler: http.HandlerFunc(l.count), ReadHeaderTimeout: time.Minute}
	go l.counter.Serve(listener) // until close
	return l, nil
}

func (l *load) close() { l.counter.Close() }

func (l *load) count(_ http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects[r.URL.Path]++
}

// begin submits until the context ends, and closes done when the last answer is there.
func (l *load) begin(ctx context.Context) (done chan struct{}) {
	var submits sync.WaitGroup
	for i := range submitters {
		submits.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.submit(ctx, i+n, fmt.Sprintf("rolled-%d-%d", i, n))
				pause(ctx)
			}
		})
	}
	done = make(chan struct{})
	go func() { submits.Wait(); close(done) }()
	return done
}

// submit asks one node after the other until one has taken the task: a node that stops cuts connections off.
func (l *load) submit(ctx context.Context, first int, id string) {
	params := fmt.Sprintf(`{"url":"http://%s/%s"}`, l.address, id)
	for n := first; ctx.Err() == nil; n++ {
		if err := l.doors[n%len(l.doors)].submit(ctx, "http", id, params); err == nil {
			l.mu.Lock()
			l.taken = append(l.taken, id)
			l.mu.Unlock()
			return
		}
		pause(ctx)
	}
}

func pause(ctx context.Context) {
	select {
	case <-time.After(submitEvery):
	case <-ctx.Done():
	}
}

// judge waits until every task that a node has acknowledged has ended, and holds the effects against them.
func (l *load) judge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if len(l.taken) == 0 {
		return errors.New("the nodes have taken no task")
	}
	for _, id := range l.taken {
		if err := l.doors[0].awaitSuccess(ctx, id); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.taken {
		if l.effects["/"+id] == 0 {
			return fmt.Errorf("task %s is lost: it is SUCCESS and had no effect", id)
		}
	}
	for path, times := range l.effects { // also of tasks whose answer was lost
		if times != 1 {
			return fmt.Errorf("task %s had its effect %d times", path[1:], times)
		}
	}
	return nil
}
