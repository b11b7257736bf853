package advertised_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"taskledger/internal/advertised"
)

func TestWrite_IsReadAgainByTheUserAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := advertised.Servers{
		Data:  "c1",
		Store: advertised.InFiles,
		API: advertised.API{
			Addresses: []string{"unix:/run/a b/api", "http://127.0.0.1:7400"},
			URL:       "http://127.0.0.1:7400",
			Token:     "tl_x",
		},
	}
	if err := advertised.Write(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := advertised.Read(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	if got.Socket() != "/run/a b/api" {
		t.Errorf("the socket is %q", got.Socket())
	}
	if info, err := os.Stat(advertised.Path(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for range 2 { // there is nothing the second time
		if err := advertised.Withdraw(dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := advertised.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after it was withdrawn: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAPI_WithoutASocketNamesNone(t *testing.T) {
	t.Parallel()
	if got := (advertised.API{Addresses: []string{"http://127.0.0.1:1"}}).Socket(); got != "" {
		t.Errorf("socket %q", got)
	}
}

func TestMakeSocketDir_IsMadeAnewForTheUserAlone(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	path, err := advertised.MakeSocketDir(data, "api")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := advertised.MakeSocketDir(data, "api")
	if err != nil || again != path {
		t.Errorf("%s, %v; before %s", again, err, path)
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left of the start before: %v, %v", left, err)
	}
}
