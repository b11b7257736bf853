package httpd

// Lately lets tests ask as those do who need no token.
var Lately = lately
