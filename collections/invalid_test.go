package collections_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"taskledger/collections"
	"taskledger/events"
)

// in returns a file of one collection, c of source s, with a key more, in line 5 and column 9.
func in(line string) string {
	return "sources:\n  s:\n    collections:\n      - name: c\n        " + line + "\n"
}

// Every problem is told with the place and the field where it stands; all of them are listed here.
func TestParse_RefusesWhatIsWrongByLineColumnAndField(t *testing.T) {
	const c = "sources.s.collections[0]."
	for _, f := range []struct {
		text string
		want []string // LINE:COLUMN FIELD: part of the text
	}{
		{"", []string{"1:1 sources: missing: the file is empty"}},
		{"# nothing\n", []string{"1:1 sources: missing: the file is empty"}},
		{"[]\n", []string{"1:1 : a list, want a mapping"}},
		{"~\n", []string{"1:1 : nothing, want a mapping"}},
		{"defaults: {}\n", []string{"1:1 sources: missing"}},
		{"sources:\n", []string{"1:9 sources: nothing, want a mapping"}},
		{"sources: {}\nsource: {}\n", []string{"2:1 source: unknown key, want sources or defaults"}},
		{"sources: {}\n---\nsources: {}\n", []string{"2:1 : a second document"}},
		{"sources: {}\n \x01", []string{"2:2 : byte 0x01: want UTF-8 without control characters"}},
		{"sources: {ä: \xff}", []string{"1:14 : byte 0xFF"}},
		{"sources:\n  s:\n    a: 1\n   b: 2\n", []string{"4:4 : did not find expected key"}},
		{"sources: [\n", []string{"2:1 : did not find"}},
		{"sources: {s: {}}\n", []string{"1:14 sources.s.collections: missing"}},
		{"sources: {s: {collections: {}}}\n", []string{"1:28 sources.s.collections: a mapping, want a list"}},
		{"sources: {s: {collections: [c]}}\n", []string{
			`1:29 sources.s.collections[0]: the text "c", want a mapping`,
		}},
		{"sources: {1: {collections: []}}\n", []string{"1:11 sources.1: 1 without quotes as a key, want a text"}},
		{"sources: {'': {collections: []}}\n", []string{"1:11 sources.: empty"}},
		{"sources: {a/b: {collections: []}}\n", []string{"1:11 sources.a/b: \"a/b_\": byte 1 is '/'"}},
		{"sources:\n  a b: {collections: [{name: c}, {name: ü}, {name: c}]}\n", []string{
			`2:3 sources."a b": "a b_": byte 1`,
			`2:41 sources."a b".collections[1].name: "S_ü": byte 2 is 'ü'`,
			`2:52 sources."a b".collections[2].name: "c" is there twice: the first one is in line 2`,
		}},
		{"sources: {'store:x': {collections: []}}\n", []string{"1:11 sources.store:x: \"store:x_\": reserved"}},
		{"sources:\n  s: {collections: [], name: x}\n", []string{
			"2:24 sources.s.name: unknown key, want one of collections, args",
		}},
		{"sources:\n  s: {collections: []}\n  t: {collections: []}\n  s: {}\n", []string{
			"4:3 sources.s: is there twice: the first one is in line 2",
		}},
		{"sources:\n  s: {collections: []}\ndefaults:\n  name: x\n", []string{
			"4:3 defaults.name: unknown key, want one of args",
		}},

		{in("nam: d"), []string{"5:9 " + c + "nam: unknown key, want one of name, args, attempts, dir"}},
		{in("name: d"), []string{"5:9 " + c + "name: is there twice: the first one is in line 4"}},
		{in("keep: 5\n        keep: 6"), []string{"6:9 " + c + "keep: is there twice: the first one is in line 5"}},
		{in("\"a\\nb\": 1"), []string{"5:9 " + c + `"a\nb": unknown key`}},
		{"sources: {s: {collections: [{}]}}\n", []string{"1:29 " + c + "name: missing"}},
		{"sources: {s: {collections: [{name: ''}]}}\n", []string{"1:36 " + c + "name: empty"}},
		{"sources: {s: {collections: [{name: 5}]}}\n", []string{"1:36 " + c + "name: 5 without quotes, want a text"}},
		{"sources: {s: {collections: [{name: a b}]}}\n", []string{
			"1:36 " + c + `name: "s_a b": byte 3 is ' ', want [A-Za-z0-9._:-]`,
		}},
		{"sources: {s: {collections: [{name: ü}]}}\n", []string{"1:36 " + c + `name: "s_ü": byte 2 is 'ü'`}},
		{"sources: {s: {collections: [{name: " + strings.Repeat("n", 63) + "}]}}\n", []string{
			"1:36 " + c + "name: \"s_n",
		}},
		{"sources:\n  s:\n    collections:\n    - {name: c}\n    - {name: c}\n", []string{
			`5:14 sources.s.collections[1].name: "c" is there twice: the first one is in line 4`,
		}},
		{"sources:\n  a_b: {collections: [{name: c}]}\n  a: {collections: [{name: b_c}]}\n", []string{
			`3:28 sources.a.collections[0].name: "b_c" of source "a" and "c" of source "a_b", line 2, have the same id, "a_b_c"`,
		}},

		{"defaults: &d {keep: 5}\nsources: {s: {collections: [*d]}}\n", []string{
			"2:29 sources.s.collections[0]: an alias, which no file may have",
		}},
		{"defaults: &d {keep: 5}\nsources: {s: {<<: *d, collections: []}}\n", []string{
			"2:15 sources.s.<<: a merge key, which no file may have, as a key",
		}},
		{in("driver: go:x\n        params: {a: &a [x], b: [*a]}"), []string{"6:33 " + c + "params.b[0]: an alias"}},

		{in("schedule: 5"), []string{"5:19 " + c + "schedule: 5 without quotes, want a text"}},
		{in("schedule:"), []string{"5:18 " + c + "schedule: nothing, want a text"}},
		{in("schedule: '30 3 * * 1-5'"), []string{
			"5:19 " + c + `schedule: 5 fields, want 6 or 7: second minute hour day-of-month ` +
				`month day-of-week [year]; did you mean "0 30 3 ? * MON-FRI"?`,
		}},
		{in("schedule: 0 0 0 30 2 ?"), []string{`5:19 ` + c + `schedule: "0 0 0 30 2 ?" never fires`}},
		{in("schedule: " + strings.Repeat("x", 513)), []string{
			"5:19 " + c + "schedule: 513 bytes exceed the limit of 512",
		}},
		{in("timezone: Atlantis/Poseidonis"), []string{`5:19 ` + c + `timezone: "Atlantis/Poseidonis" is not known`}},
		{in("timezone: Local"), []string{`5:19 ` + c + `timezone: "Local" is not known`}},
		{in("priority: 0"), []string{"5:19 " + c + "priority: 0, want 1 to 9223371"}},
		{in("priority: -1"), []string{"5:19 " + c + "priority: -1, want 1 to 9223371"}},
		{in("priority: 9223372"), []string{"5:19 " + c + "priority: 9223372"}},
		{in("priority: 18446744073709551616"), []string{
			"5:19 " + c + "priority: 18446744073709551616 without quotes, want a whole number",
		}},
		{in("priority: 1.5"), []string{"5:19 " + c + "priority: 1.5 without quotes, want a whole number"}},
		{in("priority: '1'"), []string{"5:19 " + c + `priority: the text "1", want a whole number`}},
		{in("attempts: -1"), []string{"5:19 " + c + "attempts: -1, want 0 to 1000000"}},
		{in("keep: 1001"), []string{"5:15 " + c + "keep: 1001"}},
		{in("keep: -1"), []string{"5:15 " + c + "keep: -1, want 0 to 1000"}},
		{in("grace: -1s"), []string{"5:16 " + c + "grace: -1s, want 0 to ten years"}},
		{in("keep: !!int x"), []string{"5:15 " + c + "keep: x without quotes, want a whole number"}},
		{in("timeout: 90"), []string{"5:18 " + c + "timeout: 90 without quotes, want a text"}},
		{in("timeout: 2x"), []string{"5:18 " + c + `timeout: duration "2x", want a text such as 90s or 1h30m`}},
		{in("timeout: -1s"), []string{"5:18 " + c + "timeout: -1s, want 0 to 87600h0m0s"}},
		{in("grace: 99999h"), []string{"5:16 " + c + "grace: 99999h0m0s, want 0 to ten years"}},
		{in("jitter: -1s"), []string{"5:17 " + c + "jitter: -1s, want 0 to ten years"}},
		{in("overlap: forbit"), []string{`5:18 ` + c + `overlap: "forbit", want forbid, allow or replace`}},
		{in("misfire: twice"), []string{`5:18 ` + c + `misfire: "twice", want once, skip or all`}},
		{in("start: tomorrow"), []string{`5:16 ` + c + `start: "tomorrow", want a time such as 2027-01-31T08:00:00Z`}},
		{in("start: 2027-01-01"), []string{`5:16 ` + c + `start: "2027-01-01", want a time such as`}},
		{in("start: 2027"), []string{"5:16 " + c + "start: 2027 without quotes, want a text"}},
		{in("start: 1969-01-01T00:00:00Z"), []string{
			"5:16 " + c + "start: 1969-01-01T00:00:00Z, want a time of the years 1970 to 9999",
		}},
		{in("start: 2027-01-02T00:00:00Z\n        end: 2027-01-01T00:00:00Z"), []string{
			"6:14 " + c + "end: it is before start",
		}},
		{in("misfire: x\n        overlap: y\n        schedule: z"), []string{
			`5:18 ` + c + `misfire: "x", want`,
			`6:18 ` + c + `overlap: "y", want`,
			`7:19 ` + c + `schedule: 1 fields, want 6 or 7`,
		}},
		{"sources: {}\ndefaults: {overlap: x}\n", []string{`2:21 defaults.overlap: "x", want forbid`}},
		{in("pause_on_failure: yes"), []string{`5:27 ` + c + `pause_on_failure: the text "yes", want true or false`}},

		{in("driver: exce"), []string{`5:17 ` + c + `driver: unknown driver "exce", want exec, fetch, noop or go:NAME`}},
		{in("driver: go:My_API"), []string{`5:17 ` + c + `driver: unknown driver "go:My_API"`}},
		{in("driver: [exec]"), []string{"5:17 " + c + "driver: a list, want a text"}},
		{in("driver: exec"), []string{"4:9 " + c + "program: missing: driver exec wants it"}},
		{in("program: x"), []string{"5:18 " + c + "program: the driver noop, since none is named, has no such key"}},
		{in("driver: exec\n        program: ''\n        url: 'http://x/'"), []string{
			"6:18 " + c + "program: empty",
			"7:14 " + c + "url: driver exec has no such key",
		}},
		{in("driver: exec\n        program: x\n        args: [a, 5, \"\\0\"]\n        dir: rel"), []string{
			"7:19 " + c + "args[1]: 5 without quotes, want a text",
			"7:22 " + c + "args[2]: holds a zero byte",
			`8:14 ` + c + `dir: "rel", want an absolute path`,
		}},
		{in("driver: exec\n        program: x\n        args: x\n" +
			"        env: {PATH: /bin, 'A=B': x, C: 1, D: d, D: e}"), []string{
			`7:15 ` + c + `args: the text "x", want a list`,
			"8:15 " + c + "env.PATH: cannot be given: it is the node's",
			`8:27 ` + c + `env.A=B: "A=B" is no name of a variable`,
			"8:40 " + c + "env.C: no text: want it in quotes",
			"8:49 " + c + "env.D: is there twice",
		}},
		{in("driver: fetch"), []string{
			"4:9 " + c + "to: missing: driver fetch wants it",
			"4:9 " + c + "url: missing: driver fetch wants url or path",
		}},
		{in("driver: fetch\n        url: http://x/\n        path: x\n        to: y"), []string{
			"7:15 " + c + "path: url is there, too: want one of both",
		}},
		{in("driver: fetch\n        url: ftp://u:secret@x/\n        to: ../y"), []string{
			"6:14 " + c + "url: want one of http or https",
			`7:13 ` + c + `to: "../y", want a relative path of names`,
		}},
		{in("driver: fetch\n        url: 'http://u:secret@%zz/'\n        to: /y"), []string{
			`6:14 ` + c + `url: no URL: before "@" characters such as "/"`,
			`7:13 ` + c + `to: "/y", want a relative path`,
		}},
		{in("driver: fetch\n        url: 'http://u:secret/x@host/'\n        to: y"), []string{
			`6:14 ` + c + `url: no URL: before "@"`,
		}},
		{in("driver: fetch\n        url: 'http://%zz/'\n        to: y"), []string{
			`6:14 ` + c + `url: no URL: invalid URL escape "%zz"`,
		}},
		{in("driver: fetch\n        path: a\\b\n        to: ."), []string{
			`6:15 ` + c + `path: "a\\b", want a relative path`,
			`7:13 ` + c + `to: ".", want a relative path`,
		}},
		{"sources:\n  s:\n    driver: fetch\n    url: http://x/\n    to: a\n    collections: [{name: c}, {name: d}, {name: e, to: b}]\n" +
			"  t: {driver: fetch, collections: [{name: f, path: x, to: b}]}\n", []string{
			`5:9 sources.s.to: "a": collections s_c and s_d are fetched to it, want a file for each`,
			`7:59 sources.t.collections[0].to: "b": collections s_e and t_f are fetched to it`,
		}},
		{"sources:\n  s:\n    driver: fetch\n    url: http://x/\n    collections:\n" +
			"      - {name: c, to: a/b}\n      - {name: d, to: a-b}\n      - {name: e, to: a/b/c/d}\n" +
			"      - {name: f, to: a}\n      - {name: g, to: a/bc}\n", []string{
			`8:23 sources.s.collections[2].to: "a/b/c/d": it and "a/b" of collection s_c lie in one another`,
			`9:23 sources.s.collections[3].to: "a": it and "a/b" of collection s_c lie in one another`,
			`10:23 sources.s.collections[4].to: "a/bc": it and "a" of collection s_f lie in one another`,
		}},
		{in("driver: fetch\n        url: 'http:///x'\n        to: a//b"), []string{
			"6:14 " + c + "url: no host",
			`7:13 ` + c + `to: "a//b", want a relative path`,
		}},
		{in("driver: go:x\n        params: {a: .nan, b: !!binary eA==, c: !mine x, 1: 1}"), []string{
			"6:21 " + c + "params.a: .nan without quotes: JSON has no such number",
			`6:30 ` + c + `params.b: the tag "!!binary", want one of JSON`,
			`6:48 ` + c + `params.c: the tag "!mine", want one of JSON`,
			"6:57 " + c + "params.1: 1 without quotes as a key, want a text",
		}},
		{in("driver: go:x\n        params: " + strings.Repeat("[", 101) + strings.Repeat("]", 101)), []string{
			"6:117 " + c + "params" + strings.Repeat("[0]", 100) + ": lies in more than 100 others",
		}},
		{in("driver: go:x\n        params: " + strings.Repeat("x", events.MaxScheduleParamBytes)), []string{
			"6:17 " + c + "params: 63490 bytes as JSON exceed the limit of 63488",
		}},
		{in("driver: exec\n        program: x\n        args: [" + strings.Repeat("x", 40_000) + "]\n" +
			"        dir: /" + strings.Repeat("x", 40_000)), []string{
			"4:9 " + c + "params: ",
		}},
	} {
		got := problems(t, f.text)
		for i, p := range got {
			is := fmt.Sprintf("%d:%d %s: %s", p.Line, p.Column, p.Field, p.Text)
			if i >= len(f.want) || !strings.HasPrefix(is, f.want[i]) || strings.Contains(is, "secret") {
				t.Errorf("%s\n%s", events.Head(f.text, 200), events.Head(is, 600))
			}
		}
		if len(got) < len(f.want) {
			t.Errorf("%s\n%d problems, want %q", events.Head(f.text, 200), len(got), f.want)
		}
	}
}

// What many inherit is told once, and what nobody inherits, too.
func TestParse_TellsWhatIsInheritedOnceWhereItStands(t *testing.T) {
	got := problems(t, `
defaults: {timezone: Nowhere}
sources:
  s: {schedule: x, collections: [{name: a}, {name: b}]}
  t: {misfire: x, collections: []}
`)
	var all []string
	for _, p := range got {
		all = append(all, fmt.Sprint(p.Line, " ", p.Field))
	}
	if text := strings.Join(all, ", "); text != "2 defaults.timezone, 4 sources.s.schedule, 5 sources.t.misfire" {
		t.Error(text)
	}
}

func TestParse_TellsAHundredProblemsAndCountsTheOthers(t *testing.T) {
	var text strings.Builder
	text.WriteString("sources:\n  s:\n    collections:\n")
	for range 150 {
		text.WriteString("    - {keep: x, misfire: x}\n")
	}
	_, _, err := collections.Parse("sync.yaml", []byte(text.String()))
	invalid, is := errors.AsType[*collections.InvalidFileError](err)
	if !is || len(invalid.Problems) != 100 || invalid.More != 350 {
		t.Fatalf("%d problems and %d more: %v", len(invalid.Problems), invalid.More, is)
	}
	lines := strings.Split(err.Error(), "\n")
	const first = "sync.yaml:4:7: sources.s.collections[0].name: missing"
	if len(lines) != 101 || lines[0] != first || lines[100] != "and 350 problems more" {
		t.Errorf("%d lines: %s ... %s", len(lines), lines[0], lines[len(lines)-1])
	}
}

func TestParse_BoundsAFile(t *testing.T) {
	var many strings.Builder
	many.WriteString("sources:\n  s:\n    driver: noop\n    collections:\n")
	for i := range collections.MaxCollections {
		fmt.Fprintf(&many, "    - name: c%d\n", i)
	}
	if file := parse(t, many.String()); len(file.Collections) != 10_000 {
		t.Errorf("%d collections", len(file.Collections))
	}
	long := "driver: go:x\n    params: " + strings.Repeat("x", 60_000)
	inherited := strings.Replace(many.String(), "driver: noop", long, 1)
	const more = "  t:\n    collections: [{name: c, driver: noop}]\n" // a limit is told once
	levels := "sources: " + strings.Repeat("[", 1<<20)
	long = "# " + strings.Repeat("x", collections.MaxBytes)
	for _, f := range []struct{ text, want string }{
		{many.String() + "    - name: c\n" + more, "10005:7 sources.s.collections[10000]: more than 10000 collections"},
		{inherited + more, "285:7 sources.s.collections[279]: the parameters of all collections up to here exceed"},
		{long, "1:1 : 4194306 bytes exceed the limit of 4194304"},
		{levels, "1:10010 : exceeded max depth"},
	} {
		got := problems(t, f.text)
		is := fmt.Sprintf("%d:%d %s: %s", got[0].Line, got[0].Column, got[0].Field, got[0].Text)
		if len(got) != 1 || !strings.HasPrefix(is, f.want) {
			t.Errorf("%d problems: %s, want %s", len(got), is, f.want)
		}
	}
}

// An alias bomb takes no more than its text, since no alias is followed.
func TestParse_FollowsNoAlias(t *testing.T) {
	bomb := "defaults:\n  driver: go:x\n  params:\n    a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		bomb += fmt.Sprintf("    a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), i)
	}
	got := problems(t, bomb+"sources: {}\n")
	if len(got) != 100 || !strings.Contains(got[0].Text, "alias") || got[0].Line != 5 {
		t.Errorf("%d problems, the first one %s", len(got), got[0])
	}
}
