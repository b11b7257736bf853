package api

import (
	"fmt"
	"net/url"
)

// NameOfOrigin returns the name of the host of an origin that a proxy shows, or says what is wrong with the origin.
func NameOfOrigin(origin string) (name string, err error) {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || origin != "https://"+u.Host {
		return "", fmt.Errorf("origin %.100q: want https://NAME, or https://NAME:PORT", origin)
	}
	return u.Hostname(), nil
}
