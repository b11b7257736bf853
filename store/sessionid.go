package store

import "strings"

const (
	// maxNameInID bounds the characters of a node's name with which its session ids begin.
	maxNameInID = 16
	// DrawnInID counts the random characters of [a-z2-7] with which a session id ends: 50 bits. A new id must
	// differ from that of an earlier session of the same name that something still names: an owner key, or an
	// attempt that has not been given up yet. There are few of those at a time, and each is met by chance once in
	// 10^15 sessions.
	DrawnInID = 10
)

// SessionID makes the id of a session of a node from the node's name and DrawnInID characters drawn at random. It
// begins with the first 16 characters of the name, of which other than [A-Za-z0-9_-] become _, so that it can stand
// in keys and subjects.
func SessionID(name, drawn string) string {
	var b strings.Builder
	for _, c := range name {
		if b.Len() == maxNameInID {
			break
		}
		if c >= 0x80 || !inName[c] {
			c = '_'
		}
		b.WriteRune(c)
	}
	return b.String() + "-" + drawn
}

var inName = charactersOf("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

var inDrawn = charactersOf("abcdefghijklmnopqrstuvwxyz234567")

func charactersOf(text string) (is [0x80]bool) {
	for _, c := range text {
		is[c] = true
	}
	return is
}

// NodeName returns the name of the node in the id of one of its sessions, however long ago that ended: as much of
// it, and in such characters, as SessionID takes. An id without a name is its own name.
func NodeName(session string) string {
	if name, ok := nameIn(session); ok && name != "" {
		return name
	}
	return session
}

// IsSessionID reports whether a text has the form of a session id.
func IsSessionID(text string) bool {
	_, ok := nameIn(text)
	return ok
}

// nameIn returns what stands in a session id before the drawn characters.
func nameIn(session string) (name string, ok bool) {
	at := len(session) - DrawnInID - 1
	if at < 0 || at > maxNameInID || session[at] != '-' {
		return "", false
	}
	for i := range len(session) {
		if c := session[i]; c >= 0x80 || !inName[c] || i > at && !inDrawn[c] {
			return "", false
		}
	}
	return session[:at], true
}
