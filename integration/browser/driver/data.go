package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// toSubmit is a task that is submitted.
type toSubmit struct {
	Behavior string `json:"behavior"`
	ID       string `json:"id"`
	Params   any    `json:"params,omitempty"`
	DelayMs  int64  `json:"delay_ms,omitempty"`
	Priority int64  `json:"priority,omitempty"`
}

// shell makes parameters of exec.
func shell(script string) any { return map[string]any{"program": "sh", "args": []string{"-c", script}} }

// pathOf escapes the id of a task for a path.
func pathOf(id string) string { return strings.ReplaceAll(id, "/", "~") }

func (n *node) submit(ctx context.Context, all ...toSubmit) error {
	for _, t := range all {
		if err := n.ask(ctx, http.MethodPost, "/v1/tasks", t, nil); err != nil {
			return fmt.Errorf("submit %.60s: %w", t.ID, err)
		}
	}
	return nil
}

// state holds what of a task data waits for.
type state struct {
	Status    string `json:"status"`
	Substatus string `json:"substatus"`
	Attempt   int    `json:"attempt"`
}

// await waits until a task is as it should be.
func (n *node) await(ctx context.Context, id string, is func(state) bool) error {
	var now state
	for end := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		if err := n.ask(ctx, http.MethodGet, "/v1/tasks/"+pathOf(id), nil, &now); err != nil {
			return err
		}
		if is(now) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("task %s is still %+v", id, now)
		}
	}
}

// verb does something with a task.
func (n *node) verb(ctx context.Context, id, verb string, body any) error {
	return n.ask(ctx, http.MethodPost, "/v1/tasks/"+pathOf(id)+"/"+verb, body, nil)
}

type reason struct {
	Reason string `json:"reason"`
}

// fillNothing makes no data.
func fillNothing(ctx context.Context, n *node) (samples, []shown, error) {
	var link struct{ Path string }
	if err := n.ask(ctx, http.MethodPost, "/ui/links", nil, &link); err != nil {
		return nil, nil, err
	}
	return nil, []shown{
		{name: "no-such-page", path: "/ui/none", status: http.StatusNotFound},
		{name: "no-such-task", path: "/ui/tasks/none", status: http.StatusNotFound},
		{name: "login-of-a-stranger", path: "/ui/login?next=%2Fui%2Ftasks", stranger: true},
		{name: "login-refused", path: "/ui/login", stranger: true, status: http.StatusUnauthorized,
			fill: `document.querySelector("#token").value = "wrong"`, press: "form.login button"},
		{name: "login-by-link", path: link.Path, stranger: true},
		{name: "login-by-link-that-is-spent", path: "/ui/login?link=spent", stranger: true},
	}, nil
}

// fillUsual makes data as a cluster has them that people use.
func fillUsual(ctx context.Context, n *node) (samples, []shown, error) {
	if err := all(
		func() error { return n.submitUsual(ctx) },
		func() error { return n.changeUsual(ctx) },
		func() error { return n.scheduleUsual(ctx) },
		func() error { return n.fillStore(ctx, "work", "resize", "thumbnail", "publish") },
		func() error { return n.applyCollections(ctx, "The orders of the shop", "sync-meters") },
		func() error { return n.await(ctx, "report/2026-05", succeeded) },
		func() error { return n.await(ctx, "invoices.2026-11-01/0000", succeeded) },
		func() error { return n.await(ctx, "upload/0", func(s state) bool { return s.Attempt >= 2 }) },
	); err != nil {
		return nil, nil, err
	}
	job, err := n.form(ctx, "/ui/jobs", url.Values{"operation": {"retry"}, "affinity-prefix": {"upload"}, "reason": {"the disk was full"}, "once": {"1"}})
	if err != nil {
		return nil, nil, err
	}
	return samples{
		"/ui/jobs/{job}":       {job},
		"/ui/tasks/{id}/logs":  {"/ui/tasks/report~2026-01/logs"},
		"/ui/tasks/{id}/state": {"/ui/tasks/upload~0/state", "/ui/tasks/upload~0/state?seq=2"},
		"/ui/submit":           {"/ui/submit?like=report%2F2026-01"},
		"/ui/tasks/{id}": {
			"/ui/tasks/report~2026-01", "/ui/tasks/upload~0", "/ui/tasks/import.customers~0", "/ui/tasks/import.customers~4",
			"/ui/tasks/reminder~0",
		},
		"/ui/schedules/{name}": {"/ui/schedules/nightly-report", "/ui/schedules/weekly.cleanup"},
		"/ui/stores/{name}":    {"/ui/stores/work", "/ui/stores/work?group=resize"},
	}, formsOf("invoices.2026-11-02", "reminder~4", "weekly.cleanup"), nil
}

func succeeded(s state) bool { return s.Status == "SUCCESS" }

// submitUsual submits tasks, of which some run, some wait, some have ended, and some fail.
func (n *node) submitUsual(ctx context.Context) error {
	var all []toSubmit
	for i := range 60 {
		all = append(all, toSubmit{Behavior: "noop", ID: fmt.Sprintf("invoices.2026-11-%02d/%04d", i%28+1, i), Params: map[string]any{"invoice": i}})
	}
	for i := range 5 {
		all = append(all,
			toSubmit{Behavior: "sleep", ID: fmt.Sprintf("import.customers/%d", i), Params: map[string]string{"duration": "1h"}, Priority: int64(i)},
			toSubmit{Behavior: "noop", ID: fmt.Sprintf("reminder/%d", i), DelayMs: 86_400_000 * int64(i+1)},
			toSubmit{Behavior: "exec", ID: fmt.Sprintf("report/2026-%02d", i+1), Params: shell("echo rows: 1234; echo done")},
			toSubmit{Behavior: "exec", ID: fmt.Sprintf("upload/%d", i), Params: shell("echo connection refused >&2; exit 3")})
	}
	for _, way := range ways { // that somebody changes
		for i := range 3 {
			all = append(all, toSubmit{Behavior: "noop", ID: fmt.Sprintf("change.%s/%d", way.name, i), DelayMs: 86_400_000})
		}
	}
	return n.submit(ctx, all...)
}

// changeUsual suspends and cancels tasks, and pauses a behavior.
func (n *node) changeUsual(ctx context.Context) error {
	for i := range 3 {
		if err := n.verb(ctx, fmt.Sprintf("reminder/%d", i), "suspend", reason{"the mail server moves this week"}); err != nil {
			return err
		}
	}
	return all(
		func() error { return n.verb(ctx, "import.customers/4", "cancel", reason{"started by mistake"}) },
		func() error {
			return n.ask(ctx, http.MethodPost, "/v1/behaviors/http/pause", reason{"the partner's site is down"}, nil)
		},
	)
}

// scheduleUsual sets a schedule that fires, and one that is paused.
func (n *node) scheduleUsual(ctx context.Context) error {
	nightly := map[string]any{"cron": "0 30 2 * * ?", "timezone": "Europe/Berlin", "behavior": "noop", "params": map[string]int{"rows": 1000}}
	return all(
		func() error { return n.ask(ctx, http.MethodPut, "/v1/schedules/nightly-report", nightly, nil) },
		func() error {
			return n.schedule(ctx, "weekly.cleanup", "@every 168h", "nobody reads the reports in August")
		},
	)
}

// formsOf returns the pages that answer forms: about tasks of an affinity, which cannot be suspended, about one task,
// and about a schedule that is paused. The forms change nothing, but for a run of a schedule.
func formsOf(affinity, task, schedule string) []shown {
	const choose = `document.querySelectorAll("tbody input[type=checkbox]").forEach((b, i) => { b.checked = true; `
	return []shown{
		{name: "changes", path: "/ui/tasks?affinity=" + affinity, fill: choose + `})`, press: `fieldset.change button[value=suspend]`},
		{name: "task-changed-since", path: "/ui/tasks/" + task, status: http.StatusPreconditionFailed,
			fill: `document.querySelector("form.change [name=version]").value = "0.1.0"`, press: `form.change button[name=operation]`},
		{name: "steered", path: "/ui/schedules", status: http.StatusConflict,
			fill: choose + `if (i > 0) b.value += "-gone"; })`, press: `button[value=run]`},
		{name: "steer-refused", path: "/ui/schedules/" + schedule, status: http.StatusPreconditionFailed,
			fill: `document.querySelector("[name=version]").value = "1"`, press: `button[value=resume]`},
		{name: "submit-refused", path: "/ui/submit?like=" + strings.ReplaceAll(task, "~", "%2F"), status: http.StatusBadRequest,
			fill: `document.querySelector("#s-params").value = "{"; document.querySelector("#s-delay").value = "soon"`, press: `form.submit button.main`},
	}
}

// schedule sets a schedule of noop and pauses it.
func (n *node) schedule(ctx context.Context, name, cron, why string) error {
	at := "/v1/schedules/" + pathOf(name)
	return errors.Join(
		n.ask(ctx, http.MethodPut, at, map[string]any{"cron": cron, "timezone": "America/Argentina/ComodRivadavia", "behavior": "noop", "params": map[string]string{"text": why}}, nil),
		n.ask(ctx, http.MethodPost, at+"/run", nil, nil),
		n.ask(ctx, http.MethodPost, at+"/pause", reason{why}, nil),
	)
}

// fillStore adds tasks to groups of a task store, and claims one of each.
func (n *node) fillStore(ctx context.Context, name string, groups ...string) error {
	type add struct {
		Group string `json:"group"`
		Data  string `json:"data"`
	}
	for _, g := range groups {
		var adds []add
		for i := range 20 {
			adds = append(adds, add{g, fmt.Sprintf("%s of picture-%03d.jpg", g, i)})
		}
		if err := errors.Join(
			n.ask(ctx, http.MethodPost, "/store/"+name+"/update", map[string]any{"clientid": 7, "adds": adds}, nil),
			n.ask(ctx, http.MethodPost, "/store/"+name+"/claim", map[string]any{"clientid": 7, "group": g, "duration": 600_000}, nil),
		); err != nil {
			return err
		}
	}
	return nil
}

// applyCollections applies a file of two collections.
func (n *node) applyCollections(ctx context.Context, text, name string) error {
	file := filepath.Join(n.dir, "sync.yaml")
	err := os.WriteFile(file, fmt.Appendf(nil, `sources:
  shop:
    collections:
      - {name: orders, driver: exec, program: sh, args: ["-c", %q], schedule: "0 */15 * ? * *"}
      - {name: %s, driver: noop, schedule: "0 30 3 ? * MON-FRI", timezone: Europe/Berlin}
`, "echo '"+text+"'", name), 0o600)
	if err != nil {
		return err
	}
	if _, err := n.run(ctx, "sync", "apply", file); err != nil {
		return err
	}
	_, err = n.run(ctx, "sync", "run", "shop", "orders", "--wait")
	return err
}

// rightToLeft turns the direction of what follows it, and of what follows the page, if it could.
const rightToLeft = "\u202e\u2067שלום עולם مرحبا بالعالم\u202d"

// hostileTexts may stand in a task, and a page must show them as text.
var hostileTexts = []string{
	`<script>alert(1)</script><img src=x onerror=alert(2)><style>*{display:none}</style>`,
	`"><a href="javascript:alert(3)">here</a><!--`,
	rightToLeft,
	"\x00\x01\x07\x08\x1b[2J\x1b[31mred\x7f\u0085\u2028\ufeff",
	strings.Repeat("w", 4000),
	"{{.Version}} ${7*7} &lt;b&gt; ' \" ` \\ \r\n\t",
	strings.Repeat("Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞ ", 20),
}

// attemptsOf counts the attempts of the task that has many, namesOf the names of the nodes that make them.
const attemptsOf, namesOf = 25, 5

// longName is as long as an affinity may be, and has no place to break it.
var longName = strings.Repeat("Donaudampfschifffahrtsgesellschaftskapitaen-", 3)[:120]

// wideName is a name of the widest letters.
var wideName = strings.Repeat("W", 40)

// fillHostile makes data that try to break pages.
func fillHostile(ctx context.Context, n *node) (samples, []shown, error) {
	if err := all(
		func() error { return n.submitHostile(ctx) },
		func() error { return n.attemptOften(ctx, "many") },
		func() error {
			return n.await(ctx, "worst-error", func(s state) bool { return s.Attempt >= 1 && s.Status != "RUNNING" })
		},
		func() error { return n.scheduleHostile(ctx) },
		func() error {
			return n.fillStore(ctx, wideName, url.QueryEscape(longName+longName), rightToLeft+hostileTexts[1], "a/b?c#d%2F&e=<f>")
		},
		func() error {
			return n.applyCollections(ctx, "<b onclick=alert(1)>"+strings.Repeat(wideName, 3), wideName)
		},
	); err != nil {
		return nil, nil, err
	}
	job, err := n.form(ctx, "/ui/jobs", url.Values{"operation": {"cancel"}, "affinity-prefix": {longName[:40]}, "reason": {clean(hostileTexts[0])}, "once": {"1"}})
	if err != nil {
		return nil, nil, err
	}
	var tasks []string
	for i := range hostileTexts {
		tasks = append(tasks, fmt.Sprintf("/ui/tasks/hostile~%d", i))
	}
	return samples{
		"/ui/jobs/{job}":       {job},
		"/ui/tasks/{id}/logs":  {"/ui/tasks/worst-error/logs", "/ui/tasks/noise/logs"},
		"/ui/tasks/{id}/state": {"/ui/tasks/hostile~0/state", "/ui/tasks/many/state?seq=9", "/ui/tasks/hostile~1/state?seq=wrong"},
		"/ui/submit":           {"/ui/submit?like=hostile%2F0", "/ui/submit?like=big"},
		"/ui/tasks/{id}":       append(tasks, "/ui/tasks/big", "/ui/tasks/worst-error", "/ui/tasks/many", "/ui/tasks/"+url.PathEscape(longName)),
		"/ui/schedules/{name}": {"/ui/schedules/" + longName[:64]},
		"/ui/stores/{name}":    {"/ui/stores/" + wideName, "/ui/stores/" + wideName + "?group=" + url.QueryEscape(rightToLeft+hostileTexts[1])},
	}, formsOf("hostile", "hostile~0", longName[:64]), nil
}

// submitHostile submits tasks with texts, sizes and errors that no page expects.
func (n *node) submitHostile(ctx context.Context) error {
	for i, text := range hostileTexts {
		id := fmt.Sprintf("hostile/%d", i)
		params := map[string]any{"text": text, text: []any{text, nil, 1e300}}
		if err := n.submit(ctx, toSubmit{Behavior: "noop", ID: id, Params: params, DelayMs: 86_400_000}); err != nil {
			return err
		}
		if err := n.verb(ctx, id, "suspend", reason{clean(text)}); err != nil {
			return err
		}
	}
	big := map[string]string{} // 256 KiB of JSON
	for i := range 2000 {
		big[fmt.Sprintf("member-%04d", i)] = strings.Repeat("ü<&>", 21)
	}
	const noise = `i=0; while [ $i -lt 300 ]; do printf '\033[31m<b onclick="alert(1)">\342\200\256evil\342\201\247 \001\002' >&2; i=$((i+1)); done; printf '%.0sw' $(seq 4000) >&2`
	return n.submit(ctx,
		toSubmit{Behavior: "noop", ID: "big", Params: big},
		toSubmit{Behavior: "exec", ID: "worst-error", Params: shell(noise + "; exit 9")},
		toSubmit{Behavior: "exec", ID: "noise", Params: shell(`for j in 1 2 3; do ` + noise + `; done 2>&1; printf '%.0sW' $(seq 4000)`)},
		toSubmit{Behavior: "noop", ID: "w/" + strings.Repeat("W", 126)},
		toSubmit{Behavior: "noop", ID: longName, DelayMs: 315_360_000_000},
		toSubmit{Behavior: "exec", ID: "many", Params: shell("exit 1")},
	)
}

// attemptOften has a task fail in many attempts on nodes of several names, of which one runs after the other.
func (n *node) attemptOften(ctx context.Context, id string) error {
	for name := 1; ; name++ {
		most := name * attemptsOf / namesOf
		for attempt := (name-1)*attemptsOf/namesOf + 1; attempt <= most; attempt++ {
			if err := n.await(ctx, id, func(s state) bool { return s.Attempt >= attempt && s.Status != "RUNNING" }); err != nil {
				return err
			}
			if attempt < most {
				_ = n.verb(ctx, id, "run-now", nil) // it may have begun by itself
			}
		}
		if name == namesOf {
			return nil
		}
		if err := n.stop(); err != nil {
			return fmt.Errorf("stop the node: %w", err)
		}
		again, err := serve(ctx, n.binary, n.dir, append([]string{"--name", fmt.Sprintf("%d-%s", name, longName[:40])}, inFiles...)...)
		if err != nil {
			return err
		}
		n.cmd, n.URL, n.Token = again.cmd, again.URL, again.Token
		_ = n.verb(ctx, id, "run-now", nil)
	}
}

// scheduleHostile pauses a behavior and a schedule for reasons that no page expects.
func (n *node) scheduleHostile(ctx context.Context) error {
	why := clean(hostileTexts[0] + rightToLeft)
	return all(
		func() error {
			return n.ask(ctx, http.MethodPost, "/v1/behaviors/sleep/pause", reason{hostileTexts[0] + clean(rightToLeft) + longName}, nil)
		},
		func() error { return n.schedule(ctx, longName[:64], "0 0 0 29 2 ?", why) },
	)
}

// clean returns a text that may be a reason.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 {
			return -1
		}
		return r
	}, text)
	for len(text) > 200 {
		runes := []rune(text)
		text = string(runes[:len(runes)-1])
	}
	return text
}
