package signing_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/signing"
)

const text = "a checkpoint\nof something\n"

func newKey(t *testing.T, name string) (file, public string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key")
	public, err := signing.NewKey(file, name)
	if err != nil {
		t.Fatal(err)
	}
	return file, public
}

func TestOpen_WantsASignatureOfATrustedKey(t *testing.T) {
	t.Parallel()
	file, public := newKey(t, "a")
	_, namesake := newKey(t, "a")
	sign, err := signing.Signer(file)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := sign(text)
	if err != nil {
		t.Fatal(err)
	}
	got, by, err := signing.Open(signed, []string{namesake, public})
	if err != nil || got != text || len(by) != 1 || !strings.HasPrefix(by[0], "a+") || !strings.HasPrefix(public, by[0]) {
		t.Errorf("%q signed by %v, %v", got, by, err)
	}
	for what, change := range map[string]string{
		"text changed": strings.Replace(signed, "of", "or", 1), "unsigned": text, "empty": "",
	} {
		if got, _, err := signing.Open(change, []string{public}); !errors.Is(err, signing.ErrUntrusted) {
			t.Errorf("%s: %q, %v; want ErrUntrusted", what, got, err)
		}
	}
	if got, _, err := signing.Open(signed, []string{namesake}); !errors.Is(err, signing.ErrUntrusted) {
		t.Errorf("signed by a namesake: %q, %v; want ErrUntrusted", got, err)
	}
	for _, note := range []string{signed, text} {
		if got, by, err := signing.Open(note, nil); err != nil || got != text || len(by) > 0 {
			t.Errorf("without trust: %q, %v, %v", got, by, err)
		}
	}
}

func TestNewKey_ReplacesNoFileAndIsPrivate(t *testing.T) {
	t.Parallel()
	file, _ := newKey(t, "a")
	if _, err := signing.NewKey(file, "a"); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second key in one file: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key: %v, %v", info, err)
	}
	if _, err := signing.NewKey(file+"2", "no blanks"); err == nil {
		t.Error("a name with a blank was taken")
	}
}
