package ui

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/task"
)

// pathOf escapes the id of a task for a path, as the API reads it.
func pathOf(id events.TaskID) string {
	return strings.ReplaceAll(url.PathEscape(string(id)), "%2F", "~")
}

// TaskAt returns the address of the page of a task.
func (f *frame) TaskAt(id events.TaskID) string { return Root + "tasks/" + pathOf(id) }

// zoneOf returns the zone in which a viewer without JavaScript wants times, UTC where none is chosen.
func (u *UI) zoneOf(r *http.Request) *time.Location {
	name := u.cookie(r, zoneCookie)
	if name == "" || name == "Local" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// shownTime is the form of a time that no script rewrites, exactTime that of attributes, to the millisecond.
const (
	shownTime = "2006-01-02 15:04:05 MST"
	exactTime = "2006-01-02T15:04:05.000Z"
	milliTime = "2006-01-02 15:04:05.000 MST" // shownTime to the millisecond
)

// Time shows a moment: in the zone of the viewer, and exactly in its attributes; a dash for none.
func (f *frame) Time(at events.Millis) template.HTML {
	if at == 0 {
		return "–"
	}
	exact := at.Time().UTC().Format(exactTime)
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%[1]s">%s</time>`, //nolint:gosec // digits alone
		exact, at.Time().In(f.Zone).Format(shownTime)))
}

// Millis shows a moment as Time does, to the millisecond.
func (f *frame) Millis(at events.Millis) template.HTML {
	exact := at.Time().UTC().Format(exactTime)
	return template.HTML(fmt.Sprintf(`<time data-ms datetime="%s" title="%[1]s">%s</time>`, //nolint:gosec // as above
		exact, at.Time().In(f.Zone).Format(milliTime)))
}

// Since shows for how long something has been, and since when exactly: a script lets it grow.
func (f *frame) Since(at events.Millis) template.HTML {
	if at == 0 {
		return "–"
	}
	exact := at.Time().UTC().Format(exactTime)
	return template.HTML(
		fmt.Sprintf(`<time data-since datetime="%s" title="%[1]s">since %s</time>`, //nolint:gosec // as above
			exact, at.Time().In(f.Zone).Format(shownTime)),
	)
}

// Took shows the time between two moments; a dash where one is missing.
func (f *frame) Took(from, to events.Millis) string {
	if from == 0 || to == 0 {
		return "–"
	}
	return lengthOf(to.Time().Sub(from.Time()))
}

// lengthOf shows a length of time in two units at most.
func lengthOf(d time.Duration) string {
	switch {
	case d != 0 && d.Abs() < time.Millisecond:
		return "below 1 ms"
	case d < 0:
		return "–" + lengthOf(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Count shows a number with a thin space between thousands.
func (f *frame) Count(n any) string {
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "–", text[1:]
	}
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return sign + strings.Join(append([]string{text}, parts...), "\u202f")
}

// StatusOf returns the name of a status by its number.
func (f *frame) StatusOf(n int) string { return task.Status(n).String() }
