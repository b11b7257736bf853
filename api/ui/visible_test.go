package ui_test

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// textOf returns the text of the first element of a page that begins with a text, as a browser copies it.
func textOf(t *testing.T, page, begins, ends string) string {
	t.Helper()
	_, rest, has := strings.Cut(page, begins)
	if !has {
		t.Fatalf("there is no %s", begins)
	}
	inner, _, _ := strings.Cut(rest[strings.Index(rest, ">")+1:], ends)
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(inner, ""))
}

// No character of a text turns what stands around it or commands a terminal, and JSON is copied with its value.
func TestPages_WriteCharactersThatNobodySees(t *testing.T) {
	const letters = "שלום עולם مرحبا"
	s := serve(t)
	for id, c := range map[string]struct{ text, shown string }{
		"escape":     {"\x1b[2J", `\x1b[2J`},
		"ends":       {"a\r\nb\rc\td", "a\r\nb\\x0dc\td"},
		"feed":       {"\x07\x0b\x0c", `\x07\x0b\x0c`},
		"delete":     {"\x7f\u0080\u0085\u009f\u00a0", `\u007f\u0080\u0085\u009f` + "\u00a0"},
		"mark":       {"\ufeffa", `\ufeffa`},
		"overrides":  {"\u202a\u202b\u202c\u202d\u202e\u202f", `\u202a\u202b\u202c\u202d\u202e` + "\u202f"},
		"isolates":   {"\u2066\u2067\u2068\u2069", `\u2066\u2067\u2068\u2069`},
		"directions": {"\u200e\u200f\u061c", `\u200e\u200f\u061c`},
		"spaces":     {"\u200b\u180e\u2060a\u00adb\u2028\u2029", `\u200b\u180e\u2060a\u00adb\u2028\u2029`},
		"operators":  {"\u2061\u2062\u2063\u2064\u206a\u206f", `\u2061\u2062\u2063\u2064\u206a\u206f`},
		"fillers":    {"\u115f\u1160\u3164\uffa0\u034f\u17b4\u2800", `\u115f\u1160\u3164\uffa0\u034f\u17b4\u2800`},
		"tags":       {"\U000e0001\U000e0041\U000e007f", `\udb40\udc01\udb40\udc41\udb40\udc7f`},
		"joiners":    {"می\u200cخواهم 👩\u200d🚒\ufe0f", "می\u200cخواهم 👩\u200d🚒\ufe0f"},
		"letters":    {letters, letters},
		"written":    {`\u202e`, `\u202e`},
	} {
		params, err := json.Marshal(c.text)
		if err != nil {
			t.Fatal(err)
		}
		s.submit("fails", id, string(params))
		got := s.want(s.get("viewer", "/ui/tasks/"+id), 200)
		if is := textOf(t, got.text, `<pre id="params"`, "</pre>"); !sameJSON(is, c.text) {
			t.Errorf("%s: %s is no JSON of %q", id, is, c.text)
		}
		if is := textOf(t, got.text, `aria-label="Error"`, "</section>"); !strings.Contains(is, c.shown) {
			t.Errorf("%s: the text is %q, want %q", id, is, c.shown)
		}
		for _, r := range "\x07\x0b\x0c\x1b\x7f\u0080\u0085\u009f\u061c\u200e\u200f\u202a\u202c\u202e\u2066\u2069\ufeff" +
			"\u00ad\u180e\u200b\u2028\u2029\u2060\u2061\u2064\u206a\u206f\U000e0001\U000e0041\U000e007f" {
			s.wantNot(got, string(r))
		}
		form := s.want(s.get("submitter", "/ui/submit?like="+id), 200)
		if is := textOf(t, form.text, "<textarea", "</textarea>"); !sameJSON(is, c.text) {
			t.Errorf("%s: %s is no JSON of %q", id, is, c.text)
		}
	}
}

func sameJSON(text, want string) bool {
	var is string
	return json.Unmarshal([]byte(text), &is) == nil && is == want
}

// What a form sends back is what it was given, whatever it shows.
func TestPages_KeepTheValuesOfForms(t *testing.T) {
	s := serve(t)
	s.asleep("a/1")
	const reason = "\x1b[2J\u202e\u200f\u0085x"
	query := url.Values{"affinity": {"a"}, "operation": {"cancel"}, "reason": {reason}}.Encode()
	page, form := s.matching("operator", query)
	if is := html.UnescapeString(form.Get("reason")); is != reason {
		t.Errorf("the form has %q", is)
	}
	s.wantNot(s.want(page, 200, `Reason: <bdi>\x1b[2J\u202e\u200f\u0085x</bdi>`), "\x1b")
	refused := formOfTask("b")
	refused.Set("params", "{\u202e\x1b")
	got := s.want(s.send("submitter", "POST", "/ui/submit", refused), 400, "{\u202e&#27;</textarea>")
	s.wantNot(got, "\x1b")
}

// Strings of JSON that are written from right to left have marks, within which their direction stays.
func TestTask_KeepsTheOrderOfJSONThatIsWrittenFromRightToLeft(t *testing.T) {
	s := serve(t)
	s.submit("keeps", "a", `{"שלום":"עולם","n":1}`)
	const marks = `<span class="j-k">"שלום"</span>: <span class="j-s">"עולם"</span>,`
	got := s.want(s.get("viewer", "/ui/tasks/a"), 200, marks)
	if n := strings.Count(got.text, `"j-s">"עולם"`); n < 4 { // parameters, result, and their events
		t.Errorf("%d marks: %s", n, clip(got.text))
	}
	s.submit("keeps", "b", `{"plain":"text"}`)
	_, history, _ := strings.Cut(s.get("viewer", "/ui/tasks/b").text, `id="history"`)
	if strings.Contains(history, "j-s") || !strings.Contains(history, "plain") {
		t.Error("rows of the history have marks that nobody needs")
	}
	s.schedule("nightly", strings.Replace(yearly, "{}", `{"a":"עולם"}`, 1))
	s.want(s.get("viewer", "/ui/schedules/nightly"), 200, `<span class="j-s">"עולם"</span>`)
}
