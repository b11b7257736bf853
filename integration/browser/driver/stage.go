package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// stage holds nodes and a browser for the checks.
type stage struct {
	dir      string
	patterns []string // of the routes of the dashboard that show something
	only     string
	browser  context.Context
	ends     []func()
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
	s.ends = append(s.ends, end)
	return nil
}

// serve starts a node, which ends with the stage.
func (s *stage) serve(ctx context.Context, name string, flags ...string) (*node, error) {
	n, err := serve(ctx, filepath.Join(s.dir, "taskledger"), filepath.Join(s.dir, name), append([]string{"--name", name}, flags...)...)
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, n.kill)
	return n, nil
}

// scene is a node with some data, and the pages that show them.
type scene struct {
	name  string
	node  *node
	pages []shown
}

// shown is a page of a scene.
type shown struct {
	name, path string
}

// refused returns what a browser notes about a page that is refused; nil for others.
func (p shown) refused() []string {
	switch {
	case strings.HasPrefix(p.name, "no-such"):
		return []string{"404 (Not Found)"}
	case strings.Contains(p.path, "seq=wrong"):
		return []string{"400 (Bad Request)"}
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
			all.pages = append(all.pages, shown{nameOf(path), path + queries[path]})
		}
		for i, sample := range of[pattern] {
			all.pages = append(all.pages, shown{fmt.Sprintf("%s-%d", nameOf(path), i+1), sample})
		}
	}
	all.pages = append(all.pages, others...)
	return all
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

// scenes starts a node without data, one with usual data, one with hostile data, and a mirror.
func (s *stage) scenes(ctx context.Context) (all []*scene, err error) {
	began := time.Now()
	var found []samples
	for _, of := range []struct {
		name string
		fill func(context.Context, *stage, *node) (samples, error)
	}{
		{"empty", func(context.Context, *stage, *node) (samples, error) { return nil, nil }},
		{"usual", fillUsual},
		{"hostile", fillHostile},
	} {
		n, err := s.serve(ctx, of.name, inFiles...)
		if err != nil {
			return nil, err
		}
		made, err := of.fill(ctx, s, n)
		if err != nil {
			return nil, fmt.Errorf("make %s data: %w", of.name, err)
		}
		found = append(found, made)
		others := []shown{
			{"tasks-all-columns", "/ui/tasks?status=FAILURE&column=" + strings.Join(columns, "&column=")},
			{"tasks-wrong-filter", "/ui/tasks?status=FAILURE&created-from=yesterday"},
		}
		if of.name == "empty" {
			others = append(others, shown{"no-such-page", "/ui/none"}, shown{"no-such-task", "/ui/tasks/none"},
				shown{"login-by-link-that-is-spent", "/ui/login?link=spent"})
		}
		all = append(all, s.scene(of.name, n, made, others...))
	}
	work, err := s.mirrored(ctx)
	if err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	all = append(all, work)
	found = append(found, samples{"/ui/work/{id}": {work.pages[0].path}})
	if missing := s.unseen(found...); len(missing) > 0 {
		return nil, fmt.Errorf("no data show the pages %s: name a sample in data.go", strings.Join(missing, ", "))
	}
	fmt.Printf("the nodes run and have their data after %.1f s\n", time.Since(began).Seconds())
	return all, nil
}

// inFiles are the flags of a node that is alone.
var inFiles = []string{"--store", "files", "--exec-allow", "sh", "--exec-allow", "printf"}

// columns lists those of the page of tasks.
var columns = []string{
	"behavior", "status", "substatus", "since", "priority", "attempt", "failures", "progress", "creator", "created",
	"starts", "started", "ended", "node", "error",
}
