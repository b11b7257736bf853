package main

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"taskledger/work"
	"taskledger/work/feed"
)

// follows returns a follower of an empty directory.
func follows(t *testing.T) *follower {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &follower{root: root}
}

// put and remove apply an event.
func put(t *testing.T, f *follower, path, data string) {
	t.Helper()
	apply(t, f, event{Op: "put", Path: path, Data: []byte(data)})
}

func remove(t *testing.T, f *follower, path string) {
	t.Helper()
	apply(t, f, event{Op: "remove", Path: path})
}

func apply(t *testing.T, f *follower, e event) {
	t.Helper()
	if err := f.apply(t.Context(), work.Change[event]{Key: e.Path, Value: e}); err != nil {
		t.Errorf("%s %s: %v", e.Op, e.Path, err)
	}
}

// tree returns what the directory has: each file as path=data, each directory as path/.
func tree(t *testing.T, f *follower) string {
	t.Helper()
	var all []string
	err := fs.WalkDir(f.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == "." || path == parts:
			return err
		case d.IsDir():
			all = append(all, path+"/")
			return nil
		}
		data, err := f.root.ReadFile(path)
		all = append(all, path+"="+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestFollower_AFileMayTakeThePlaceOfADirectoryAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	f := follows(t)
	for range 2 {
		put(t, f, "a/b/c", "1")
		put(t, f, "a/d", "2")
		remove(t, f, "a/b/c")
		if is := tree(t, f); is != "a/ a/d=2" {
			t.Errorf("there is %s", is)
		}
		remove(t, f, "a/d")
		remove(t, f, "a/d")
		put(t, f, "a", "3")
		remove(t, f, "a/b/c") // again
		if is := tree(t, f); is != "a=3" {
			t.Errorf("there is %s", is)
		}
		remove(t, f, "a")
		put(t, f, "a/e", "4")
		remove(t, f, "a") // again
		if is := tree(t, f); is != "a/ a/e=4" {
			t.Errorf("there is %s", is)
		}
		remove(t, f, "a/e")
	}
	if err := f.root.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, f, "empty", "5")
	if is := tree(t, f); is != "empty=5" {
		t.Errorf("there is %s", is)
	}
}

// Names that look like those of temporary files are as good as any other.
func TestFollower_FilesThatAreNotWholeHaveNoPathOfAnEvent(t *testing.T) {
	t.Parallel()
	f := follows(t)
	var all sync.WaitGroup
	names := []string{"a", ".a.part", "d/a", "d/.a.part"}
	for _, name := range names {
		all.Go(func() {
			for n := range 200 {
				put(t, f, name, fmt.Sprint(name, n))
			}
		})
	}
	all.Wait()
	var want []string
	for _, name := range names {
		want = append(want, name+"="+name+"199")
	}
	is := slices.DeleteFunc(strings.Fields(tree(t, f)), func(s string) bool { return s == "d/" })
	slices.Sort(is)
	slices.Sort(want)
	if !slices.Equal(is, want) {
		t.Errorf("there is %q, want %q", is, want)
	}
	left, err := fs.ReadDir(f.root.FS(), parts)
	if err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	_, err = convert(t.Context(), struct{}{}, feed.Message{Data: []byte(`[{"op":"put","path":".updates/x"}]`)})
	if err == nil || !strings.Contains(err.Error(), ".updates/x") {
		t.Errorf("a path among them: %v", err)
	}
}

// The removal of one file takes directories away that another one needs.
func TestFollower_FilesComeAndGoSideBySideInOneDirectory(t *testing.T) {
	t.Parallel()
	f := follows(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			name := fmt.Sprintf("x/y/%d", i)
			for range 200 {
				if err := f.put(name, nil); err != nil && !raced(err) { // then it is tried again later
					t.Error(err)
				}
				remove(t, f, name)
			}
		})
	}
	all.Wait()
	if is := tree(t, f); is != "" {
		t.Errorf("there is %s", is)
	}
}
