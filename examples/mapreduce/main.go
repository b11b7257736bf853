// Command mapreduce counts the words of a directory's files by a MapReduce over a task store: go run
// ./examples/mapreduce DIR.
//
// It starts a node of its own, unless -url names a store, and workers, which are processes. Pieces of files are tasks
// of the group map. A worker claims one, counts its words, and in one update deletes it and adds its counts, spread
// over partitions. Once no piece is left, each partition is a task of the group reduce: whoever claims it sums up the
// counts. A worker that dies leaves tasks that others claim when their time is over; one that is late finds its task
// gone, and what it has counted counts for nothing. So each word counts once.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.url, "url", "", "URL of a task store; without it a node is started")
	flag.StringVar(&o.token, "token", "", "its token; default: that in MAPREDUCE_TOKEN")
	flag.IntVar(&o.workers, "workers", 3, "worker processes, 0 to 1,000; with 0 and -url others work")
	flag.IntVar(&o.top, "top", 20, "words to print, the most frequent ones; 0 = all")
	flag.BoolVar(&o.work, "work", false, "be a worker of the store of -url")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mapreduce [flags] DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || o.work && o.url == "" || o.workers < 0 || o.workers > 1000 || o.workers == 0 && o.url == "" {
		flag.Usage()
		os.Exit(2)
	}
	o.dir, o.token = flag.Arg(0), cmp.Or(o.token, os.Getenv("MAPREDUCE_TOKEN")) // help would print the default of a flag
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mapreduce:", err)
		os.Exit(1)
	}
}

type options struct {
	url, token, dir string
	workers, top    int
	work            bool
}

func (o *options) run(ctx context.Context, out io.Writer) (err error) {
	if o.dir, err = filepath.EvalSymlinks(o.dir); err != nil { // no link is followed below it
		return err
	}
	if o.url == "" {
		n, err := startNode(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = n.stop() }() // what is left in the temporary directory hurts nobody
		o.url, o.token = n.url, n.token
	}
	s, err := newStore(o.url, o.token)
	if err != nil {
		return err
	}
	if o.work {
		return work(ctx, s, o.dir)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended, err := o.startWorkers(ctx, stop)
	if err != nil {
		return err
	}
	counts, err := mapReduce(ctx, s, o.dir)
	stop(nil)
	ended()
	if err != nil {
		return err
	}
	return show(out, counts, o.top)
}

// startWorkers starts workers, which end with ctx. One that fails ends all. One that is killed does not, unless it is
// the last one.
func (o *options) startWorkers(ctx context.Context, fail func(error)) (ended func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	done := make(chan struct{}, o.workers)
	var left atomic.Int64
	left.Store(int64(o.workers))
	for range o.workers {
		w := exec.CommandContext(ctx, program, "-work", "-url", o.url, o.dir)
		w.Env = append(os.Environ(), "MAPREDUCE_TOKEN="+o.token)
		w.Stderr = os.Stderr
		if err := w.Start(); err != nil {
			return nil, err
		}
		go func() {
			if exit, is := errors.AsType[*exec.ExitError](w.Wait()); is && exit.Exited() {
				fail(fmt.Errorf("a worker has failed: %w", exit))
			} else if left.Add(-1) == 0 {
				fail(errors.New("every worker was killed"))
			}
			done <- struct{}{}
		}()
	}
	return func() {
		for range o.workers {
			<-done
		}
	}, nil
}

const (
	piecesAtOnce = 500 // in an update
	lookAgain    = 200 * time.Millisecond
)

// mapReduce puts the pieces of the files and then the partitions into the store, and returns what the workers make of
// them. It leaves nothing in the store.
func mapReduce(ctx context.Context, s *store, dir string) (map[string]int, error) {
	if err := s.unused(ctx); err != nil {
		return nil, err
	}
	var u update
	flush := func() error {
		if len(u.Adds) == 0 {
			return nil
		}
		_, err := s.update(ctx, u)
		u = update{}
		return err
	}
	bytes := 0
	err := pieces(dir, func(p piece) error {
		data := p.String()
		u.Adds = append(u.Adds, task{Group: mapGroup, Data: &data})
		if bytes += len(data); len(u.Adds) < piecesAtOnce && bytes < 64<<10 {
			return nil
		}
		bytes = 0
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = s.drained(ctx, mapGroup)
	}
	if err != nil {
		return nil, err
	}
	for i := range partitions {
		data := strconv.Itoa(i)
		u.Adds = append(u.Adds, task{Group: reduceGroup, Data: &data})
	}
	if err := flush(); err != nil {
		return nil, err
	}
	if err := s.drained(ctx, reduceGroup); err != nil {
		return nil, err
	}
	results, err := s.list(ctx, resultGroup, 0)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, r := range results {
		if err := addTo(counts, *r.Data); err != nil {
			return nil, err
		}
		u.Deletes = append(u.Deletes, r.ID)
	}
	if len(u.Deletes) > 0 {
		if _, err := s.update(ctx, u); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// unused returns an error if the store has tasks of another run, which would be counted as well.
func (s *store) unused(ctx context.Context) error {
	groups, err := s.groups(ctx)
	for _, group := range groups {
		if group == mapGroup || group == reduceGroup || group == resultGroup || strings.HasPrefix(group, wordGroups) {
			return fmt.Errorf(
				"the store has tasks of another run, in group %q: delete them, or name a store that has none",
				group,
			)
		}
	}
	return err
}

// drained waits until a group has no task, claimed or not.
func (s *store) drained(ctx context.Context, group string) error {
	for {
		left, err := s.list(ctx, group, 1)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookAgain):
		}
	}
}

// show prints words, the most frequent first.
func show(out io.Writer, counts map[string]int, top int) error {
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	if top > 0 {
		words = words[:min(top, len(words))]
	}
	for _, word := range words {
		if _, err := fmt.Fprintf(out, "%7d %s\n", counts[word], word); err != nil {
			return err
		}
	}
	return nil
}
