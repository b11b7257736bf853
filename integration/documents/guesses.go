package main

import (
	"errors"
	"fmt"
	"strings"
)

// guess is what somebody types who knows another queue of tasks and has read nothing here.
type guess struct {
	typed string // behind the name of the program
	named string // what the answer has to name: the command, flag, value or behavior that does it
}

// guesses are of users of River, asynq and Sidekiq, whose words docs/coming-from.md has.
var guesses = []guess{
	// River
	{`insert sleep '{"duration":"1s"}'`, "submit"},
	{`jobs`, "list"},
	{`job get guessed`, "get"},
	{`list --kind sleep`, "--behavior"},
	{`list --status available`, "CREATED"},
	{`list --status completed`, "SUCCESS"},
	{`list --status discarded`, "FAILURE"},
	{`queues`, "behaviors"},
	{`periodic`, "schedule"},
	{`submit sleep '{"duration":"1s"}' --scheduled-at 1h`, "--at"},
	{`submit sleep '{"duration":"1s"}' --tags mail`, "--tag"},

	// asynq
	{`enqueue sleep '{"duration":"1s"}'`, "submit"},
	{`queue ls`, "behaviors"},
	{`task ls`, "list"},
	{`servers`, "nodes"},
	{`cron ls`, "schedule"},
	{`dash`, "ui"},
	{`archived`, "list"},
	{`list --status archived`, "FAILURE"},
	{`submit sleep '{"duration":"1s"}' --process-in 5m`, "--delay"},
	{`submit sleep '{"duration":"1s"}' --max-retry 3`, "--max-attempts"},
	{`submit sleep '{"duration":"1s"}' --retention 1h`, "--retain"},
	{`submit sleep '{"duration":"1s"}' --task-id guessed`, "--id"},

	// Sidekiq
	{`perform sleep '{"duration":"1s"}'`, "submit"},
	{`push sleep '{"duration":"1s"}'`, "submit"},
	{`dead`, "list"},
	{`processes`, "nodes"},
	{`workers`, "nodes"},
	{`kill guessed`, "cancel"},
	{`list --status enqueued`, "CREATED"},
	{`list --status dead`, "FAILURE"},
	{`submit sleep '{"duration":"1s"}' --in 5m`, "--delay"},
	{`submit sleep '{"duration":"1s"}' --retry 3`, "--max-attempts"},
	{`submit sleep '{"duration":"1s"}' --unique`, "--key"},

	// any
	{`sumbit sleep '{"duration":"1s"}'`, "submit"},
	{`submit slep '{"duration":"1s"}'`, "sleep"},
	{`submit sleep 1s`, `{"duration":`},
	{`submit sleep`, `{"duration":`},
	{`help me`, "taskledger --help"},
	{`--hlep`, "--help"},
}

// guessAll types the guesses. Each is answered by naming what does it, whether or not something was done.
func guessAll(s *session) error {
	var stumbles []error
	for _, g := range guesses {
		out, err := s.bash("taskledger " + g.typed).CombinedOutput()
		if err == nil {
			continue // it was no guess: that is a command
		}
		if said := string(out); !strings.Contains(said, g.named) {
			stumbles = append(stumbles, fmt.Errorf("taskledger %s: the answer does not name %s: %s", g.typed, g.named, said))
		}
	}
	if len(stumbles) > 0 {
		return fmt.Errorf("%d of %d guesses stumble: %w", len(stumbles), len(guesses), errors.Join(stumbles...))
	}
	fmt.Printf("%d guesses of users of other queues are answered with what does it\n", len(guesses))
	return nil
}
