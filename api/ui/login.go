package ui

import (
	"net/http"
	"net/url"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/ui/sessions"
)

// maxLogin bounds a form with a token, a link, and the address of a page.
const maxLogin = 16 << 10

func (u *UI) loginRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "login",
			Summary: "Ask for a token, or for the button of a link",
			Query:   []api.Param{{Name: "next", Does: "page to show then"}, {Name: "link", Does: "code that begins a session"}},
			Serve:   u.askLogin,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "login",
			Summary: "Begin a session",
			MaxBody: maxLogin,
			Form:    []api.Param{{Name: "token"}, {Name: "next"}, {Name: "link"}},
			Serve:   u.login,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "logout",
			Summary: "End the session",
			Role:    token.Viewer,
			Serve:   u.logout,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "links",
			Summary: "Make a link that begins a session of the caller once",
			Role:    token.Viewer,
			Serve:   u.makeLink,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "zone",
			Summary: "Choose the zone of times",
			MaxBody: maxLogin,
			Form:    []api.Param{{Name: "zone"}, {Name: "next"}},
			Serve:   u.chooseZone,
		},
	}
}

// login holds the parts of the page that asks for a token.
type login struct {
	Next string
	Link string // code of a link that can be spent
	Why  string // what is wrong with what was sent
}

func (u *UI) askLogin(c *api.Call) error {
	body := login{Next: within(c.Param("next"))}
	if code := c.Param("link"); code != "" {
		if u.sessions.Holds(code) {
			body.Link = code
		} else {
			body.Why = "The link has been used, or is too old. Ask for another one: taskledger ui"
		}
	}
	return u.look(c, "", "Log in").show("login", body)
}

func (u *UI) login(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	body := login{Next: within(form.Get("next"))}
	cookie := ""
	switch {
	case form.Get("link") != "":
		cookie = u.sessions.Spend(form.Get("link"))
		body.Why = "The link has been used, or is too old. Ask for another one: taskledger ui"
	default:
		cookie = u.sessions.Begin(form.Get("token"))
		body.Why = "This token is not known."
	}
	if cookie == "" {
		l := u.look(c, "", "Log in")
		l.Address = Root + "login"
		page, err := render("login", l.frame, body)
		if err != nil {
			return err
		}
		return c.RefuseHTML(problem.Unauthorized, page) // guesses are counted
	}
	u.setCookie(c.Header(), c.Request(), sessionCookie, cookie, 0)
	return c.Redirect(body.Next)
}

func (u *UI) logout(c *api.Call) error {
	if cookie := u.cookie(c.Request(), sessionCookie); cookie != "" {
		u.sessions.End(cookie)
	}
	u.setCookie(c.Header(), c.Request(), sessionCookie, "", -1)
	return c.Redirect(Root + "login")
}

// Link holds the answer to a request for a login link.
type Link struct {
	Path    string    `json:"path"` // with its query, of this node
	Expires time.Time `json:"expires"`
}

func (u *UI) makeLink(c *api.Call) error {
	secret := api.Secret(c.Request())
	if secret == "" { // a session has the cookie alone
		return problem.New(problem.Forbidden, "a link is made for the header Authorization: Bearer")
	}
	path := u.LinkPath(secret)
	if path == "" {
		return problem.New(problem.Unauthorized, "the token does not hold any more")
	}
	return c.JSON(http.StatusOK, Link{path, u.cfg.Now().Add(sessions.LinkFor).UTC()})
}

// LinkPath returns the path of a link that begins a session once, with the secret of a token; "" = nobody has the
// secret.
func (u *UI) LinkPath(secret string) string {
	code := u.sessions.Link(secret)
	if code == "" {
		return ""
	}
	return Root + "login?" + url.Values{"link": {code}}.Encode()
}

const aYear = 365 * 24 * 60 * 60 // seconds

func (u *UI) chooseZone(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	name := form.Get("zone")
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		p := problem.New(problem.Invalid, "zone: %.64q is not known: want a name such as Europe/Berlin, or UTC", name)
		p.Field = "zone"
		return p
	}
	u.setCookie(c.Header(), c.Request(), zoneCookie, name, aYear)
	return c.Redirect(within(form.Get("next")))
}
