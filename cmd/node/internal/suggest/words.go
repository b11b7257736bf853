// Package suggest names what a user may have meant by a word that a command does not know: by its letters, or by what
// other queues of tasks call the same thing.
package suggest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/flags"
	"taskledger/task"
)

// Commands names the commands for words that other queues of tasks have for the same.
var Commands = map[string][]string{
	"enqueue": {"submit"}, "insert": {"submit"}, "add": {"submit"}, "push": {"submit"}, "perform": {"submit"},
	"create": {"submit"}, "publish": {"submit"}, "schedule-in": {"submit"}, "dispatch": {"submit"},
	"run": {"submit", "run-now"}, "start": {"serve", "run-now"}, "server": {"serve"}, "worker": {"serve", "nodes"},
	"node": {"serve", "nodes"}, "workers": {"nodes"}, "processes": {"nodes"}, "servers": {"nodes"}, "who": {"nodes"},
	"job": {"get", "list"}, "jobs": {"list"}, "task": {"get", "list"}, "tasks": {"list"}, "ls": {"list"},
	"ps": {"list"}, "search": {"list"}, "find": {"list"}, "failed": {"list"}, "dead": {"list"}, "archived": {"list"},
	"show": {"get"}, "inspect": {"get", "explain"}, "describe": {"get", "explain"}, "status": {"get", "health"},
	"result": {"wait"}, "queue": {"behaviors", "counts"}, "queues": {"behaviors", "counts"}, "kinds": {"behaviors"},
	"count": {"counts"}, "top": {"stats"}, "metrics": {"stats"}, "info": {"stats", "nodes"},
	"stop": {"cancel", "suspend"}, "kill": {"cancel"}, "abort": {"cancel"}, "discard": {"cancel", "delete"},
	"hold": {"suspend"}, "unsuspend": {"resume"}, "rerun": {"retry"}, "requeue": {"retry"}, "restart": {"retry"},
	"reschedule": {"run-now"}, "wakeup": {"run-now"}, "rm": {"delete"}, "remove": {"delete"}, "purge": {"delete"},
	"clear": {"delete"}, "archive": {"delete"}, "cron": {"schedule"}, "crontab": {"schedule"},
	"periodic": {"schedule"}, "events": {"history", "replay"}, "log": {"logs", "history"}, "tail": {"logs"},
	"dashboard": {"ui"}, "dash": {"ui"}, "web": {"ui"}, "config": {"settings"}, "ping": {"health"},
	"migrate": {"copy"}, "audit": {"verify"}, "fsck": {"verify", "repair"},
}

// Subcommands names what commands such as schedule and store have for words of other programs.
var Subcommands = map[string][]string{
	"create": {"set", "new"}, "new": {"set"}, "add": {"set", "new"}, "put": {"set"}, "make": {"set", "new"},
	"update": {"set"}, "edit": {"set"}, "get": {"show"}, "status": {"show"}, "describe": {"show"}, "info": {"show"},
	"ls": {"list"}, "rm": {"delete", "revoke"}, "remove": {"delete", "revoke"}, "stop": {"pause"}, "disable": {"pause"},
	"start": {"run", "resume"}, "enable": {"resume"}, "unpause": {"resume"}, "trigger": {"run"}, "retry": {"rerun"},
}

// Flags names the flags for words that other programs have for the same.
var Flags = map[string][]string{
	"json": {"output"}, "format": {"output"}, "state": {"status", "substatus"}, "queue": {"behavior"},
	"kind": {"behavior"}, "type": {"behavior"}, "args": {"params"}, "payload": {"params"}, "job": {"task"},
	"from": {"since", "created-from"}, "to": {"until", "created-to"}, "after": {"cursor"}, "before": {"until"},
	"page": {"cursor"}, "offset": {"cursor"}, "n": {"limit"}, "count": {"limit"}, "size": {"limit"}, "max": {"limit"},
	"tail": {"limit"}, "attempts": {"max-attempts"}, "retry": {"max-attempts"}, "retries": {"max-attempts"},
	"max-retries": {"max-attempts"}, "max-retry": {"max-attempts"}, "in": {"delay"}, "process-in": {"delay"},
	"run-at": {"at"}, "process-at": {"at"}, "scheduled-at": {"at"}, "not-before": {"at"}, "retention": {"retain"},
	"ttl": {"retain"}, "unique": {"key", "id"}, "idempotency-key": {"key"}, "dedupe": {"key"}, "task-id": {"id"},
	"job-id": {"id"}, "tags": {"tag"}, "label": {"tag"}, "prefix": {"affinity-prefix"}, "zone": {"timezone"},
	"tz": {"timezone"}, "workers": {"slots"}, "limit": {"concurrency"}, "dir": {"data"}, "data-dir": {"data"},
	"file": {"batch", "api-tokens"}, "force": {"yes"}, "all": {"limit"}, "client": {"client-id"},
	"store": {"store-name"}, "wait": {"wait-for"}, "archive": {"with-archive"}, "sign": {"signing-key"}, "key": {"signing-key"},
}

// Statuses names the statuses for words that other queues of tasks have for the same.
var Statuses = map[string][]string{
	"pending": {"CREATED"}, "queued": {"CREATED"}, "enqueued": {"CREATED"}, "available": {"CREATED"},
	"scheduled": {"CREATED"}, "waiting": {"CREATED"}, "new": {"CREATED"},
	"active": {"RUNNING"}, "processing": {"RUNNING"}, "working": {"RUNNING"}, "started": {"RUNNING"},
	"done": {"SUCCESS"}, "completed": {"SUCCESS"}, "succeeded": {"SUCCESS"}, "finished": {"SUCCESS"}, "ok": {"SUCCESS"},
	"failed": {"FAILURE"}, "error": {"FAILURE"}, "errored": {"FAILURE"}, "dead": {"FAILURE"}, "archived": {"FAILURE"},
	"discarded": {"FAILURE"}, "cancelled": {"FAILURE"}, "canceled": {"FAILURE"},
}

// StatusNames returns the statuses of tasks, which a filter takes.
func StatusNames() (names []string) {
	for s := task.Created; s <= task.Failure; s++ {
		names = append(names, s.String())
	}
	return names
}

// Value asks whether another value of a field of a filter is meant; "" = there is none.
func Value(field, value string) string {
	switch field {
	case "status":
		return Question(meant(value, StatusNames(), Statuses))
	case "substatus":
		return Question(Near(value, task.Substatuses()))
	}
	return ""
}

// Question asks whether one of some names is meant; "" = there is none.
func Question(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": is " + Or(names) + " meant?"
}

// Near returns the names that a word may have been meant for.
func Near(word string, names []string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	if len(word) < 5 { // most short words are two letters apart
		all.SuggestionsMinimumDistance = 1
	}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(word)
}

// meant returns the names that a word may have been meant for: those near it, and those that say the same.
func meant(word string, names []string, same map[string][]string) []string {
	all := Near(word, names)
	for _, name := range same[strings.ToLower(word)] {
		if slices.Contains(names, name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// FlagFor asks whether one of some flags is meant by a name; "" = none is.
func FlagFor(name string, names []string) string { return Question(meant(name, names, Flags)) }

// Command refuses words behind a command that has subcommands, and names those that may have been meant.
func Command(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if !c.HasParent() {
		return fmt.Errorf("unknown command %q%s", args[0], Question(meant(args[0], names, Commands)))
	}
	hint := Question(meant(args[0], names, Subcommands))
	if hint == "" {
		hint = ": want " + Or(names)
	}
	return fmt.Errorf("%s: unknown command %q%s", c.Name(), args[0], hint)
}

// Flag says in plain words what is wrong with a flag, and names those that may have been meant by one that a
// command has not.
func Flag(c *cobra.Command, err error) error {
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is || len(unknown.GetSpecifiedName()) < 2 {
		return flags.Plain(err)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	meant := meant(unknown.GetSpecifiedName(), names, Flags)
	for i := range meant {
		meant[i] = "--" + meant[i]
	}
	return fmt.Errorf("%w%s", err, Question(meant))
}

// Or writes words as alternatives: "a", "a or b", "a, b or c".
func Or(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
