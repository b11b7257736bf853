#!/bin/sh
# Renews what of others lies here, from npm: the version and the hash of its package stand below. Of another version, change
# them, the hashes of its files, and the name of the file in templates/shared/layout.html. Needs npm and openssl; run it from anywhere.
set -eu
cd "$(dirname "$0")"

# fetch PACKAGE VERSION SHA-512 unpacks a package into $dir/package if it is the one that the hash names.
fetch() {
	(cd "$dir" && npm pack --silent "$1@$2" >/dev/null)
	got=$(openssl dgst -sha512 -binary "$dir/$1-$2.tgz" | openssl base64 -A)
	if [ "$got" != "$3" ]; then
		echo "$1@$2 has the hash $got, not $3" >&2
		exit 1
	fi
	tar -xzf "$dir/$1-$2.tgz" -C "$dir"
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# htmx, 0BSD: https://htmx.org
htmx=4.0.1
fetch htmx.org "$htmx" 'oF7JgXhDW9UXCy/k1ZYFUQgzu/rm19ORWPSPNL91vPluB2PB9+MV55tyQdH/w7o2EAbTYUG5SDW1R60mdkdqGg=='
rm -f htmx-*.min.js
cp "$dir/package/dist/htmx.min.js" "htmx-$htmx.min.js"
cp "$dir/package/LICENSE" htmx-LICENSE.txt

# holds FILE SHA-512 fails unless a file here is the one that the hash names; the tests compare them, too.
holds() {
	got=$(openssl dgst -sha512 -binary "$1" | openssl base64 -A)
	if [ "$got" != "$2" ]; then
		echo "$1 has the hash $got, not $2" >&2
		exit 1
	fi
}
holds htmx-$htmx.min.js 'xspa3t9MrzLkwdfo67LbsusW+t3z2LG1cjkA8seYXH3kWokLTlZGrNPNGZJnHF9apv32h6Q4R8XWBCW4EiNptA=='
holds htmx-LICENSE.txt 'kRf+Kdn0W+I2iWY4TpIw1y3lz98ecu581O8HegVrmPQcLoPblHkESM6APUBCxasf6e3BOloQKZ4LQ5vNw/Q0Mw=='
