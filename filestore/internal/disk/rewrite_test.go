package disk_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"taskledger/filestore/internal/disk"
)

func TestRewritePart_LeavesEveryByteAsItIs(t *testing.T) {
	dir := t.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 5<<19)
	_, _ = random.Read(data)
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	size := int64(len(data))
	for _, part := range [][2]int64{{0, size}, {0, 1}, {size - 1, size}, {777, size}, {3, 1<<20 + 3}, {size, size}} {
		if err := disk.Dir(dir).RewritePart("file", part[0], part[1]); err != nil {
			t.Fatalf("%v: %v", part, err)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%v: the file has other bytes, %v", part, err)
		}
	}
	if err := disk.Dir(dir).RewritePart("file", 0, size+1); err == nil {
		t.Error("bytes behind the end are written anew")
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the file has other bytes, %v", err)
	}
}
