package ui

import (
	"fmt"
	"net/http"
	"net/url"

	"taskledger/api"
	"taskledger/api/problem"
)

// maxSteer bounds a form with a reason and the names of one page.
const maxSteer = 64 << 10

// refused holds what a page shows when the API has refused what a form asked for.
type refused struct {
	*problem.Problem
	Back string // address of the page of the form
}

// steer has the API do what a form asks for, and leads back to the page of the form, or shows what was refused.
func (l *look) steer(form url.Values, q api.Question) error {
	if err := l.ask(q, nil); err != nil {
		return l.refuse(err, form)
	}
	return l.call.Redirect(within(form.Get("next")))
}

// ask has the API change something, and decodes its answer; into nil drops it.
func (l *look) ask(q api.Question, into any) error {
	if q.Method == "" {
		q.Method = http.MethodPost
	}
	_, err := l.send(q, into)
	return err
}

// refuse shows why a form has done nothing, or that nobody knows whether it has, and the way back to its page.
func (l *look) refuse(err error, form url.Values) error {
	p := problem.Of(err)
	l.Title = "Not done"
	if unknown(p) {
		l.Title = "It is not known whether this was done"
	}
	return l.showAs(p.Status, "refused", refused{p, within(form.Get("next"))})
}

// unknown reports whether a change that has this problem may have been made.
func unknown(p *problem.Problem) bool {
	return p.Type == problem.OutcomeUnknown || p.Type == problem.Timeout
}

// miss names a part as missing that the cluster cannot tell for now. It returns any other error, with which the page is
// refused.
func (l *look) miss(what string, err error) error {
	if err == nil {
		return nil
	}
	p := problem.Of(err)
	if p.Status < http.StatusInternalServerError {
		return err
	}
	l.Missing = append(l.Missing, what+": "+p.Error())
	return nil
}

// lacks names the shards that a list lacks.
func (l *look) lacks(what string, all []api.Missing) {
	for _, m := range all {
		l.Missing = append(l.Missing, fmt.Sprintf("%s of shard %d: %s", what, m.Shard, m.Detail))
	}
}
