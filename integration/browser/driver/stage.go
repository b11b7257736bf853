package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

// stage holds nodes and a browser for the checks.
type stage struct {
	dir      string
	patterns []string // of the routes of the dashboard that show something
	only     string
	browser  context.Context
	spent    spent

	mu   sync.Mutex
	ends []func()
}

// atEnd has something done by close.
func (s *stage) atEnd(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, end)
}

// chosen reports whether a name has one of the texts that were asked for, which commas part.
func (s *stage) chosen(name string) bool {
	for text := range strings.SplitSeq(s.only, ",") {
		if strings.Contains(name, text) {
			return true
		}
	}
	return false
}

// close ends browser and nodes, the last that was begun first.
func (s *stage) close() {
	for len(s.ends) > 0 {
		last := len(s.ends) - 1
		s.ends[last]()
		s.ends = s.ends[:last]
	}
}

// start starts the browser.
func (s *stage) start(ctx context.Context) error {
	browser, end, err := openBrowser(ctx, filepath.Join(s.dir, "profile"))
	if err != nil {
		return err
	}
	s.browser = browser
	s.atEnd(end)
	return nil
}

// serve starts a node, which ends with the stage.
func (s *stage) serve(ctx context.Context, name string, flags ...string) (*node, error) {
	n, err := serve(ctx, filepath.Join(s.dir, "taskledger"), filepath.Join(s.dir, name), append([]string{"--name", name}, flags...)...)
	if err != nil {
		return nil, err
	}
	s.atEnd(n.kill)
	return n, nil
}

// scene is a node with some data, and the pages that show them.
type scene struct {
	name  string
	node  *node
	pages []shown
	works []string // ids of its tasks that have a work
}

// shown is a page of a scene.
type shown struct {
	name, path string
	stranger   bool   // nobody has logged in
	fill       string // a script that fills a form of the page
	press      string // the button that sends the form, for a page that is shown for a form alone
	status     int64  // of the page, 0 = 200
}

// noted returns what a browser notes about a page that is refused; nil for others.
func (p shown) noted() []string {
	if p.status == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d (%s)", p.status, http.StatusText(int(p.status)))}
}

// visit opens the page of a scene, and sends its form.
func (t *tab) visit(p shown) error {
	defer t.spent.since("opening pages", time.Now())
	status, err := t.load(chromedp.Navigate(t.home + p.path))
	if err == nil && p.press != "" {
		if err = t.eval(p.fill+"; true", nil); err == nil {
			status, err = t.load(chromedp.Click(chromedp.CSS(p.press), chromedp.NodeVisible))
		}
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", p.path, err)
	}
	if want := cmp.Or(p.status, http.StatusOK); status != want && status != http.StatusNotModified {
		return fmt.Errorf("open %s: status %d, want %d", p.path, status, want)
	}
	return nil
}

// samples holds the addresses of pages of one thing, by the pattern of their route.
type samples map[string][]string

// noPages lists what the dashboard serves that a window does not show.
var noPages = map[string]string{
	"/ui/static/{hash}/{file}":  "files of pages",
	"/ui/tasks.jsonl":           "a download",
	"/ui/tasks/{id}/export":     "a download",
	"/ui/checkpoint.txt":        "a download",
	"/ui/shards/{shard}/export": "a download",
}

// queries holds those that a page cannot be opened without.
var queries = map[string]string{
	"/ui/matching": "?operation=cancel&behavior=noop&reason=why",
}

// scene returns the pages of a node: each one that needs no more than its route, those of samples, and others.
func (s *stage) scene(name string, n *node, of samples, others ...shown) *scene {
	all := &scene{name: name, node: n}
	for _, pattern := range s.patterns {
		path := strings.TrimSuffix(pattern, "{$}")
		if noPages[pattern] == "" && !strings.Contains(path, "{") {
			all.pages = append(all.pages, shown{name: nameOf(path), path: path + queries[path]})
		}
		for i, sample := range of[pattern] {
			all.pages = append(all.pages, shown{name: fmt.Sprintf("%s-%d", nameOf(path), i+1), path: sample, status: statusOf(sample)})
		}
	}
	all.pages = append(all.pages, others...)
	return all
}

// statusOf returns the status of a sample, 0 = 200.
func statusOf(path string) int64 {
	if strings.Contains(path, "seq=wrong") {
		return http.StatusBadRequest
	}
	return 0
}

// nameOf makes the name of a page from its path.
func nameOf(path string) string {
	name := strings.NewReplacer("/ui/", "", "{", "", "}", "", "/", "-").Replace(path)
	if name == "" {
		return "overview"
	}
	return name
}

// unseen returns the patterns of pages that no scene shows.
func (s *stage) unseen(all ...samples) (patterns []string) {
	for _, pattern := range s.patterns {
		seen := noPages[pattern] != "" || !strings.Contains(strings.TrimSuffix(pattern, "{$}"), "{")
		for _, of := range all {
			seen = seen || len(of[pattern]) > 0
		}
		if !seen {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// scenes starts, side by side, a node without data, one with usual data, one with hostile data, and a mirror.
func (s *stage) scenes(ctx context.Context) (all []*scene, err error) {
	began := time.Now()
	makers := []func(context.Context) (*scene, samples, error){
		func(ctx context.Context) (*scene, samples, error) { return s.filled(ctx, "empty", fillNothing) },
		func(ctx context.Context) (*scene, samples, error) { return s.filled(ctx, "usual", fillUsual) },
		func(ctx context.Context) (*scene, samples, error) { return s.filled(ctx, "hostile", fillHostile) },
		s.mirrored,
	}
	all = make([]*scene, len(makers))
	found, failed := make([]samples, len(makers)), make([]error, len(makers))
	var wg sync.WaitGroup
	for i, make := range makers {
		wg.Go(func() { all[i], found[i], failed[i] = make(ctx) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	if missing := s.unseen(found...); len(missing) > 0 {
		return nil, fmt.Errorf("no data show the pages %s: name a sample in data.go", strings.Join(missing, ", "))
	}
	fmt.Printf("the nodes run and have their data after %.1f s\n", time.Since(began).Seconds())
	return all, nil
}

// filled starts a node and fills it with data.
func (s *stage) filled(
	ctx context.Context, name string, fill func(context.Context, *node) (samples, []shown, error),
) (*scene, samples, error) {
	n, err := s.serve(ctx, name, inFiles...)
	if err != nil {
		return nil, nil, err
	}
	made, others, err := fill(ctx, n)
	if err != nil {
		return nil, nil, fmt.Errorf("make %s data: %w", name, err)
	}
	others = append(others,
		shown{name: "tasks-all-columns", path: "/ui/tasks?status=FAILURE&column=" + strings.Join(columns, "&column=")},
		shown{name: "tasks-wrong-filter", path: "/ui/tasks?status=FAILURE&created-from=yesterday"})
	return s.scene(name, n, made, others...), made, nil
}

// inFiles are the flags of a node that is alone.
var inFiles = []string{"--store", "files", "--exec-allow", "sh", "--exec-allow", "printf"}

// columns lists those of the page of tasks.
var columns = []string{
	"behavior", "status", "substatus", "since", "priority", "attempt", "failures", "progress", "creator", "created",
	"starts", "started", "ended", "node", "error",
}
