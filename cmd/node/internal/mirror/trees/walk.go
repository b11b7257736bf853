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
	path  string // relative to the tree, with slashes; "." for the tree itself
	kind  fs.FileMode
	above fate // that the directories above it lead to; stays where nobody has looked
}

func (e entry) isDir() bool { return e.kind.IsDir() }

// walk yields all entries of a tree, in the same order each time: those of a directory by their names, and the
// directory behind what is in it if childrenFirst is set, else before. Links are entries and are not followed. A
// directory that cannot be read ends it with an error, and does not look as if it were empty.
//
// inside returns entry.above of what is in a directory; nil: nobody wants to know.
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
	if !w.childrenFirst && !w.yield(e, nil) {
		return false
	}
	if e.isDir() && !w.enter(e) {
		return false
	}
	return !w.childrenFirst || w.yield(e, nil)
}

// enter visits what is in a directory.
func (w *walker) enter(dir entry) bool {
	above := stays
	entries, err := list(w.tree, dir.path)
	if err == nil && w.inside != nil && len(entries) > 0 {
		above, err = w.inside(dir)
	}
	if err != nil {
		w.yield(entry{}, err)
		return false
	}
	for _, d := range entries {
		if !w.visit(entry{path: path.Join(dir.path, d.Name()), kind: d.Type(), above: above}) {
			return false
		}
	}
	return true
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
