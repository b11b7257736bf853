package httpd

// Lately lets tests ask as those do who need no token, and WarnOfKey look at a file without a certificate.
var (
	Lately    = lately
	WarnOfKey = warnOfKey
)
