package api

import (
	"fmt"
	"net/url"
)

// nameOfOrigin returns the name of the host of an origin behind a proxy.
func nameOfOrigin(origin string) (name string, err error) {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || origin != "https://"+u.Host {
		return "", fmt.Errorf("origin %.100q: want https://NAME, or https://NAME:PORT", origin)
	}
	return u.Hostname(), nil
}
