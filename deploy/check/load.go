package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	submitters  = 3
	submitEvery = 50 * time.Millisecond // of each
	taskTakes   = time.Second           // so that nodes stop amid attempts
)

// load submits tasks to whichever node takes them. The effect of each task is one request, which load counts itself.
type load struct {
	doors   []*door
	counter *http.Server
	address string // of counter

	mu      sync.Mutex
	effects map[string]int // by the id of a task
	taken   []string       // ids that a node has acknowledged
	refused []error        // one for each task that no node has taken
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

// count counts an effect at once, and answers later.
func (l *load) count(_ http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.effects[r.URL.Path[1:]]++
	l.mu.Unlock()
	select {
	case <-time.After(taskTakes):
	case <-r.Context().Done():
	}
}

// begin submits until the end that it returns is asked for, which waits until the last task is acknowledged: a submit
// whose answer was lost is repeated under its id.
func (l *load) begin(ctx context.Context) (end func()) {
	loading, stop := context.WithCancel(ctx)
	var submits sync.WaitGroup
	for i := range submitters {
		submits.Go(func() {
			for n := 0; loading.Err() == nil; n++ {
				l.submit(ctx, i+n, fmt.Sprintf("rolled-%d-%d", i, n))
				pause(loading)
			}
		})
	}
	return func() { stop(); submits.Wait() }
}

// submit asks one node after the other until one has taken the task: a node that stops cuts connections off. What no
// node has taken in time is noted.
func (l *load) submit(ctx context.Context, first int, id string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	params := fmt.Sprintf(`{"url":"http://%s/%s"}`, l.address, id)
	var refused error
	for n := first; ctx.Err() == nil; n++ {
		err := l.doors[n%len(l.doors)].submit(ctx, "http", id, params)
		if err == nil {
			l.mu.Lock()
			l.taken = append(l.taken, id)
			l.mu.Unlock()
			return
		}
		if ctx.Err() == nil || refused == nil {
			refused = err
		}
		pause(ctx)
	}
	l.mu.Lock()
	l.refused = append(l.refused, fmt.Errorf("no node has taken task %s: %w", id, refused))
	l.mu.Unlock()
}

func pause(ctx context.Context) {
	select {
	case <-time.After(submitEvery):
	case <-ctx.Done():
	}
}

// judge waits until every task that a node has acknowledged has ended, and holds the effects against them.
func (l *load) judge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, id := range l.taken {
		if err := l.doors[0].awaitSuccess(ctx, id); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(append(l.refused, compare(l.taken, l.effects))...)
}

// compare tells of tasks that were acknowledged and had no effect, or more than one, and of effects of other tasks.
func compare(taken []string, effects map[string]int) error {
	if len(taken) == 0 {
		return errors.New("the nodes have taken no task")
	}
	var wrong []error
	for _, id := range taken {
		if effects[id] == 0 {
			wrong = append(wrong, fmt.Errorf("task %s is lost: it is acknowledged and had no effect", id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(effects)) {
		if effects[id] > 1 {
			wrong = append(wrong, fmt.Errorf("task %s had its effect %d times", id, effects[id]))
		}
		if !slices.Contains(taken, id) {
			wrong = append(wrong, fmt.Errorf("task %s had an effect, and no node has acknowledged it", id))
		}
	}
	return errors.Join(wrong...)
}
