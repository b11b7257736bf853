package history

import (
	"fmt"

	"taskledger/events"
)

// TermsOf writes the policy and the priority that a submit brings, or a task has.
func TermsOf(p *events.Policy, priority int64) string {
	return fmt.Sprintf("priority %d, policy %v", priority, *p)
}
