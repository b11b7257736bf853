package trees_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/cmd/node/internal/mirror/trees"
)

// forest describes what is below a directory, by paths with slashes; "." is the directory itself.
type forest map[string]node

// node is an entry of a forest. Its zero value is an empty file.
type node struct {
	dir  bool
	link string      // where the link leads; "" = no link
	text string      // of a file
	mode fs.FileMode // 0 = 0644, or 0755 of a directory
	age  time.Duration
}

var epoch = time.Date(2026, 11, 28, 12, 0, 0, 123456789, time.UTC)

func file(text string) node { return node{text: text} }
func link(to string) node   { return node{link: to} }

var dir = node{dir: true}

// plant makes what a forest describes below a directory. It makes parents that the forest leaves out.
func (f forest) plant(root string) error {
	paths := slices.Sorted(maps.Keys(f))
	for _, at := range paths {
		if err := f[at].plant(filepath.Join(root, at)); err != nil {
			return err
		}
	}
	for _, at := range slices.Backward(paths) {
		n, real := f[at], filepath.Join(root, at)
		if n.link != "" {
			continue
		}
		mode := n.mode
		switch {
		case mode == 0 && n.dir:
			mode = 0o755
		case mode == 0:
			mode = 0o644
		}
		if err := os.Chmod(real, mode); err != nil {
			return err
		}
		if err := os.Chtimes(real, time.Time{}, epoch.Add(-n.age)); err != nil {
			return err
		}
	}
	return nil
}

func (n node) plant(at string) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case n.dir:
		return os.MkdirAll(at, 0o755)
	case n.link != "":
		return os.Symlink(n.link, at)
	}
	return os.WriteFile(at, []byte(n.text), 0o600)
}

// look describes each entry below a directory: the kind and content, and the mode and time but of links.
func look(root string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(root, func(real string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, real)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		dress := fmt.Sprintf("%04o %s", info.Mode().Perm(), info.ModTime().UTC().Format(time.RFC3339Nano))
		switch {
		case d.IsDir():
			all[at] = "directory " + dress
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(real)
			all[at] = "link " + to
			return err
		case d.Type().IsRegular():
			text, err := os.ReadFile(real)
			all[at] = fmt.Sprintf("file %q %s", text, dress)
			return err
		default:
			all[at] = d.Type().String()
		}
		return nil
	})
	return all, err
}

func mustLook(t testing.TB, root string) map[string]string {
	t.Helper()
	all, err := look(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// differences tells where two looks differ, a line each.
func differences(got, want map[string]string) string {
	var b strings.Builder
	paths := maps.Clone(want)
	maps.Copy(paths, got)
	for _, at := range slices.Sorted(maps.Keys(paths)) {
		if got[at] != want[at] {
			fmt.Fprintf(&b, "%q is %.200q, want %.200q\n", at, got[at], want[at])
		}
	}
	return b.String()
}

// wantSame asserts that the trees are equal.
func wantSame(t testing.TB, p trees.Params) {
	t.Helper()
	if d := differences(mustLook(t, p.Target), mustLook(t, p.Source)); d != "" {
		t.Errorf("the target differs from the source:\n%s", d)
	}
}

// plant makes two trees for the test.
func plant(t testing.TB, source, target forest) trees.Params {
	t.Helper()
	root := t.TempDir()
	from, to := filepath.Join(root, "source"), filepath.Join(root, "target")
	for at, f := range map[string]forest{from: source, to: target} {
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := f.plant(at); err != nil {
			t.Fatal(err)
		}
	}
	p, err := trees.Resolve(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
