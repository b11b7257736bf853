package signing_test

import (
	"path/filepath"
	"testing"

	"taskledger/cmd/node/internal/signing"
)

// FuzzOpen opens any note: under a trusted key nothing but what was signed with it is accepted.
func FuzzOpen(f *testing.F) {
	file := filepath.Join(f.TempDir(), "key")
	public, err := signing.NewKey(file, "a")
	if err != nil {
		f.Fatal(err)
	}
	sign, err := signing.Signer(file)
	if err != nil {
		f.Fatal(err)
	}
	signed, err := sign(text)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed, public)
	f.Add(text, "a+00000000+AA==")
	f.Add(signed+signed, "")
	f.Fuzz(func(t *testing.T, note, key string) {
		if got, by, err := signing.Open(note, []string{public}); err == nil && (got != text || len(by) == 0) {
			t.Errorf("%q, signed by %v, was accepted of a key that signed %q", got, by, text)
		}
		if _, by, err := signing.Open(note, nil); err != nil || len(by) > 0 {
			t.Errorf("without trusted keys: signed by %v, %v", by, err)
		}
		if got, by, err := signing.Open(note, []string{key}); err == nil && key != public && got == text && len(by) > 0 && note == signed {
			t.Errorf("the key %q vouches for a note of another", key)
		}
	})
}
