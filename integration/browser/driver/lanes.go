package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// job is a check that a lane runs.
type job struct {
	name string
	// of is the node that the check changes: no other check that does runs meanwhile.
	// nil = it changes nothing that others see.
	of  *node
	run func(*lane) error
}

// lanes counts the checks that run side by side: one for each of two processors, and one while others wait for a page.
const lanes = 3

// lane runs one check after the other, and keeps the windows that they share.
type lane struct {
	stage   *stage
	windows map[windowOf]*tab
}

// windowOf tells windows of a lane from each other.
type windowOf struct {
	node              *node
	scripts, stranger bool
}

// window returns the window of the lane for a node: with scripts or without, and with its user logged in unless a
// stranger is asked for.
func (l *lane) window(of windowOf) (*tab, error) {
	if t := l.windows[of]; t != nil {
		return t, nil
	}
	defer l.stage.spent.since("opening windows", time.Now())
	t, err := l.stage.tab(of.node.URL, of.scripts)
	if err != nil {
		return nil, err
	}
	if !of.stranger {
		if err := t.login(of.node.Token); err != nil {
			t.close()
			return nil, err
		}
	}
	l.windows[of] = t
	return t, nil
}

func (l *lane) close() {
	for _, t := range l.windows {
		t.close()
	}
}

// queue holds the checks that no lane has begun.
type queue struct {
	mu    sync.Mutex
	ended sync.Cond // a check has ended
	left  []job
	busy  map[*node]bool
}

// take returns the first check whose node nobody else changes, and waits for one; false = there are no more.
func (q *queue) take() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.left) > 0 {
		for i, j := range q.left {
			if j.of != nil && q.busy[j.of] {
				continue
			}
			q.left = append(q.left[:i:i], q.left[i+1:]...)
			q.busy[j.of] = j.of != nil
			return j, true
		}
		q.ended.Wait()
	}
	return job{}, false
}

func (q *queue) end(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy[j.of] = false
	q.ended.Broadcast()
}

// runAll runs checks side by side, says what each came to, and returns how many are red.
func (s *stage) runAll(ctx context.Context, all []job) (red int) {
	q := &queue{left: all, busy: map[*node]bool{}}
	q.ended.L = &q.mu
	reds := make([]int, lanes)
	var wg sync.WaitGroup
	for i := range lanes {
		wg.Go(func() {
			l := &lane{stage: s, windows: map[windowOf]*tab{}}
			defer l.close()
			for j, more := q.take(); more; j, more = q.take() {
				if ctx.Err() == nil && !l.runs(j) { // what is left then ends without a run
					reds[i]++
				}
				q.end(j)
			}
		})
	}
	wg.Wait()
	for _, n := range reds {
		red += n
	}
	return red
}

// runs runs a check, says what it came to, and reports whether it is green.
func (l *lane) runs(j job) bool {
	began := time.Now()
	err := j.run(l)
	took := time.Since(began).Seconds()
	if err != nil {
		fmt.Printf("red after %.1f s: %s: %s\n", took, j.name, err)
		return false
	}
	fmt.Printf("green after %.1f s: %s\n", took, j.name)
	return true
}
