package ui_test

import (
	"crypto/sha512"
	"encoding/base64"
	"os"
	"regexp"
	"testing"
)

// What lies in the repository of others is what its script has fetched: each file with the hash that stands there.
func TestStatic_FilesOfOthersHaveTheHashesOfTheirScript(t *testing.T) {
	script, err := os.ReadFile("static/renew.sh")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^htmx=(\S+)$`).FindSubmatch(script)
	rows := regexp.MustCompile(`(?m)^holds (\S+) '([^']+)'$`).FindAllSubmatch(script, -1)
	if version == nil || len(rows) != 2 {
		t.Fatalf("the script names version %s and %d files", version, len(rows))
	}
	for _, row := range rows {
		name := regexp.MustCompile(`\$htmx`).ReplaceAllLiteralString(string(row[1]), string(version[1]))
		data, err := os.ReadFile("static/" + name)
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha512.Sum512(data); base64.StdEncoding.EncodeToString(sum[:]) != string(row[2]) {
			t.Errorf("%s has the hash %s, not %s", name, base64.StdEncoding.EncodeToString(sum[:]), row[2])
		}
	}
}
