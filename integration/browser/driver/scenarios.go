package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// unauthorized stands in the log of a browser after a login was refused.
const unauthorized = "401 (Unauthorized)"

// loginAndLogout logs in with a wrong secret, a right one, by a link, and out again, with scripts and without.
func (s *stage) loginAndLogout(ctx context.Context, n *node) error {
	for _, scripts := range []bool{true, false} {
		err := s.in(n, scripts, func(t *tab) error {
			if err := t.open("/ui/tasks?status=RUNNING"); err != nil {
				return err
			}
			if at := t.where(); at != "/ui/login?next="+url.QueryEscape("/ui/tasks?status=RUNNING") {
				return fmt.Errorf("who has not logged in is led to %s", at)
			}
			if err := t.fill("#token", "wrong"); err != nil {
				return err
			}
			if err := t.follow("form.login button"); err != nil {
				return err
			}
			if !t.is(`document.querySelector("[role=alert]").innerText.includes("not known")`) {
				return errors.New("a wrong secret is not told")
			}
			if err := t.fill("#token", n.Token); err != nil {
				return err
			}
			if err := t.follow("form.login button"); err != nil {
				return err
			}
			if at := t.where(); at != "/ui/tasks?status=RUNNING" {
				return fmt.Errorf("the login leads to %s", at)
			}
			if !t.is(`document.cookie === ""`) {
				return errors.New("a script of a page could read the cookie")
			}
			if err := t.follow(".who button"); err != nil {
				return err
			}
			if err := t.open("/ui/"); err != nil {
				return err
			}
			if at := t.where(); at != "/ui/login" {
				return fmt.Errorf("after the logout the overview leads to %s", at)
			}
			return s.loginByLink(ctx, t, n)
		}, unauthorized)
		if err != nil {
			return fmt.Errorf("scripts %t: %w", scripts, err)
		}
	}
	return nil
}

// loginByLink begins a session by a link, which serves once.
func (s *stage) loginByLink(ctx context.Context, t *tab, n *node) error {
	var link struct{ Path string }
	if err := n.ask(ctx, http.MethodPost, "/ui/links", nil, &link); err != nil {
		return err
	}
	for range 2 { // a look does not spend it
		if err := t.open(link.Path); err != nil {
			return err
		}
	}
	if err := t.follow("form.login button"); err != nil {
		return err
	}
	if at := t.where(); at != "/ui/" {
		return fmt.Errorf("the link leads to %s", at)
	}
	if err := t.open(link.Path); err != nil {
		return err
	}
	if !t.is(`document.querySelector("[role=alert]").innerText.includes("has been used")`) {
		return errors.New("a link that is spent is not told")
	}
	return nil
}

// sessionsThatEnd has sessions end while a page is open: by a logout elsewhere, with the token, and in the memory of
// the node. The next refresh leads to the login.
func (s *stage) sessionsThatEnd(ctx context.Context, n *node) error {
	for _, end := range []struct {
		what string
		by   func(t *tab, token string) error
	}{
		{"logout elsewhere", func(t *tab, _ string) error { return logoutElsewhere(ctx, t) }},
		{"revoked token", func(_ *tab, token string) error { return revoke(ctx, n, token) }},
		{"session that the node does not know", func(t *tab, _ string) error { return forge(t) }},
	} {
		err := s.in(n, true, func(t *tab) error {
			secret, err := n.run(ctx, "token", "new", "somebody", "--role", "viewer")
			if err != nil {
				return err
			}
			if err := soon(func() error { return n.as(ctx, secret) }); err != nil { // the node looks for new tokens by and by
				return err
			}
			if err := t.login(secret); err != nil {
				return err
			}
			if err := t.open("/ui/tasks?status=SUCCESS"); err != nil {
				return err
			}
			if err := end.by(t, secret); err != nil {
				return err
			}
			return t.until("the login is shown, and leads back",
				`location.pathname + location.search === "/ui/login?next=" + encodeURIComponent("/ui/tasks?status=SUCCESS")`)
		}, unauthorized)
		if err != nil {
			return fmt.Errorf("%s: %w", end.what, err)
		}
	}
	return nil
}

// soon tries something until it succeeds.
func soon(try func() error) (err error) {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err = try(); err == nil {
			return nil
		}
	}
	return err
}

// as asks with another token.
func (n *node) as(ctx context.Context, secret string) error {
	return (&node{URL: n.URL, Token: secret}).ask(ctx, http.MethodGet, "/v1/tasks?limit=1", nil, nil)
}

// cookies returns the cookies of a window.
func (t *tab) cookies() (all []*network.Cookie, err error) {
	err = t.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		got, err := chromedp.Call(ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{t.home + "/ui/"}})
		all = got.Cookies
		return err
	}))
	if err == nil && len(all) == 0 {
		err = errors.New("there is no cookie")
	}
	return all, err
}

func logoutElsewhere(ctx context.Context, t *tab) error {
	cookies, err := t.cookies()
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.home+"/ui/logout", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Origin", t.home)
	r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: cookies[0].Value})
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("logout: %s", resp.Status)
	}
	return nil
}

func revoke(ctx context.Context, n *node, secret string) error {
	list, err := n.run(ctx, "token", "list")
	if err != nil {
		return err
	}
	lines := strings.Split(list, "\n")
	id, _, _ := strings.Cut(lines[len(lines)-1], " ")
	if _, err := n.run(ctx, "token", "revoke", id); err != nil {
		return err
	}
	return soon(func() error {
		if n.as(ctx, secret) == nil {
			return errors.New("the token still holds")
		}
		return nil
	})
}

// forge gives a window the cookie of a session that is not there, as that of one that has ended is.
func forge(t *tab) error {
	cookies, err := t.cookies()
	if err != nil {
		return err
	}
	return t.do(send(network.SetCookie, network.SetCookieParams{
		Name:  cookies[0].Name,
		Value: "FORGED",
		URL:   t.home + "/ui",
		Path:  "/ui",
	}))
}

// filterAndOpen filters the tasks, and opens one of them.
func (s *stage) filterAndOpen(n *node, scripts bool) error {
	return s.loggedIn(n, scripts, func(t *tab) error {
		if err := t.follow(`nav a[href="/ui/tasks"]`); err != nil {
			return err
		}
		if err := t.click("form.card summary"); err != nil {
			return err
		}
		if err := t.fill(`#f-status`, "RUNNING"); err != nil { // a choice takes what is typed
			return err
		}
		if err := t.fill("#f-affinity-prefix", "import"); err != nil {
			return err
		}
		if err := t.follow("form.card button.main"); err != nil {
			return err
		}
		if !t.is(`location.search.includes("status=RUNNING") && location.search.includes("affinity-prefix=import")`) {
			return fmt.Errorf("the filter is not in the address: %s", t.where())
		}
		if !t.is(`document.querySelectorAll("tbody tr").length === 4 && [...document.querySelectorAll("tbody tr")].every((r) => r.innerText.includes("RUNNING"))`) {
			return errors.New("the filter shows other tasks than the four that run")
		}
		if !t.is(`document.querySelector("#f-affinity-prefix").value === "import" && document.querySelector("form.card details").open`) {
			return errors.New("the filter that is set is not shown")
		}
		if err := t.follow("tbody tr a"); err != nil {
			return err
		}
		if !t.is(`document.querySelector("h1").innerText.startsWith("import.customers/") && document.querySelector("svg rect.bar")`) {
			return errors.New("the task that was opened is not shown with its timeline")
		}
		if err := t.open("/ui/tasks?find=upload~0"); err != nil {
			return err
		}
		if err := t.open("/ui/tasks?find=upload%2F0"); err != nil {
			return err
		}
		if at := t.where(); at != "/ui/tasks/upload~0" {
			return fmt.Errorf("the search for an id leads to %s", at)
		}
		return nil
	})
}

// refresh changes a task while its page is open, in which somebody has opened and chosen something.
func (s *stage) refresh(ctx context.Context, n *node) error {
	return s.loggedIn(n, true, func(t *tab) error {
		if err := t.open("/ui/tasks/reminder~3"); err != nil {
			return err
		}
		if err := t.until("the button of the refresh is shown", `!document.querySelector(".refresh").hidden`); err != nil {
			return err
		}
		const details = `[...document.querySelectorAll("#live details")]`
		if err := t.eval(`window.before = document.querySelector("#live"); `+details+`.forEach((d) => { d.open = true; });
			document.querySelector("#live details summary").focus(); window.focused = document.activeElement; true`, nil); err != nil {
			return err
		}
		if err := n.verb(ctx, "reminder/3", "suspend", reason{"the page is open"}); err != nil {
			return err
		}
		if err := t.until("the page shows that the task was suspended", `document.querySelector("#live").innerText.includes("the page is open")`); err != nil {
			return err
		}
		for what, is := range map[string]string{
			"the page was loaded anew":              `window.before === document.querySelector("#live")`,
			"what was opened is closed":             details + `.length > 1 && ` + details + `.filter((d) => !d.open).length <= 1`,
			"the focus is elsewhere":                `document.activeElement === window.focused && window.focused.isConnected`,
			"what needs scripts is hidden again":    `!document.querySelector("[data-script][hidden]")`,
			"the times are not those of the viewer": `[...document.querySelectorAll("#live time:not([data-since])")].every((e) => /[+-]\d\d:\d\d$/.test(e.innerText))`,
			"the indicator's style is used":         `document.adoptedStyleSheets.length === 0`,
		} {
			if !t.is(is) {
				return errors.New(what)
			}
		}
		if err := t.stopsAndGoesOn(); err != nil {
			return err
		}
		return t.keepsForms()
	})
}

// stopsAndGoesOn stops the refresh by its button, and by hiding the window.
func (t *tab) stopsAndGoesOn() error {
	const pause = 5 * time.Second // more than two refreshes
	quiet := func(what string) error {
		time.Sleep(time.Second) // what was asked for before
		t.asked()
		time.Sleep(pause)
		if asked := t.asked(); len(asked) > 0 {
			return fmt.Errorf("%s: the page still asks: %q", what, asked)
		}
		return nil
	}
	busy := func(what string) error {
		t.asked()
		return soon(func() error {
			if len(t.asked()) == 0 {
				return fmt.Errorf("%s: the page does not ask", what)
			}
			return nil
		})
	}
	if err := t.click("[data-refresh]"); err != nil {
		return err
	}
	if !t.is(`document.querySelector("[data-refresh]").getAttribute("aria-pressed") === "false"`) {
		return errors.New("the button does not say that it is off")
	}
	if err := quiet("switched off"); err != nil {
		return err
	}
	if err := t.click("[data-refresh]"); err != nil {
		return err
	}
	if err := busy("switched on"); err != nil {
		return err
	}
	if err := t.hide(true); err != nil {
		return err
	}
	if err := quiet("hidden"); err != nil {
		return err
	}
	if err := t.hide(false); err != nil {
		return err
	}
	return busy("shown again")
}

// hide lets the page believe that nobody sees it, so that it does not refresh itself, or that somebody does again.
func (t *tab) hide(is bool) error {
	return t.eval(fmt.Sprintf(`Object.defineProperty(document, "hidden", { configurable: true, get: () => %t });
		document.dispatchEvent(new Event("visibilitychange")); true`, is), nil)
}

// keepsForms types and chooses on the page of tasks, and waits for refreshes.
func (t *tab) keepsForms() error {
	if err := t.open("/ui/tasks"); err != nil {
		return err
	}
	if err := t.click("form.card summary"); err != nil {
		return err
	}
	if err := t.fill("#f-affinity-prefix", "half-ty"); err != nil {
		return err
	}
	err := t.eval(`document.querySelectorAll("input[type=checkbox]").forEach((b, i) => { b.checked = i % 2 === 0; });
		window.parts = [...document.querySelectorAll("#live :is(form, fieldset, table, tr, a, button, input, details)")];
		document.querySelector("#live td:last-child").textContent = "stale"; document.querySelector("#live").dataset.stale = "1"; true`, nil)
	if err != nil {
		return err
	}
	if err := t.until("the page was refreshed", `!document.querySelector("#live").dataset.stale && !document.querySelector("#live").innerText.includes("stale")`); err != nil {
		return err
	}
	if !t.is(`document.querySelector("#f-affinity-prefix").value === "half-ty" && document.activeElement.id === "f-affinity-prefix" &&
		[...document.querySelectorAll("input[type=checkbox]")].every((b, i) => b.checked === (i % 2 === 0))`) {
		return errors.New("what was typed or chosen is gone after a refresh")
	}
	var gone []string
	if err := t.eval(`window.parts.filter((e) => !e.isConnected).slice(0, 5).map((e) => e.outerHTML.slice(0, 200))`, &gone); err != nil {
		return err
	}
	if len(gone) > 0 {
		return fmt.Errorf("a refresh replaces what is as it was: %q", gone)
	}
	return nil
}

// copies copies parameters of a task.
func (s *stage) copies(n *node) error {
	return s.loggedIn(n, true, func(t *tab) error {
		if err := t.open("/ui/tasks/upload~0"); err != nil {
			return err
		}
		err := t.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
				Permission:       &browser.PermissionDescriptor{Name: "clipboard-read"},
				Setting:          browser.PermissionSettingGranted,
				Origin:           t.home,
				BrowserContextID: chromedp.FromContext(t.ctx).BrowserContextID,
			})
			return err
		}))
		if err != nil {
			return fmt.Errorf("grant to read the clipboard: %w", err)
		}
		for what, before := range map[string]string{
			"by the clipboard's interface": `true`,
			"where it is missing, as without TLS": `Object.defineProperty(navigator, "clipboard", { configurable: true, get: () => undefined }),
				window.read = Navigator.prototype.__lookupGetter__("clipboard").call(navigator), true`,
		} {
			if err := t.open("/ui/tasks/upload~0"); err != nil {
				return err
			}
			if err := t.eval(before, nil); err != nil {
				return err
			}
			if err := t.eval(`document.querySelectorAll("details").forEach((d) => { d.open = true; }); true`, nil); err != nil {
				return err
			}
			if err := t.click("[data-copy]"); err != nil {
				return err
			}
			if err := t.until("the button says that it was copied", `document.querySelector("[data-copy]").innerText === "Copied"`); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			var text string
			if err := t.eval(`(window.read || navigator.clipboard).readText()`, &text); err != nil {
				return err
			}
			if !strings.Contains(text, "connection refused") || !strings.HasPrefix(text, "{") {
				return fmt.Errorf("%s: the clipboard has %q", what, text)
			}
		}
		return nil
	})
}
