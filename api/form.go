package api

import (
	"mime"
	"net/url"
	"slices"

	"taskledger/api/problem"
	"taskledger/api/shape"
)

// mediaForm is the media type of forms that a browser sends.
const mediaForm = "application/x-www-form-urlencoded"

// Form reads a body that is a form of HTML: the fields of the route alone, each once unless it may be there more often.
func (c *Call) Form() (url.Values, error) {
	if is, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || is != mediaForm {
		return nil, problem.New(problem.MediaType, "want the header Content-Type: %s", mediaForm)
	}
	body, err := c.plainBody()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, problem.New(problem.Malformed, "the form cannot be read: %s", err)
	}
	return form, c.checkParams(form, c.route.Form, "the form has no such field")
}

// checkParams refuses parameters that are not known, and those that are there more often than they may be.
func (c *Call) checkParams(all url.Values, known []Param, unknown string) error {
	for name, values := range all {
		switch {
		case !slices.ContainsFunc(known, func(p Param) bool { return p.Name == name }):
			return invalid(shape.Clip(name), "%s", unknown)
		case len(values) > 1 && !slices.Contains(c.route.Many, name):
			return invalid(name, "it is there more than once")
		}
	}
	return nil
}
