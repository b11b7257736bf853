package main_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commandLine is a command line, and what it comes to.
type commandLine struct {
	line string // words apart by blanks; '...' holds a word together
	code int
	out  string // a pattern of standard output; "" = nothing is printed
	err  string // a pattern of standard error; "" = nothing is said
}

const anything = `(?s).*`

// everyCommand has right and wrong input of each command. Lines are typed one after the other beside one node.
var everyCommand = []commandLine{
	{"submit noop --id right --wait", 0, `^right\n$`, ""},
	{"submit sleep '{\"duration\":\"1ms\"}' --id tagged --tag urgent --wait", 0, `^tagged\n$`, ""},
	{"enqueue noop", 2, "", `unknown command "enqueue": is submit meant\?\nsee: .* --help\n$`},
	{"queue list", 2, "", `unknown command "queue": is behaviors or counts meant\?`},
	{"jobs", 2, "", `unknown command "jobs": is list meant\?`},
	{"job retry right", 2, "", `unknown command "job": is get or list meant\?`},
	{"submit noop --retries 3", 2, "", `unknown flag: --retries: is --max-attempts meant\?`},
	{"submit --batch requests.jsonl --from-line 3", 2, "", `--from-line 3: the last request is on line 2`},
	{"submit --batch requests.jsonl --from-line 0", 2, "", `--from-line 0: want 1 or more: lines count from 1`},
	{"submit sleep null", 2, "", `parameters: null, want an object`},
	{"submit noop --delay 1s --at 10m", 2, "", `--at and --delay: want one of them alone\n`},
	{"schedule create x", 2, "", `schedule: unknown command "create": is set meant\?`},
	{"store grups", 2, "", `store: unknown command "grups": is groups meant\?`},
	{"work lst", 2, "", `work: unknown command "lst": want errors, rerun, reset or show\n`},
	{"restore somewhere --durability strict", 2, "", `unknown flag: --durability`},
	{"submit noop --delay never", 2, "", `--delay never: want a duration such as 90s\nsee: .* submit --help\n$`},
	{"submit slep", 5, "", `unknown behavior: no node runs slep.*\bsleep\b`},
	{"submit --batch requests.jsonl", 0, `(?s)1 +batch-1.*2 +batch-2`, ""},
	{"submit --batch requests.jsonl --from-line 2", 0, `2 +batch-2\n$`, `1 of 1 tasks were there already`},
	{"submit sleep '{\"duration\":\"1h\"}' --id long --delay 1h", 0, `^long\n$`, ""},
	{"behaviors", 0, `(?m)^sleep +a +- +{"duration":"1s"}$`, ""},
	{"behaviors extra", 2, "", `behaviors: want no arguments, got "extra"\nsee: .* behaviors --help\n$`},
	{"get right long", 0, `(?m)^id +right$`, ""},
	{"get nobody", 3, "", `task nobody: no such task`},
	{"get rihgt", 3, "", `task rihgt: no such task.*; is right meant\?\n$`},
	{"history rihgt", 3, "", `; is right meant\?\n$`},
	{"wait rihgt", 3, "", `; is right meant\?\n$`},
	{"list --status success", 0, `(?m)^right +noop +SUCCESS +final `, ""},
	{"list --status failed", 2, "", `is FAILURE meant\?`},
	{"list --substatus finl", 2, "", `is final meant\?`},
	{"list --statsu SUCCESS", 2, "", `unknown flag: --statsu: is --status meant\?`},
	{"list --behavior nop", 0, `^ID .*\n$`, `no node runs nop: is noop meant\?\n$`},
	{"list --tag urgent", 0, `(?m)^tagged `, ""},
	{"list --tag urgnet", 0, `^ID .*\n$`, `no task has the tag urgnet: is urgent meant\?\n$`},
	{"list --created-from 1h --limit 0", 0, `(?m)^right `, ""},
	{"list --created-to 1h", 0, `^ID .*\n$`, ""},
	{"list --created-from yesterday", 2, "", `--created-from yesterday: want a time such as .*, or a duration such as 10m`},
	{"list --limit -1", 2, "", `--limit -1: want 0 or more`},
	{"list --data nowhere", 4, "", `no node runs on nowhere; none ever did; --await-node waits for one; start one with: .* serve --data nowhere\n$`},
	{"list --status SUCCESS", 0, `(?m)^right +noop +SUCCESS +final `, ""},
	{"list --status DONE", 2, "", `--status: status "DONE": want CREATED, RUNNING, SUCCESS or FAILURE`},
	{"counts", 0, `(?m)^noop +SUCCESS +final +3$`, ""},
	{"counts extra", 2, "", `counts: want no arguments, got "extra"`},
	{"suspend long", 0, "", ""},
	{"suspend right", 5, "", `task right: cannot suspend while SUCCESS, final`},
	{"resume long", 0, "", ""},
	{"resume right", 0, "", `task right was not suspended`},
	{"resume nobody", 3, "", `task nobody: no such task`},
	{"run-now long", 0, "", ""},
	{"run-now nobody", 3, "", `task nobody: no such task`},
	{"cancel long --reason enough", 0, "", ""},
	{"cancel right", 5, "", `task right: cannot cancel while SUCCESS, final`},
	{"wait long", 1, "", `enough`},
	{"wait nobody", 3, "", `wait for nobody`},
	{"retry right", 0, "", ""},
	{"retry nobody", 3, "", `: state of nobody: no such task`},
	{"wait right", 0, "", ""},
	{"delete long long", 0, "", ""},
	{"delete long", 3, "", `get --forgotten`},
	{"cancel --filter stat=FAILURE", 2, "", `is status meant\?`},
	{"cancel --filter created-from=10x", 2, "", `--filter: created-from 10x: want a time such as .*, or a duration such as 10m`},
	{"cancel --filter created-to=1h", 0, `^BEHAVIOR `, `0 tasks match`},
	{"delete", 2, "", `delete: want ID\.\.\., got 0 arguments`},
	{"pause noop --reason x", 0, "", ""},
	{"pause nope", 5, "", `unknown behavior: no node runs it; --force`},
	{"settings", 0, `(?m)^noop +.* x$`, ""},
	{"settings extra", 2, "", `settings: want no arguments, got "extra"`},
	{"unpause noop", 0, "", ""},
	{"unpause", 2, "", `unpause: want BEHAVIOR\.\.\.`},
	{"explain right", 0, `(?m)^right +finished +final .* it has ended with SUCCESS$`, ""},
	{"explain nobody", 3, "", `task nobody: no such task`},
	{"history right", 0, `(?s)Created.*Started.*Succeeded.*Rescheduled`, ""},
	{"history right --limit -1", 2, "", `--limit`},
	{"history nobody", 3, "", `history of nobody: no such task`},
	{"state right --seq 1", 0, `(?m)^status +CREATED$`, ""},
	{"state right", 2, "", `state: want --at TIME, or --seq NUMBER`},
	{"state right --at 2020-01-01T00:00:00Z", 3, "", `no such task at 2020-01-01T00:00:00\.000Z`},
	{"logs right", 0, `^TIME `, `the task has written none`},
	{"logs nobody", 3, "", `nobody`},
	{"nodes", 0, `(?m)^a +a-`, ""},
	{"nodes extra", 2, "", `nodes: want no arguments, got "extra"`},
	{"shards", 0, `(?m)^15 +a a-`, ""},
	{"shards extra", 2, "", `shards: want no arguments, got "extra"`},
	{"stats", 0, `(?m)^noop +3 +4 +4 `, ""},
	{"stats extra", 2, "", `stats: want no arguments, got "extra"`},
	{"replay --task right", 0, `"kind":"Created"`, ""},
	{"replay --task right --since 1h --until 0s", 0, `"kind":"Created"`, ""},
	{"replay --task nobody", 3, "", `replay of nobody: no such task`},
	{"replay --since 1h --until 2h", 2, "", `--since 1h: want a time that is not after that of --until, 2h`},
	{"replay --status failed", 2, "", `is FAILURE meant\?`},
	{"replay --since yesterday", 2, "", `--since yesterday: want a time such as .*, or a duration such as 10m`},
	{"verify", 0, `(?m)^no problem in \d+ entries of 16 shards$`, ""},
	{"verify --archive", 2, "", `unknown flag: --archive: is --with-archive meant\?`},
	{"verify no-such-file", 2, "", `open no-such-file`},
	{"export --task right --out right.export", 0, "", ""},
	{"export", 2, "", `export: want --task ID, or --shard NUMBER`},
	{"export --task nobody", 3, "", `nobody`},
	{"verify right.export", 0, `(?m)^no problem in \d+ entries of right\.export$`, anything},
	{"checkpoint new-key auditor.key", 0, `^taskledger\+`, ""},
	{"checkpoint new-key auditor.key", 2, "", `auditor\.key: file exists`},
	{"checkpoint --signing-key auditor.key", 0, `^taskledger checkpoint\n`, ""},
	{"checkpoint --key auditor.key", 2, "", `unknown flag: --key: is --signing-key meant\?`},
	{"checkpoint --signing-key no-such-key", 2, "", `--signing-key: read key: open no-such-key`},
	{"health", 0, `^ready\n$`, ""},
	{"health --nats-nkey nats.nk", 0, `^ready\n$`, ""}, // of the node that it asks
	{"health --data nowhere", 4, "", `no node runs on nowhere`},
	{"ui", 0, `/ui/login\?link=`, ""},
	{"ui extra", 2, "", `ui: want no arguments, got "extra"`},
	{"version", 0, `^taskledger \d+\.\d+\.\d+`, ""},
	{"version extra", 2, "", `version: want no arguments, got "extra"`},
	{"completion bash", 0, `__complete`, ""},
	{"completion tcsh", 2, "", `completion of "tcsh": want bash, zsh, fish or powershell`},
	{"schedule set hourly --cron @hourly --behavior noop", 0, `(?s)made.*every hour`, ""},
	{"schedule set hourly --cron '61 * * * *' --behavior noop", 2, "", `cron`},
	{"schedule get hourly", 0, `(?m)^fires +every hour$`, ""},
	{"schedule get nope", 3, "", `schedule nope: no such schedule`},
	{"schedule get hourlyy", 3, "", `schedule hourlyy: no such schedule; is hourly meant\?\n$`},
	{"schedule list --after hourly", 2, "", `unknown flag: --after: is --cursor meant\?`},
	{"schedule list --cursor hourly", 0, `^NAME .*\n$`, ""},
	{"schedule list", 0, `(?m)^hourly +noop `, ""},
	{"schedule list extra", 2, "", `list: want no arguments, got "extra"`},
	{"schedule next @hourly", 0, `fires +every hour`, ""},
	{"schedule next '0 0 0 1 1 ? 2020'", 0, `(?m)^next +never: `, ""},
	{"schedule next @hourly --limit 0", 2, "", `--limit 0: want 1 to 1000`},
	{"schedule next '61 * * * *'", 2, "", `cron: `},
	{"schedule pause hourly", 0, "", ""},
	{"schedule pause nope", 3, "", `schedule nope: no such schedule`},
	{"schedule resume hourly", 0, "", ""},
	{"schedule resume nope", 3, "", `schedule nope: no such schedule`},
	{"schedule run hourly", 0, `^\S+\n$`, ""},
	{"schedule run nope", 3, "", `schedule nope: no such schedule`},
	{"schedule backfill hourly 3h 1h", 0, `^ticks +[23]\n$`, ""},
	{"schedule backfill hourly", 2, "", `backfill: want NAME FROM TO, got 1 argument`},
	{"schedule backfill hourly 2000h 1h", 2, "", `ticks: 1001 exceeds the limit of 1000`},
	{"schedule set slow --cron @hourly --behavior sleep --params '{\"duration\":\"1h\"}'", 0, `made`, ""},
	{"schedule backfill slow 9h 1h", 0, `^ticks +[89]\n$`, ""},
	{"schedule end-backfill slow", 0, "", ""},
	{"schedule end-backfill hourly", 5, "", `schedule hourly: no backfill is under way`},
	{"schedule end-backfill nope", 3, "", `schedule nope: no such schedule`},
	{"schedule delete hourly", 0, "", ""},
	{"schedule delete hourly", 3, "", `schedule hourly: no such schedule`},
	{"store update '{\"adds\":[{\"group\":\"map\",\"data\":\"x\"}]}'", 0, `(?m)^1 +map `, ""},
	{"store update '{\"adds\":1}'", 2, "", `adds`},
	{"store groups", 0, `(?m)^map$`, ""},
	{"store groups extra", 2, "", `groups: want no arguments, got "extra"`},
	{"store stats", 0, `(?m)^map +1 `, ""},
	{"store stats extra", 2, "", `stats: want no arguments, got "extra"`},
	{"store list map", 0, `(?m)^1 +map `, ""},
	{"store list", 2, "", `list: want GROUP, got 0 arguments`},
	{"store list map --cursor x", 2, "", `--cursor "x": want a number of 1 to 2\^53`},
	{"store get 1", 0, `(?m)^1 +map `, ""},
	{"store get x", 2, "", `id "x": want a number of 1 to 2\^53`},
	{"store get 99", 3, anything, `task 99 of the store default: no such task`},
	{"store claim map", 0, `map`, ""},
	{"store claim", 2, "", `claim: want GROUP, got 0 arguments`},
	{"sync diff sync.yaml", 0, `^added +here_nightly\n`, ""},
	{"sync diff wrong.yaml", 2, "", `wrong\.yaml:1:`},
	{"sync apply sync.yaml", 0, `1 added, 0 changed, 0 removed`, ""},
	{"sync apply wrong.yaml", 2, "", `wrong\.yaml:1:.*\n.*problems: 1; nothing was changed`},
	{"sync list", 0, `(?m)^here_nightly +noop `, ""},
	{"sync list nowhere", 3, "", `source "nowhere" has no collections`},
	{"sync run here nightly", 0, `^here_nightly_`, ""},
	{"sync run here nope", 3, "", `collection "nope" of source "here"`},
	{"sync pause here nightly", 0, "", ""},
	{"sync pause here", 2, "", `pause: want SOURCE COLLECTION, got 1 argument`},
	{"sync resume here nightly", 0, "", ""},
	{"sync resume here nope", 3, "", `collection "nope" of source "here"`},
	{"sync logs here nightly", 0, `^TIME `, anything},
	{"sync logs nope", 2, "", `want SOURCE_COLLECTION_UUID, or the names of a source and a collection`},
	{"token new ci --role submitter", 0, `^tl_[a-z2-7]+\n$`, ""},
	{"token new ci --role king", 2, "", `role`},
	{"token new ci --role viewer --api-tokens nowhere/tokens.json", 2, "", `nowhere: there is no such directory: .*--api-tokens`},
	{"token list", 0, `(?m)^\S+ +ci +submitter `, ""},
	{"token list extra", 2, "", `list: want no arguments, got "extra"`},
	{"token revoke nope", 2, "", `holds no token with the ID nope`},
	{"work show right", 3, "", `task right has no work`},
	{"work show", 2, "", `show: want ID`},
	{"work errors right", 3, "", `task right has no work`},
	{"work errors", 2, "", `errors: want ID`},
	{"work reset right", 3, "", `task right has no work`},
	{"work reset", 2, "", `reset: want ID`},
	{"work rerun right --failed", 3, "", `task right has no work`},
	{"work rerun right", 2, "", `rerun: want --failed`},
	{"mirror source target", 0, `^copied 1\ndeleted 0\n$`, anything},
	{"mirror --dir m source target", 2, "", `unknown flag: --dir: is --data meant\?`},
	{"mirror source", 2, "", `mirror: want SRC DST, got 1 argument`},
	{"check --join taskledger-data", 0, `join taskledger-data +true`, ""},
	{"check --join nowhere", 1, `join nowhere +false`, `does not work: join nowhere`},
	{"repair", 0, `^SHARD `, ""},
	{"repair extra", 2, "", `repair: want no arguments, got "extra"`},
	{"serve", 5, "", `in use`},
	{"serve --slots many", 2, "", `--slots many: want a whole number`},
	{"demo extra", 2, "", `demo: .*extra: no such file or directory`},
	{"copy --from etcd --to other", 5, "", `taskledger-data: directory is in use`},
	{"backup", 2, "", `backup: want DIR, got 0 arguments`},
	{"backup other", 5, "", `taskledger-data.*in use`},
	{"restore", 2, "", `restore: want DIR, got 0 arguments`},
	{"restore nowhere", 2, "", `no store in files is in nowhere`},
	{"bench --in-flight 0", 2, "", `--in-flight: want 1 to `},
	{"bench soak", 2, "", `bench: want no arguments, got "soak"`},
}

// Each command has right input and wrong input here, or its right input is named with the test that has it.
func TestCommands_EachSaysWhatCameOfRightAndWrongInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--name", "a", "--sync-root", ".", "--api", "127.0.0.1:0")
	const requests = `{"behavior":"noop","id":"batch-1"}` + "\n" + `{"behavior":"noop","id":"batch-2"}` + "\n"
	write(t, filepath.Join(dir, "requests.jsonl"), requests)
	write(t, filepath.Join(dir, "wrong.yaml"), "sources: []\n")
	write(t, filepath.Join(dir, "sync.yaml"), "sources: {here: {collections: [{name: nightly, driver: noop}]}}\n")
	write(t, filepath.Join(dir, "source", "a"), "a")
	write(t, filepath.Join(dir, "target", "a"), "another a")
	for _, c := range everyCommand {
		r := run(t, dir, words(c.line)...)
		if r.code != c.code || !says(r.out, c.out) || !says(r.err, c.err) {
			t.Errorf("%s: code %d, printed %q, said %q; want %d, %q, %q", c.line, r.code, r.out, r.err, c.code, c.out, c.err)
		}
		if words := repeated(r.err); words != "" {
			t.Errorf("%s: it says %q twice: %q", c.line, words, r.err)
		}
	}
}

// says reports whether a text has the pattern, or is empty as it should be.
func says(text, pattern string) bool {
	if pattern == "" {
		return text == ""
	}
	return regexp.MustCompile(pattern).MatchString(text)
}

// repeated returns the words of an error that it says twice in a row; "" = there are none.
func repeated(text string) string {
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSpace(line), ": ")
		for i := range parts[1:] {
			if parts[i] == parts[i+1] {
				return parts[i]
			}
		}
	}
	return ""
}

var word = regexp.MustCompile(`'[^']*'|\S+`)

// words splits a line as a shell would.
func words(line string) []string {
	all := word.FindAllString(line, -1)
	for i, w := range all {
		all[i] = strings.Trim(w, "'")
	}
	return all
}

// rightElsewhere names the tests that have the right input of a command, where it takes long or needs an earlier
// answer.
var rightElsewhere = map[string]string{
	"backup":       "TestCopy_OneWayAndBackExportsTheSameAndGoesOn",
	"bench":        "TestBench_PrintsEveryFigure",
	"copy":         "TestCopy_OneWayAndBackExportsTheSameAndGoesOn",
	"demo":         "TestDemo_AKilledNodeCostsNoChecksum",
	"restore":      "TestCopy_OneWayAndBackExportsTheSameAndGoesOn",
	"serve":        "every test of this package",
	"token revoke": "TestAPI_IsServedToTheUserAndToWhoHasAToken", // and those of package tokencli
	"work errors":  "those of package workcli",
	"work rerun":   "those of package workcli",
	"work reset":   "those of package workcli",
	"work show":    "those of package workcli",
}

func TestCommands_NoneIsLeftOutOfTheTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	commands := regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`)
	for _, m := range commands.FindAllStringSubmatch(must(t, dir, "--help"), -1) {
		leaves := []string{m[1]}
		switch m[1] {
		case "help", "completion":
			continue
		case "schedule", "store", "sync", "token", "work":
			leaves = nil
			fallthrough
		case "checkpoint":
			for _, below := range commands.FindAllStringSubmatch(must(t, dir, m[1], "--help"), -1) {
				leaves = append(leaves, m[1]+" "+below[1])
			}
		}
		for _, leaf := range leaves {
			has := func(right bool) bool {
				return slices.ContainsFunc(everyCommand, func(c commandLine) bool {
					return (c.code == 0) == right && (c.line == leaf || strings.HasPrefix(c.line, leaf+" "))
				})
			}
			if !has(false) {
				t.Errorf("%s has no wrong input in the table", leaf)
			}
			if !has(true) && rightElsewhere[leaf] == "" {
				t.Errorf("%s has no right input in the table", leaf)
			}
		}
	}
}
