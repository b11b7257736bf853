package archtest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"taskledger/internal/archtest"
)

// tree makes a module "m" of the files given.
func tree(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module m\n\ngo 1.26\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func loadTree(t *testing.T, files map[string]string) *archtest.Source {
	t.Helper()
	s, err := archtest.Load(tree(files))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// equal compares violations with what they must begin with, in order.
func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("violations\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestImports_CatchesWhatTheTableDoesNotAllow(t *testing.T) {
	p, err := archtest.ParsePolicy(`
low      |                             | leaf
high     | low example.org/good        | on top
cmd/...  | high                        | binaries
ex/...   | ex/...                      | examples
low/own*.go | example.org/good         | of their own
tests    | example.org/check           | checkers
`)
	if err != nil {
		t.Fatal(err)
	}
	s := loadTree(t, map[string]string{
		"low/a.go":             "package low\nimport (\n\"fmt\"\n\"net/http\"\n\"m/high\"\n)",
		"low/owner.go":         "package low\nimport (\n\"example.org/good\"\n\"m/high\"\n)",
		"low/b.go":             "package low\nimport _ \"example.org/good\"",
		"low/b_test.go":        "package low\nimport (\n_ \"m/high\"\n_ \"example.org/check/deep\"\n_ \"example.org/good\"\n)",
		"high/a.go":            "package high\nimport (\n\"m/low\"\n\"example.org/good/v2\"\n\"example.org/goodness\"\n\"m/low/below\"\n)",
		"high/b.go":            "package high\nimport \"example.org/check\"",
		"cmd/one/two/main.go":  "package main\nimport (\n\"m/high\"\n\"m/low\"\n)",
		"ex/a/a.go":            "package a\nimport \"m/ex/b\"",
		"unknown/a.go":         "package unknown",
		"high/testdata/bad.go": "package nothing to parse",
		"nested/go.mod":        "module n",
		"nested/a.go":          "package nested\nimport \"example.org/bad\"",
	})
	equal(t, s.Imports(p),
		"cmd/one/two/main.go:4: cmd/one/two must not import m/low (binaries)",
		"high/a.go:5: high must not import example.org/goodness (on top)",
		"high/a.go:6: high must not import m/low/below (on top)",
		"high/b.go:2: high must not import example.org/check (on top)",
		"low/a.go:5: low must not import m/high (leaf)",
		"low/b.go:2: low must not import example.org/good (leaf)",
		"low/b_test.go:5: low must not import example.org/good (leaf)",
		"low/owner.go:4: low must not import m/high (of their own)",
		"unknown/a.go: package unknown has no row",
	)
}

func TestUnused_CatchesWhatNobodyImports(t *testing.T) {
	p, err := archtest.ParsePolicy(`
low      | gone                                   | leaf
high     | low gone example.org/good example.org/goo example.org/own example.org/check | on top
cmd/...  | high cmd/... low                       | binaries
lost     |                                        | nothing
low/z*.go | example.org/good                      | of their own
low/lost*.go |                                    | nothing
tests    | example.org/check example.org/checkers | checkers
`)
	if err != nil {
		t.Fatal(err)
	}
	s := loadTree(t, map[string]string{
		"low/a.go":            "package low\nimport \"fmt\"",
		"low/z.go":            "package low",
		"low/a_test.go":       "package low\nimport (\n_ \"m/gone\"\n_ \"example.org/check\"\n)",
		"high/a.go":           "package high\nimport (\n\"m/low\"\n\"example.org/good/v2\"\n\"m/gone/below\"\n)",
		"high/a_test.go":      "package high\nimport (\n_ \"example.org/own\"\n_ \"example.org/check\"\n)",
		"cmd/one/two/main.go": "package main\nimport (\n\"m/high\"\n\"m/cmd/one\"\n)",
		"unknown/a.go":        "package unknown\nimport \"m/low\"",
		"unknown/a_test.go":   "package unknown\nimport \"m/low\"",
	})
	equal(t, s.Unused(p),
		"cmd/... need not be allowed to import low:",
		"high need not be allowed to import example.org/check:",
		"high need not be allowed to import example.org/goo:",
		"high need not be allowed to import gone:",
		"low need not be allowed to import gone:",
		"low/z*.go need not be allowed to import example.org/good:",
		"tests need not be allowed to import example.org/checkers:",
		"the import policy has a row for lost,",
		"the import policy has a row for low/lost*.go,",
	)
}

func TestParsePolicy_RefusesARowWithoutReason(t *testing.T) {
	for _, table := range []string{"low | fmt |", "low | fmt", "low", "low | a | b | c"} {
		if _, err := archtest.ParsePolicy(table); err == nil {
			t.Errorf("%q was accepted", table)
		}
	}
}

func TestImports_ProjectsTableCatchesTheUsualTemptations(t *testing.T) {
	p, err := archtest.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	for dir, bad := range map[string]string{
		"events":          "go.etcd.io/etcd/client/v3",
		"projection":      "github.com/vmihailenco/msgpack/v5",
		"engine":          "github.com/nats-io/nats.go",
		"behaviors":       "go.etcd.io/etcd/client/v3",
		"natsbus":         "github.com/vmihailenco/msgpack/v5",
		"etcdstore":       "go.etcd.io/etcd/server/v3/embed",
		"engine/embedded": "github.com/spf13/cobra",
		"cmd/node":        "go.etcd.io/etcd/client/v3",
		"internal/wire":   "github.com/vmihailenco/msgpack/v5",
		"store/storetest": "pgregory.net/rapid",
	} {
		s := loadTree(t, map[string]string{dir + "/a.go": "package a\nimport _ \"" + bad + "\""})
		equal(t, s.Imports(p), dir+"/a.go:2: "+dir+" must not import "+bad)
	}
	for dir, bad := range map[string]string{
		"events": "projection", "projection": "engine", "engine": "etcdstore", "behaviors": "natsbus", "etcdstore": "natsbus",
		"natsbus": "etcdstore", "engine/embedded": "internal/testcluster", "cmd/node": "internal/testkit",
		"integration/robustness/check": "projection",
	} {
		s := loadTree(t, map[string]string{dir + "/a.go": "package a\nimport _ \"m/" + bad + "\""})
		equal(t, s.Imports(p), dir+"/a.go:2: "+dir+" must not import m/"+bad)
	}
}

func TestHandlers_CatchesThoseOutsideThePackagesGiven(t *testing.T) {
	s := loadTree(t, map[string]string{
		"api/a.go":    "package api\nimport \"net/http\"\nvar a = http.NewServeMux()",
		"p/p.go":      "package p\nimport web \"net/http\"\nvar a = web.HandlerFunc(nil)\nfunc b() { web.Handle(\"/\", a) }",
		"p/client.go": "package p\nimport \"net/http\"\nvar c = http.Client{}",
		"p/p_test.go": "package p\nimport \"net/http\"\nvar d = http.NewServeMux()",
		"q/q.go":      "package q\nimport . \"net/http\"",
	})
	equal(t, s.Handlers("api", "none"),
		"none: answers no request",
		"p/p.go:3: http.HandlerFunc outside the table of routes",
		"p/p.go:4: http.Handle outside the table of routes",
		"q/q.go: dot import of net/http")
}

func TestPure_CatchesClocksGoroutinesAndIO(t *testing.T) {
	s := loadTree(t, map[string]string{
		"p/imports.go": `package p
import (
	"os"
	"net"
	"io/fs"
	"math/rand"
	"context"
	"sync"
	"crypto/rand"
	"log/slog"
)`,
		"p/clock.go": `package p
import (
	"time"
	clock "time"
)
var a = time.Now()
var b = clock.Since
var c = time.Unix
func d() { time.Sleep(time.Second); <-time.After(1); time.NewTimer(1); time.Tick(1) }`,
		"p/dot.go": "package p\nimport . \"time\"\nvar e = Now()",
		"p/run.go": `package p
func f(c chan int) {
	go f(nil)
	c <- 1
	select {}
}`,
		"p/print.go":     "package p\nimport \"fmt\"\nfunc g() {\nfmt.Println()\nprintln()\n_ = fmt.Sprint()\n}",
		"p/pure.go":      "package p\nimport (\n\"m/q\"\n\"slices\"\n\"time\"\n)\nvar h = time.Time{}.Add(time.Second)",
		"p/pure_test.go": "package p\nimport \"os\"\nfunc i() { go i() }",
		"q/q.go":         "package q\nimport \"os\"",
	})
	equal(t, s.Pure("p/*.go"),
		"p/clock.go:6: time.Now",
		"p/clock.go:7: time.Since",
		"p/clock.go:9: time.After",
		"p/clock.go:9: time.NewTimer",
		"p/clock.go:9: time.Sleep",
		"p/clock.go:9: time.Tick",
		"p/dot.go:2: dot import of time",
		"p/imports.go:10: import of log/slog",
		"p/imports.go:3: import of os",
		"p/imports.go:4: import of net",
		"p/imports.go:5: import of io/fs",
		"p/imports.go:6: import of math/rand",
		"p/imports.go:7: import of context",
		"p/imports.go:8: import of sync",
		"p/imports.go:9: import of crypto/rand",
		"p/print.go:4: fmt.Println",
		"p/print.go:5: print",
		"p/run.go:2: channel",
		"p/run.go:3: go statement",
		"p/run.go:4: send",
		"p/run.go:5: select",
	)
	equal(t, s.Pure("q/decide*.go", "p/pure*.go", "p/run_test.go"), "p/run_test.go: no file matches", "q/decide*.go: no file matches")
}

func TestInterfaces_CatchesWideOnes(t *testing.T) {
	s := loadTree(t, map[string]string{
		"p/a.go": `package p
type Narrow interface { A(); B() }
type Wide interface {
	A(); B(); C()
}
type Union interface { Narrow; Wide; D() }
var _ interface { X(); Y(); Z() }`,
		"p/a_test.go": "package p\ntype T interface { A(); B(); C() }",
	})
	equal(t, s.Interfaces(2), "p/a.go:3: interface of 3 methods", "p/a.go:7: interface of 3 methods")
}

func TestStructs_CatchesManyFields(t *testing.T) {
	s := loadTree(t, map[string]string{
		"p/a.go": `package p
type Small struct { a, b int }
type Large struct {
	Small
	c, d int
}
var _ struct { x, y, z int }
type Nested struct { inner struct { a, b, c, d int } }`,
		"p/a_test.go": "package p\ntype T struct { a int; b, c int }",
	})
	equal(t, s.Structs(2),
		"p/a.go:3: struct of 3 fields, at most 2",
		"p/a.go:7: struct of 3 fields",
		"p/a.go:8: struct of 4 fields",
		"p/a_test.go:2: struct of 3 fields",
	)
}

func TestExported_CountsNamesOfThePackage(t *testing.T) {
	s := loadTree(t, map[string]string{
		"p/a.go": `package p
type A struct{ Field int }
type b int
func (A) Method() {}
func C() {}
const ( D, e = 1, 2 )
var F, _ int`,
		"p/other_windows.go": "package p\nfunc C() {}",
		"p/a_test.go":        "package p\nfunc G() {}",
		"q/a.go":             "package q\nvar A, B, C, D, E int",
	})
	equal(t, s.Exported(archtest.Limits{"p": 3}), "p: exports 4 names, at most 3: A C D F")
	equal(t, s.Exported(archtest.Limits{"p": 4}))
}

func TestMachinePaths_CatchesThemInAnyText(t *testing.T) {
	slash := "/"
	got, err := archtest.MachinePaths(tree(map[string]string{
		"README.md":              "fine\nsee " + slash + "work/main and /etc/etcd",
		"docs/a.txt":             "cd=\"" + slash + "home/ada",
		"p/a.go":                 "package p // ../" + "shared/DESIGN.md",
		".ci/run":                slash + "root/go",
		".git/config":            slash + "root/go",
		"taskledger-data/log":    slash + "root/go",
		"proof/1f/race.log":      slash + "root/go",
		"p/binary":               "\x00" + slash + "root/go",
		"docs/homework/notes.md": "the home/work of framework/ and dir/../../" + "root/../secret",
	}))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, ".ci/run:1: ", "README.md:2: ", "docs/a.txt:1: ", "p/a.go:1: ")
}

func TestMentions_CatchesWhatAPackageDoesNotExport(t *testing.T) {
	s := loadTree(t, map[string]string{
		"p/a.go":          "package p\ntype A struct{ B int }\nfunc (A) C() {}\nconst D = 1\nvar x interface{ E() }",
		"q/b.go":          "package q\n// It is of p.A, p.B, p.C, p.D and p.E.\nvar y = 1 // as p.F is, and r.G",
		"q/b_test.go":     "package q\n/* p.H */",
		"p/internal/r.go": "package r",
	})
	equal(t, s.Mentions(), "q/b.go:3: package p exports no F", "q/b_test.go:2: package p exports no H")
}

func TestComments_CountsThoseThatDescribeTheirSubjectByAClause(t *testing.T) {
	files := map[string]string{
		"p/a.go":      "package p\n// A is what\n// it is.\ntype A struct{ b int } // b is one. The one is how it goes.\n",
		"p/a_test.go": "package p\n\n// The names of C are those of D. E is that.\nvar c int",
		"p/b.go":      "package p\n/* F is of G. */\n",
		"q/a.go":      "package q\n// A is whether.\n",
		"q/fine.go": "package q\n// This one is a thing. It returns what is there, and how.\n// So many words are there before it is what." +
			" A is however. B isn't what.\n",
	}
	equal(t, loadTree(t, files).Comments(5))
	equal(t, loadTree(t, files).Comments(25))
	equal(t, loadTree(t, files).Comments(26), `5 comments read "X is what ...": lower the limit from 26 to 5`)
	equal(t, loadTree(t, files).Comments(4),
		`5 comments read "X is what ...", at most 4`,
		"p/a.go:2: A is what ...",
		"p/a.go:4: The one is how ...",
		"p/a_test.go:3: The names of C are those ...",
		"p/b.go:2: F is of ...",
	)
}

func TestDocuments_CatchesLinksAndFilesThatLeadNowhere(t *testing.T) {
	got, err := archtest.Documents(tree(map[string]string{
		"README.md": "# What it is\n[a](docs/a.md) [b](docs/b.md#top)\n[self](#what-it-is) [web](https://x.org/y#z)\n" +
			"`p/a.go` and `a.go`\n`q/a.go`\n[gone](docs/c.md)\n[no](#what)",
		"docs/a.md":    "see [up](../README.md#what-it-is) and [up](../README.md#top)",
		"docs/b.md":    "**p/** `a.go`\n\n**q/**\n`a.go`\n## Top\n`a.go`",
		"p/a.go":       "package p",
		"CHANGELOG.md": "`old.go` is gone",
	}))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, "README.md:5: there is no file q/a.go", "README.md:6: nothing is at docs/c.md", "README.md:7: nothing is at #what",
		"docs/a.md:1: nothing is at ../README.md#top", "docs/b.md:4: there is no file a.go")
}

func TestLongDocuments_CatchesLongLinesButThoseOfCodeAndLongFiles(t *testing.T) {
	long := strings.Repeat("ä", 141)
	got, err := archtest.LongDocuments(tree(map[string]string{
		"README.md": "short\n" + long + "\n```\n" + long + "\n```\n    " + long + "\n",
		"a.md":      "1\n2\n3\n",
	}), map[string]int{"a.md": 2, "README.md": 6})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, "README.md:2: 141 columns", "a.md: 3 lines")
}

func TestLoad_ReportsCodeThatCannotBeParsed(t *testing.T) {
	if _, err := archtest.Load(tree(map[string]string{"p/a.go": "package"})); err == nil || !strings.Contains(err.Error(), "p/a.go") {
		t.Errorf("Load = %v, want an error that names the file", err)
	}
	if _, err := archtest.Load(fstest.MapFS{}); err == nil {
		t.Error("a tree without go.mod was loaded")
	}
}
