package collections

import (
	"fmt"
	"strings"
	"time"

	"taskledger/cron"
)

const (
	everyMinute = "0 * * ? * * *"
	// mostTicks bounds the ticks of a day that cadence looks at one by one.
	mostTicks = 3600
)

// cadence warns of an expression that fires more often than once a minute, "" = it does not. That is easily written by
// mistake, since many dialects of cron have no seconds; @every cannot be misread.
func cadence(text string) string {
	expression, err := cron.Parse(text)
	if err != nil || strings.HasPrefix(expression.String(), "@") {
		return ""
	}
	first, found := expression.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-1), time.UTC)
	if !found {
		return ""
	}
	second, found := expression.Next(first, time.UTC)
	step := second.Sub(first)
	if !found || step >= time.Minute {
		return ""
	}
	last, next := first, second
	for n := 0; found && next.Sub(last) == step && n < mostTicks; n++ {
		last = next
		next, found = expression.Next(last, time.UTC)
	}
	return fmt.Sprintf("fires %s; every minute is %q", stretch(expression, first, last, next, found), everyMinute)
}

// stretch describes ticks at equal distances, if there are no others on their day.
func stretch(expression cron.Expression, first, last, next time.Time, more bool) string {
	if more && (next.Sub(last) < time.Minute || next.Sub(first)%(24*time.Hour) != 0) {
		return expression.Describe()
	}
	second, _ := expression.Next(first, time.UTC)
	every := "each second"
	if step := second.Sub(first); step > time.Second {
		every = fmt.Sprintf("every %.0f seconds", step.Seconds())
	}
	from, to := first.Format(time.TimeOnly), last.Format(time.TimeOnly)
	return fmt.Sprintf("%s from %s to %s and at no other time", every, from, to)
}
