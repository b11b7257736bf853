package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"taskledger/api/problem"
)

// newMux returns a mux that serves the routes.
func newMux(routes []*Route, s *shared) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	byPattern := map[string][]*Route{}
	for _, r := range routes {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("route %s %s: %w", r.Method, r.Pattern, err)
		}
		byPattern[r.Pattern] = append(byPattern[r.Pattern], r)
	}
	for pattern, of := range byPattern {
		slices.SortFunc(of, func(x, y *Route) int { return cmp.Compare(x.Method, y.Method) })
		for i := range of[1:] {
			if of[i].Method == of[i+1].Method {
				return nil, fmt.Errorf("route %s %s is there twice", of[i].Method, pattern)
			}
		}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.dispatch(w, r, of) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, pathBelow(r))
		hint := ""
		if path == "/" {
			hint = ": the API is below /v1/"
			if slices.ContainsFunc(routes, func(r *Route) bool { return strings.HasPrefix(r.Pattern, "/ui/") }) {
				hint += ", the dashboard below /ui/"
			}
		}
		if id, below := strings.CutPrefix(path, "/v1/tasks/"); below && strings.Contains(id, "/") {
			hint = ": a slash within an id is written ~"
		}
		s.refusals.refuse(w, r, problem.New(problem.NotFound, "there is no %.200q%s", path, hint))
	})
	return mux, nil
}

// dispatch finds the route of a request among those of its pattern.
func (s *shared) dispatch(w http.ResponseWriter, r *http.Request, of []*Route) {
	for _, route := range of {
		if route.Method == r.Method || route.Method == http.MethodGet && r.Method == http.MethodHead {
			s.serve(w, r, route)
			return
		}
	}
	allow := make([]string, len(of))
	for i, route := range of {
		allow[i] = route.Method
	}
	if slices.Contains(allow, http.MethodGet) {
		allow = append(allow, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	s.refusals.refuse(w, r, problem.New(problem.Method, "%.32q: want %s", r.Method, strings.Join(allow, ", ")))
}
