package token_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api/token"
)

func draw(t *testing.T, name string, role token.Role) (string, token.Token) {
	t.Helper()
	secret, tok, err := token.New(name, role, "", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return secret, tok
}

func TestFile_KnowsSecretsByTheirDigestsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	old, a := draw(t, "ci", token.Submitter)
	young, b := draw(t, "ci", token.Submitter) // takes its place: both are good meanwhile
	if err := token.Write(path, []token.Token{a, b}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), old) || strings.Contains(string(text), young) {
		t.Fatalf("%s, %v", text, err)
	}
	f, err := token.Open(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for secret, want := range map[string]string{old: a.ID, young: b.ID} {
		if got := f.Find(secret); got == nil || got.ID != want || got.Name != "ci" || got.Role != token.Submitter {
			t.Errorf("%+v", got)
		}
	}
	for _, wrong := range []string{"", a.ID, a.SHA256, old + " ", strings.ToUpper(old)} {
		if got := f.Find(wrong); got != nil {
			t.Errorf("%q: %+v", wrong, got)
		}
	}
}

func TestFile_SeesAChangeWithinASecondAndKeepsWhatItKnewOfADamagedOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	secret, a := draw(t, "ci", token.Viewer)
	other, b := draw(t, "ops", token.Operator)
	if err := token.Write(path, []token.Token{a}); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var told []string
		f, err := token.Open(path, func(err error) { told = append(told, err.Error()) })
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			change        func() error
			first, second bool
			told          int
		}{
			{func() error { return token.Write(path, []token.Token{a, b}) }, true, true, 0},
			{func() error { return os.WriteFile(path, []byte("{"), 0o600) }, true, true, 1},
			{func() error { return nil }, true, true, 1},
			{func() error { return errors.Join(token.Write(path, []token.Token{b}), os.Chmod(path, 0o620)) }, true, true, 2},
			{func() error { return os.Chmod(path, 0o600) }, false, true, 2}, // the file itself is as it was
			{func() error { return os.Remove(path) }, false, true, 3},
			{func() error { return nil }, false, true, 3},
			{func() error { return token.Write(path, nil) }, false, false, 3},
		} {
			if err := c.change(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if f.Find(secret) != nil != c.first || f.Find(other) != nil != c.second || len(told) != c.told {
				t.Errorf("step %d: %v, %v, told %q", i, f.Find(secret), f.Find(other), told)
			}
		}
	})
}

func TestFile_KnowsATokenThatWasJustMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	first, a := draw(t, "ci", token.Viewer)
	made, b := draw(t, "ops", token.Operator)
	if err := token.Write(path, []token.Token{a}); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f, err := token.Open(path, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		if f.Find(first) == nil || f.Find(made) != nil {
			t.Error("the file is not what is known")
		}
		if err := token.Write(path, []token.Token{a, b}); err != nil {
			t.Fatal(err)
		}
		if f.Find(made) != nil {
			t.Error("strangers have the file looked at each time")
		}
		time.Sleep(20 * time.Millisecond)
		if f.Find(made) == nil {
			t.Error("a token is unknown after it was made")
		}
	})
}

func TestRead_RefusesWhatMayNotBeTrusted(t *testing.T) {
	dir := t.TempDir()
	_, a := draw(t, "ci", token.Viewer)
	good := fmt.Sprintf(`{"id":%q,"name":"ci","role":"viewer","sha256":%q,"created":"2026-01-01T00:00:00Z"`, a.ID, a.SHA256)
	for text, want := range map[string]string{
		`{"tokens":[` + good + `}]}`:                                    "",
		`{"tokens":[` + good + `,"prefix":"a:","behaviors":["noop"]}]}`: "",
		``:                              "EOF",
		`{"tokens":[` + good + `}]} {}`: "more than one",
		`{"tokens":[` + good + `},` + good + `}]}`:                                      "twice",
		`{"tokens":[` + good + `,"secret":"x"}]}`:                                       `unknown field "secret"`,
		`{"tokens":[` + good + `,"prefix":"a/b"}]}`:                                     "prefix",
		`{"tokens":[` + good + `,"behaviors":["No"]}]}`:                                 "behaviors",
		`{"tokens":[` + strings.Replace(good, "viewer", "worker", 1) + `}]}`:            "worker",
		`{"tokens":[` + strings.Replace(good, `"ci"`, `"c\ni"`, 1) + `}]}`:              "name",
		`{"tokens":[` + strings.Replace(good, a.SHA256, a.SHA256[1:], 1) + `}]}`:        "sha256",
		`{"tokens":[` + strings.Replace(good, a.ID, strings.Repeat("0", 12), 1) + `}]}`: "id",
	} {
		path := filepath.Join(dir, "tokens")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := token.Read(path); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	path := filepath.Join(dir, "tokens")
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := token.Read(path); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("a file that others may write: %v", err)
	}
}

func TestRole_EachMayDoWhatTheOnesBeforeItMayButForTheWorker(t *testing.T) {
	order := []token.Role{token.Nobody, token.Viewer, token.Submitter, token.Operator, token.Admin}
	for i, has := range order {
		for j, needs := range order {
			if has.Allows(needs) != (i >= j) {
				t.Errorf("%s for %s: %t", has, needs, has.Allows(needs))
			}
		}
		if has.Allows(token.Worker) || token.Worker.Allows(has) {
			t.Errorf("%s and worker are one", has)
		}
	}
}

// The affinity of one store is no beginning of another's.
func TestToken_MayUseTheStoreThatItsPrefixNamesAlone(t *testing.T) {
	for _, c := range []struct {
		prefix, store string
		may           bool
	}{
		{"", "a", true}, {"store:a", "a", true}, {"store:a", "ab", false}, {"store:a", "b", false}, {"store:", "a", true},
		{"store:team.", "team.x", true}, {"store:team.", "teams", false}, {"tenant.", "tenant.", false}, {"store:a.", "a.", true},
	} {
		k := token.Token{Prefix: c.prefix}
		if k.MayStore(c.store) != c.may {
			t.Errorf("%q for store %q: want %v", c.prefix, c.store, c.may)
		}
	}
	if (&token.Token{Behaviors: []string{"noop"}}).MayStore("a") {
		t.Error("a token for tasks of a behavior may use a store")
	}
}

// A program that a task runs has the rights of the node's user: whoever may only submit needs a token that says so.
func TestMaySubmit_ProgramsNeedAnOperatorOrATokenThatNamesTheBehavior(t *testing.T) {
	for _, c := range []struct {
		t        token.Token
		behavior string
		want     bool
	}{
		{token.Token{Role: token.Submitter}, "noop", true},
		{token.Token{Role: token.Submitter}, "exec", false},
		{token.Token{Role: token.Submitter}, "collection", false},
		{token.Token{Role: token.Submitter, Behaviors: []string{"collection"}}, "collection", true},
		{token.Token{Role: token.Operator}, "collection", true},
		{token.Token{Role: token.Submitter, Behaviors: []string{"exec"}}, "exec", true},
		{token.Token{Role: token.Submitter, Behaviors: []string{"noop"}}, "exec", false},
		{token.Token{Role: token.Operator}, "exec", true},
		{token.Token{Role: token.Operator, Behaviors: []string{"noop"}}, "exec", false},
		{token.Token{Role: token.Admin}, "exec", true},
	} {
		if got := c.t.MaySubmit(c.behavior); got != c.want {
			t.Errorf("%s of %v submits %s: %t", c.t.Role, c.t.Behaviors, c.behavior, got)
		}
	}
}
