package trees

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"
)

const (
	// lag is the time for which a change is looked at again: times tick in milliseconds, clocks of file servers go apart,
	// and a file may be changed once more while it is copied.
	lag = 2 * time.Second
	// maxKnown bounds each of the maps of a scanner. What is beyond them is told more often than needed.
	// The paths at which the scanner could not look are not bounded: to forget one would lose a change.
	maxKnown = 100_000
)

// told is an entry of either tree that may not be equal to that of the other one. Entries with the same key have to be
// carried out one after the other.
type told struct {
	key  string
	path string
	err  error // why it could not be looked at
	// blind tells that the scanner remembers the path, and looks there again in each scan until it can: it calls see then.
	blind bool
}

// scanner finds what has changed in the source since a time. It holds no more than the listings of the directories
// above the place where it is, and its maps.
type scanner struct {
	pair  *Pair
	from  time.Time              // what was changed by then was told by an earlier scan
	fresh map[string]time.Time   // when those were changed that the last scan told within lag of it
	known map[string]fs.FileInfo // directories that the last scan has seen
	blind map[string]bool        // paths at which the last scan could not look in a tree, and whether that was told
	see   func(path string)      // is called with one at which a scan could look again, or that is gone; nil = nobody is
	now   scanned                // what the scan under way has found for the next one
	limit time.Time              // changes up to it are told for good
	yield func(told) (more bool)
}

// scanned holds what a scan finds for the next one.
type scanned struct {
	fresh map[string]time.Time
	known map[string]fs.FileInfo
	blind map[string]bool
}

// scan tells all changes behind s.from, and reports whether it has come to its end. Changes up to limit are told for
// good, and what is later is told again by a scan with a later limit.
func (s *scanner) scan(ctx context.Context, limit time.Time, yield func(told) (more bool)) (ended bool, err error) {
	if err := s.pair.check(s.pair.params); err != nil {
		return false, err
	}
	root, err := s.pair.source.Lstat(".")
	if err != nil {
		return false, err
	}
	if limit.Before(s.from) { // somebody has set the token to a time that is hardly over
		s.from = limit
	}
	s.limit = limit
	s.now = scanned{
		fresh: map[string]time.Time{},
		known: map[string]fs.FileInfo{},
		blind: map[string]bool{},
	}
	s.yield = func(t told) bool {
		if err == nil {
			err = context.Cause(ctx)
		}
		return err == nil && yield(t)
	}
	if !s.directory(directory{path: ".", info: root}) || err != nil {
		return false, err
	}
	for at, told := range s.blind {
		switch {
		case s.unseen(at):
			s.now.blind[at] = told || s.now.blind[at]
		case s.see != nil:
			s.see(at)
		}
	}
	s.from, s.fresh, s.known, s.blind = limit, s.now.fresh, s.now.known, s.now.blind
	return true, nil
}

// unseen reports whether the scan under way could not look at a path, or at a directory above it.
func (s *scanner) unseen(at string) bool {
	for {
		if _, is := s.now.blind[at]; is || at == "." {
			return is
		}
		at = path.Dir(at)
	}
}

// changed reports whether the last change of an entry is to be told.
func (s *scanner) changed(at string, info fs.FileInfo) bool {
	when, known := changedAt(info)
	switch {
	case !known:
		return true
	case !when.After(s.from):
		return false
	case !when.After(s.limit):
		return true
	}
	if len(s.now.fresh) < maxKnown {
		s.now.fresh[at] = when
	}
	return !s.fresh[at].Equal(when)
}

// directory is a directory of the source that is scanned.
type directory struct {
	path string
	info fs.FileInfo
	// deep tells that everything below it has to be told, whatever its times are.
	deep bool
	// above tells that the directory above it was changed, so that it may have come from another place.
	above bool
	// absent tells that the target has no directory there, so that nothing of it can have vanished.
	absent bool
	// hidden tells that a directory above it cannot be read in the target. Once it can, the scan that does so is deep.
	hidden bool
}

// directory tells what has changed in a directory, below it, and of itself, and reports whether to go on.
func (s *scanner) directory(d directory) bool {
	changed := s.changed(d.path, d.info)
	wasTold, wasBlind := s.blind[d.path]
	d.deep = d.deep || changed && d.above && !s.same(d)
	if len(s.now.known) < maxKnown {
		s.now.known[d.path] = d.info
	}
	entries, err := list(s.pair.source, d.path)
	if err != nil {
		tells := changed || d.deep && !wasBlind
		s.now.blind[d.path] = tells || wasTold
		return !tells || s.yield(unreadable(d.path, err))
	}
	looks := !d.hidden && (changed || d.deep || wasBlind)
	var targets []fs.DirEntry
	if looks {
		if targets, err = s.targets(d); err != nil {
			s.now.blind[d.path] = true
			looks, d.hidden = false, true
			if !wasTold && !s.yield(unreadable(d.path, fmt.Errorf("in the target: %w", err))) {
				return false
			}
		}
	}
	var there map[string]fs.FileMode
	if looks {
		var more bool
		if there, more = s.vanished(d.path, entries, targets); !more {
			return false
		}
		d.deep = d.deep || wasBlind
	}
	for _, e := range entries {
		if !s.entry(d, e, changed, looks, there) {
			return false
		}
	}
	// One that cannot be read in the target is told once it can.
	return err != nil || !changed && !d.deep || s.yield(told{key: d.path, path: d.path})
}

// entry tells what has changed of an entry of a directory and below it, and reports whether to go on. there has the
// entries of the target if the scan looks at them.
func (s *scanner) entry(d directory, e fs.DirEntry, changed, looks bool, there map[string]fs.FileMode) bool {
	at := path.Join(d.path, e.Name())
	if !isCopied(e.Type()) {
		return true
	}
	info, err := e.Info()
	wasTold, wasBlind := s.blind[at]
	switch {
	case missing(err):
		return true // the directory has changed once more
	case err != nil:
		s.now.blind[at] = true
		return wasTold || s.yield(told{key: at, path: at, err: err, blind: true})
	}
	kind, has := there[e.Name()]
	lacks := looks && (!has || kind != info.Mode().Type())
	if info.IsDir() {
		return s.directory(directory{
			path:   at,
			info:   info,
			deep:   d.deep || lacks,
			above:  changed,
			absent: lacks,
			hidden: d.hidden,
		})
	}
	if s.changed(at, info) || d.deep || lacks || wasBlind {
		return s.yield(told{key: at, path: at})
	}
	return true
}

// same reports whether a directory is the one that the last scan has seen at its path.
func (s *scanner) same(d directory) bool {
	was := s.known[d.path]
	return was != nil && os.SameFile(was, d.info)
}

// targets returns the entries that the target has in a directory.
func (s *scanner) targets(d directory) (all []fs.DirEntry, err error) {
	if d.absent {
		return nil, nil
	}
	look := func() error {
		switch info, err := s.pair.target.Lstat(d.path); {
		case missing(err), err == nil && !info.IsDir():
			return nil // it is made, or what is in its place goes
		case err != nil:
			return err
		}
		all, err = list(s.pair.target, d.path)
		return err
	}
	err = look()
	if err != nil && s.pair.open(d.path) {
		err = look()
	}
	return all, err
}

// vanished tells the entries of a directory of the target that the source does not have there, or that have another
// kind, with all that is below them. It returns the entries that are there, and whether to go on.
func (s *scanner) vanished(dir string, entries, targets []fs.DirEntry) (there map[string]fs.FileMode, more bool) {
	kinds := make(map[string]fs.FileMode, len(entries))
	for _, e := range entries {
		kinds[e.Name()] = e.Type()
	}
	there = make(map[string]fs.FileMode, len(targets))
	for _, t := range targets {
		there[t.Name()] = t.Type()
		top := path.Join(dir, t.Name())
		kind, has := kinds[t.Name()]
		stays := has && (kind.IsDir() == t.IsDir() || !isCopied(kind))
		if !stays && !s.pair.parts.has(top) && !s.all(entry{path: top, kind: t.Type()}) {
			return nil, false
		}
	}
	return there, true
}

// all tells an entry of the target and all that is below it, which comes first. All has one key, so that no directory
// is removed before it is empty.
func (s *scanner) all(top entry) bool {
	w := walker{
		tree:          s.pair.target,
		childrenFirst: true,
		yield: func(e entry, err error) bool {
			if err == nil {
				err = e.unreadable
			}
			return s.yield(told{key: top.path, path: e.path, err: err})
		},
	}
	return w.visit(top)
}

// again tells a path that has failed once more. If it is a directory of the target that the source does not have, all
// that is below it comes first, but for parts: no scan has told what is in one that could not be read.
func (s *scanner) again(at string, yield func(told) (more bool)) bool {
	top := entry{path: at}
	if info, err := s.pair.target.Lstat(at); err == nil && info.IsDir() {
		dir := entry{path: at, kind: fs.ModeDir}
		if is, err := s.pair.fate(dir); err == nil && is == gone {
			top = dir
		}
	}
	w := walker{
		tree:          s.pair.target,
		childrenFirst: true,
		yield: func(e entry, _ error) bool {
			return s.pair.parts.has(e.path) || yield(told{key: at, path: e.path})
		},
	}
	return w.visit(top)
}

// remains tells the parts that another process has left behind in the target.
func (s *scanner) remains(ctx context.Context, yield func(told) (more bool)) error {
	for e, err := range walk(ctx, s.pair.target, true, nil) {
		switch {
		case err != nil:
			return err
		case !isPart(e) || s.pair.parts.has(e.path):
			continue
		}
		if is, err := s.pair.fate(e); err == nil && is != stays && !yield(told{key: e.path, path: e.path}) {
			return nil
		}
	}
	return nil
}

func unreadable(at string, err error) told {
	return told{
		key:   at,
		path:  at,
		err:   fmt.Errorf("the directory cannot be read: %w", err),
		blind: true,
	}
}
