// Package ui is the dashboard: pages below /ui/ for people, made by the node that is asked. It shows the
// answers of the HTTP API and sends its requests, within the process and with the token of the viewer (api.Client). So
// roles, prefixes and limits of the API hold, and no page knows more than a program could.
//
// Pages work without JavaScript. With it, htmx asks for the part of a page that changes every two seconds, and a script
// of our own shows times in the zone of the viewer. Nothing is loaded from elsewhere.
//
// All questions of a page end at one time, so that it comes whoever does not answer: what it lacks it names.
//
// Each page is a file with its routes, what it asks, and what its template is given; templates/ has the template of the
// same name. A frame holds what all pages have.
package ui
