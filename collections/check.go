package collections

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/schedule"
)

// check reports whether some collection may have this value of a key; if not, it tells why. What only package schedule
// knows is judged by timing.
func check(f *findings, key string, v value) bool {
	told := len(f.problems) + f.more
	if name, is := timingKeys[key]; is {
		checkTiming(f, key, name, v)
		return told == len(f.problems)+f.more
	}
	text := level{key: v}.text(key)
	switch key {
	case "driver":
		checkDriver(f, text, v.at)
	case "program":
		if text == "" {
			f.problem(v.at, "empty")
		}
	case "dir":
		if text != "" && !strings.HasPrefix(text, "/") {
			f.problem(v.at, "%q, want an absolute path", events.Head(text, shownKey))
		}
	case "url":
		checkURL(f, text, v.at)
	case "path", "to":
		if !fs.ValidPath(text) || text == "." || strings.Contains(text, `\`) {
			f.problem(v.at, `%q, want a relative path of names parted by "/", without "." and ".."`, events.Head(text, shownKey))
		}
	}
	return told == len(f.problems)+f.more
}

// checkTiming tells what cannot be a value of a schedule.Form, a priority below 1, where 0 stands for none, and the
// negative numbers that stand for none in a schedule.Definition: a file says 0.
func checkTiming(f *findings, key, name string, v value) {
	var form schedule.Form
	err := json.Unmarshal(level{key: v}.object(map[string]string{key: name}), &form)
	switch {
	case err == nil && key == "priority" && form.Priority <= 0:
		f.problem(v.at, "%d, want 1 to %d", form.Priority, events.MaxPriority)
	case err == nil && form.Keep != nil && *form.Keep < 0:
		f.problem(v.at, "%d, want 0 to %d", *form.Keep, events.MaxKeptRuns)
	case err == nil && form.Grace != nil && *form.Grace < 0:
		f.problem(v.at, "%s, want 0 to ten years", time.Duration(*form.Grace))
	case err != nil && forms[key] == inTime:
		f.problem(v.at, "%s, want a time such as 2027-01-31T08:00:00Z", events.Head(string(v.json), shownKey))
	case err != nil:
		f.problem(v.at, "%v", err)
	}
}

func checkDriver(f *findings, name string, at *place) {
	own, inGo := strings.CutPrefix(name, GoPrefix)
	if name == Exec || name == Fetch || name == Noop || inGo && events.ValidateBehavior(own) == nil {
		return
	}
	const want = "unknown driver %q, want %s, %s, %s or %sNAME, where NAME is 1 to %d bytes of [a-z0-9-]"
	f.problem(at, want, events.Head(name, shownKey), Exec, Fetch, Noop, GoPrefix, events.MaxBehaviorBytes)
}

// checkURL does not show the text, which may hold a password, nor an error that may be about a part of one.
func checkURL(f *findings, text string, at *place) {
	u, err := url.Parse(text)
	switch {
	case err != nil && strings.Contains(text, "@"):
		f.problem(at, `no URL: before "@" characters such as "/", "#" and "?" are written as %%2F, %%23 and %%3F`)
	case err != nil:
		f.problem(at, "no URL: %v", errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		f.problem(at, "want one of http or https")
	case u.Hostname() == "":
		f.problem(at, "no host")
	}
}
