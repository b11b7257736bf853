package schedulecli

import (
	"fmt"
	"io"
	"time"

	"taskledger/cmd/node/internal/output"
	"taskledger/cron"
	"taskledger/events"
	"taskledger/schedule"
)

// preview tells in words and by its next ticks when a schedule fires.
type preview struct {
	Cron        string `json:"cron"`
	Timezone    string `json:"timezone"`
	Description string `json:"description"`
	Next        []tick `json:"next"`
}

// tick tells an instant twice: as clocks of the time zone show it, and in UTC.
type tick struct {
	Local string        `json:"local"`
	UTC   events.Millis `json:"utc"`
}

func tickAt(ticks schedule.Ticks, at events.Millis) tick {
	zone := time.FixedZone("", int(ticks.Offset(at)))
	return tick{Local: at.Time().In(zone).Format(time.RFC3339), UTC: at}
}

// String returns both times, with spaces between them.
func (t tick) String() string { return t.Local + "  " + output.Time(t.UTC) }

// previewOf returns the preview of a plan, with up to n ticks after a time. It returns a *store.InvalidError of cron or
// timezone.
func previewOf(p *events.SchedulePlan, after events.Millis, n int) (preview, error) {
	ticks, err := schedule.TicksOf(p)
	if err != nil {
		return preview{}, err
	}
	v := preview{
		Cron:        p.Cron,
		Timezone:    p.Zone,
		Description: describe(p.Cron),
		Next:        []tick{},
	}
	for at := ticks.Next(after); at != 0 && len(v.Next) < n; at = ticks.Next(at) {
		v.Next = append(v.Next, tickAt(ticks, at))
	}
	return v, nil
}

// describe returns in English when an expression fires, "-" where this release cannot read it.
func describe(text string) string {
	if text == "" {
		return "never by itself"
	}
	expression, err := cron.Parse(text)
	if err != nil {
		return "-"
	}
	return expression.Describe()
}

// rows adds the preview to a table of words and their values.
func (v *preview) rows(p *output.Printer) error {
	lines := [][]any{{"fires", v.Description}, {"timezone", v.Timezone}}
	for i, at := range v.Next {
		word := ""
		if i == 0 {
			word = "next"
		}
		lines = append(lines, []any{word, at.String()})
	}
	switch {
	case len(v.Next) > 0:
	case v.Cron == "": // it has runs by hand alone
		lines = append(lines, []any{"next", "-"})
	default:
		lines = append(lines, []any{"next", "never: no time to come is one of these"})
	}
	return table(p, lines)
}

// table adds rows to a table that has no other form.
func table(p *output.Printer, lines [][]any) error {
	for _, cells := range lines {
		if err := p.Row(nil, cells...); err != nil {
			return err
		}
	}
	return nil
}

// warn says on a writer that ticks are less than a minute apart. An expression with several seconds fires at all of
// them in each of its minutes, so that three ticks always show it.
func (v *preview) warn(to io.Writer) {
	for i := 1; i < len(v.Next); i++ {
		if apart := v.Next[i].UTC.Time().Sub(v.Next[i-1].UTC.Time()); apart < time.Minute {
			fmt.Fprintf(to, "ticks are %s apart, less than a minute: the first field of an expression is the second\n", apart)
			return
		}
	}
}
