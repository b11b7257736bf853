package api

import (
	"net/http"
	"net/url"
	"strings"
)

// Secret returns the secret of the token that a request carries, "" for none. It takes the token of an Authorization
// header of the scheme Bearer, and the password of the scheme Basic, which old clients send for a URL with a user and
// a password.
func Secret(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// secret returns what Secret does, or else what stands in the header that the format of the path names, or belongs to
// its cookie.
func (f *refusals) secret(r *http.Request) string {
	if secret := f.inHeader(r); secret != "" {
		return secret
	}
	return f.ofSession(r)
}

func (f *refusals) inHeader(r *http.Request) string {
	secret := Secret(r)
	if d := f.formatOf(r.URL.Path); secret == "" && d != nil && d.SecretHeader != "" {
		secret = r.Header.Get(d.SecretHeader)
	}
	return secret
}

func (f *refusals) ofSession(r *http.Request) string {
	if d := f.formatOf(r.URL.Path); d != nil && d.Session != nil {
		return d.Session(r)
	}
	return ""
}

// byCookie reports whether a request has a secret by its cookie alone.
func (f *refusals) byCookie(r *http.Request) bool { return f.inHeader(r) == "" && f.ofSession(r) != "" }

// wantsSecret says in which headers a request may carry its secret.
func (f *refusals) wantsSecret(r *http.Request) string {
	or := ""
	if d := f.formatOf(r.URL.Path); d != nil && d.SecretHeader != "" {
		or = ", or " + d.SecretHeader + ","
	}
	return "want the header Authorization: Bearer" + or + " and a token that is known"
}

// hideSecret moves a secret from the query of a request to the header that stands for it, so that nothing after it
// tells the secret with the URL. A header that is there stays.
func (f *refusals) hideSecret(r *http.Request) {
	d := f.formatOf(r.URL.Path)
	if d == nil || d.SecretParam == "" || !strings.Contains(r.URL.RawQuery, d.SecretParam) {
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query[d.SecretParam]) != 1 { // it shows no secret, or more than one
		return
	}
	if r.Header.Get(d.SecretHeader) == "" {
		r.Header.Set(d.SecretHeader, query.Get(d.SecretParam))
	}
	query.Del(d.SecretParam)
	r.URL.RawQuery = query.Encode()
	r.RequestURI = r.URL.RequestURI()
}
