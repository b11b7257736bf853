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

// entry is a directory, a file or something else of a tree.
type entry struct {
	path string // relative to the tree, with slashes; "." for the tree itself
	kind fs.FileMode
}

func (e entry) isDir() bool { return e.kind.IsDir() }

// walk yields all entries of a tree, in the same order each time: those of a directory by their names, and the
// directory behind what is in it if childrenFirst is set, else before. Links are entries and are not followed. A directory that
// cannot be read ends it with an error, and does not look as if it were empty.
func walk(ctx context.Context, tree *os.Root, childrenFirst bool) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		w := walker{
			tree:          tree,
			childrenFirst: childrenFirst,
			yield: func(e entry, err error) bool {
				if err == nil {
					err = context.Cause(ctx)
				}
				return yield(e, err) && err == nil
			},
		}
		w.visit(entry{".", fs.ModeDir})
	}
}

type walker struct {
	tree          *os.Root
	childrenFirst bool
	yield         func(entry, error) bool
}

// visit yields an entry and what is below it, and reports whether to go on.
func (w *walker) visit(e entry) bool {
	if !w.childrenFirst && !w.yield(e, nil) {
		return false
	}
	if e.isDir() {
		inside, err := list(w.tree, e.path)
		if err != nil {
			w.yield(entry{}, err)
			return false
		}
		for _, d := range inside {
			if !w.visit(entry{path.Join(e.path, d.Name()), d.Type()}) {
				return false
			}
		}
	}
	return !w.childrenFirst || w.yield(e, nil)
}

// list returns the entries of a directory by their names. A directory that has vanished has none.
func list(tree *os.Root, at string) ([]fs.DirEntry, error) {
	dir, err := tree.Open(at)
	if errors.Is(err, fs.ErrNotExist) && at != "." {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}
