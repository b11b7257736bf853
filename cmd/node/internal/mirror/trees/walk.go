package trees

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
)

// walk yields all entries of a tree, in the same order each time: those of a directory by their names, and the
// directory behind what is in it if childrenFirst is set, else before. Links are entries and are not followed. A
// directory that cannot be read says so and does not look as if it were empty; the tree itself ends the walk with an
// error then.
//
// inside returns entry.above of what is in a directory, and stays where it fails; nil: nobody wants to know.
func walk(
	ctx context.Context, tree *os.Root, childrenFirst bool, inside func(dir entry) (fate, error),
) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		w := walker{
			tree:          tree,
			childrenFirst: childrenFirst,
			inside:        inside,
			yield: func(e entry, err error) bool {
				if err == nil {
					err = context.Cause(ctx)
				}
				return yield(e, err) && err == nil
			},
		}
		w.visit(entry{path: ".", kind: fs.ModeDir})
	}
}

type walker struct {
	tree          *os.Root
	childrenFirst bool
	inside        func(dir entry) (fate, error)
	yield         func(entry, error) bool
}

// visit yields an entry and what is below it, and reports whether to go on.
func (w *walker) visit(e entry) bool {
	if !e.isDir() {
		return w.yield(e, nil)
	}
	entries, err := list(w.tree, e.path)
	switch {
	case err != nil && e.path == ".":
		return w.yield(entry{}, err)
	case err != nil:
		e.unreadable = err
		return w.yield(e, nil)
	case w.childrenFirst:
		return w.enter(e, entries) && w.yield(e, nil)
	}
	return w.yield(e, nil) && w.enter(e, entries)
}

// enter visits the entries of a directory.
func (w *walker) enter(dir entry, entries []fs.DirEntry) bool {
	above := stays
	if w.inside != nil && len(entries) > 0 {
		if is, err := w.inside(dir); err == nil {
			above = is
		}
	}
	for _, d := range entries {
		if !w.visit(entry{path: path.Join(dir.path, d.Name()), kind: d.Type(), above: above}) {
			return false
		}
	}
	return true
}

// noEntry names an entry that a directory is unlikely to have, to ask whether its entries may be looked at.
const noEntry = ".taskledger-no-entry"

// list returns the entries of a directory by their names. A directory that has vanished, or that something else has
// replaced, has none. A directory whose entries nobody may look up cannot be read.
func list(tree *os.Root, at string) ([]fs.DirEntry, error) {
	entries, err := read(tree, at)
	if at != "." && missing(err) {
		return nil, nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

func read(tree *os.Root, at string) ([]fs.DirEntry, error) {
	dir, err := tree.Open(at)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err == nil {
		_, err = tree.Lstat(path.Join(at, noEntry))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return entries, err
}
