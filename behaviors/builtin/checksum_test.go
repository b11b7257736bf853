//go:build unix

package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

func checksumIn(t *testing.T) (root string, b task.Behavior) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	return root, builtin.Checksum(builtin.ChecksumOptions{Root: root})
}

func TestChecksum_SumsAndCounts(t *testing.T) {
	root, b := checksumIn(t)
	must(t,
		os.Mkdir(filepath.Join(root, "dir"), 0o700),
		os.WriteFile(filepath.Join(root, "abc"), []byte("abc"), 0o600),
		os.WriteFile(filepath.Join(root, "empty"), nil, 0o600),
		os.WriteFile(filepath.Join(root, "dir", "long"), []byte(strings.Repeat("0123456\n", 100_000)), 0o600),
		os.Symlink("../abc", filepath.Join(root, "dir", "link")),
	)
	for path, want := range map[string]builtin.ChecksumResult{
		"abc":      {SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Bytes: 3},
		"empty":    {SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		"dir/link": {SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Bytes: 3},
		"dir/long": {Bytes: 800_000, Lines: 100_000},
	} {
		got, o := run[builtin.ChecksumResult](t.Context(), t, b, builtin.ChecksumParams{Path: path})
		if want.SHA256 == "" {
			want.SHA256 = got.SHA256
		}
		if o.Err != nil || got != want {
			t.Errorf("%s: %+v, %+v; want %+v", path, got, o.Err, want)
		}
	}
}

func TestChecksum_WhatIsExcludedIsReadByNoPath(t *testing.T) {
	root, _ := checksumIn(t)
	data, key := filepath.Join(root, "data"), filepath.Join(root, "key")
	must(t,
		os.MkdirAll(filepath.Join(data, "etcd"), 0o700),
		os.WriteFile(filepath.Join(data, "etcd", "wal"), []byte("secret"), 0o600),
		os.WriteFile(key, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(root, "database"), []byte("x"), 0o600),
		os.Symlink("data", filepath.Join(root, "link")),
		os.Symlink("data/etcd/wal", filepath.Join(root, "wal")),
		os.Symlink("data/etcd", filepath.Join(root, "below")),
		os.Link(key, filepath.Join(root, "hard")),
	)
	exclude := []string{filepath.Join(root, "missing"), data, key}
	b := builtin.Checksum(builtin.ChecksumOptions{Root: root, Exclude: exclude})
	for _, path := range []string{
		"data/etcd/wal", "link/etcd/wal", "wal", "key", "hard", "data/etcd/../etcd/wal", "below/../etcd/wal", "data",
	} {
		_, o := run[builtin.ChecksumResult](t.Context(), t, b, builtin.ChecksumParams{Path: path})
		testkit.WantFailure(t, o, builtin.CodeRefused, true)
	}
	if _, o := run[builtin.ChecksumResult](t.Context(), t, b, builtin.ChecksumParams{Path: "database"}); o.Err != nil {
		t.Errorf("what is not excluded: %+v", o.Err)
	}
}

func TestChecksum_WhatCannotBeReadIsAFinalFailure(t *testing.T) {
	root, b := checksumIn(t)
	outside := filepath.Join(filepath.Dir(root), "secret")
	must(t,
		os.WriteFile(outside, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o600),
		os.Mkdir(filepath.Join(root, "dir"), 0o700),
		syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600),
		os.Symlink(outside, filepath.Join(root, "absolute")),
		os.Symlink("../secret", filepath.Join(root, "relative")),
		os.Symlink("..", filepath.Join(root, "dir", "up")),
		os.Symlink("loop", filepath.Join(root, "loop")),
	)
	for path, code := range map[string]string{
		"missing":                  builtin.CodeNotFound,
		"dir/missing":              builtin.CodeNotFound,
		"file/below":               builtin.CodeInvalid,
		"dir":                      builtin.CodeInvalid,
		".":                        builtin.CodeInvalid,
		"pipe":                     builtin.CodeInvalid,
		"loop":                     builtin.CodeInvalid,
		strings.Repeat("x", 300):   builtin.CodeInvalid,
		"absolute":                 builtin.CodeRefused,
		"relative":                 builtin.CodeRefused,
		"dir/up/../../secret":      builtin.CodeRefused,
		"dir/up/absolute":          builtin.CodeRefused,
		"../secret":                "rejected",
		outside:                    "rejected",
		"":                         "rejected",
		"dir/../../root/../secret": "rejected",
	} {
		t.Run(path[:min(len(path), 30)], func(t *testing.T) {
			_, o := run[builtin.ChecksumResult](t.Context(), t, b, builtin.ChecksumParams{Path: path})
			testkit.WantFailure(t, o, code, true)
		})
	}
}

func TestChecksum_OnlyErrorsThatCanPassAreRetried(t *testing.T) {
	for number, code := range map[syscall.Errno]string{
		syscall.EACCES: builtin.CodePermission,
		syscall.EPERM:  builtin.CodePermission,
		syscall.ENOENT: builtin.CodeNotFound,
		syscall.ENXIO:  builtin.CodeInvalid,
		syscall.EIO:    "",
		syscall.EMFILE: "",
		syscall.ESTALE: "",
	} {
		open := func(context.Context, behaviors.None) (int, error) {
			return 0, builtin.OpenFailure(&os.PathError{Op: "openat", Path: "file", Err: number})
		}
		b := behaviors.Define[behaviors.None, int]("open", nil).Bind(open)
		o := b.Run(t.Context(), testkit.Attempt(t, nil))
		if code == "" {
			testkit.WantFailure(t, o, "failed", false)
		} else {
			testkit.WantFailure(t, o, code, true)
		}
	}
}

func TestChecksum_AMissingRootIsRetriedAndNoRootIsNot(t *testing.T) {
	gone := builtin.Checksum(builtin.ChecksumOptions{Root: filepath.Join(t.TempDir(), "volume")})
	_, o := run[builtin.ChecksumResult](t.Context(), t, gone, builtin.ChecksumParams{Path: "file"})
	testkit.WantFailure(t, o, "failed", false)
	rootless := builtin.Checksum(builtin.ChecksumOptions{})
	_, o = run[builtin.ChecksumResult](t.Context(), t, rootless, builtin.ChecksumParams{Path: "file"})
	testkit.WantFailure(t, o, builtin.CodeRefused, true)
}

func TestChecksum_StopsWithItsContextAndTellsItsProgress(t *testing.T) {
	root, b := checksumIn(t)
	must(t, os.WriteFile(filepath.Join(root, "file"), make([]byte, 2<<20), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := testkit.Attempt(t, builtin.ChecksumParams{Path: "file"})
	var reports []int64
	a.Progress = func(done, total int64, _ string) {
		if total != 2<<20 {
			t.Errorf("total %d", total)
		}
		reports = append(reports, done)
		cancel()
	}
	o := b.Run(ctx, a)
	if e := testkit.WantFailure(t, o, "failed", false); e.Message != context.Canceled.Error() {
		t.Errorf("message %q", e.Message)
	}
	if len(reports) != 1 {
		t.Errorf("reports %v, want one", reports)
	}
}

func TestChecksum_ParametersAreCheckedAtSubmit(t *testing.T) {
	raw, err := json.Marshal(builtin.ChecksumParams{Path: "../secret"})
	must(t, err)
	_, err = builtin.Checksum(builtin.ChecksumOptions{}).Plan(raw, epoch)
	if _, ok := errors.AsType[*store.InvalidError](err); !ok {
		t.Errorf("error %v, want an InvalidError", err)
	}
}
