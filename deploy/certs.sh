#!/bin/sh
# Makes the certificates of a cluster: certs.sh DIR [NAME...]. Each NAME is the host of a server or node and gets a
# directory of its own below DIR, which holds tls.crt and tls.key, whose certificate names the host beside localhost,
# and ca.crt, the authority's. DIR/client holds the same three of the user taskledger: etcd knows users by that name.
# The key of the authority stays in DIR/authority, which no server needs: keep it away from them.
# Certificates are valid for a year. What is there stays: run it again with a directory removed to renew what it held.
set -eu
dir=$1
shift
mkdir -p "$dir"
cd "$dir"
umask 077
if [ -f ca.key ]; then
	echo "certs.sh: $dir is of an earlier form, whose servers all saw the key of the authority: make another directory" >&2
	exit 1
fi

mkdir -p authority
if [ ! -f authority/ca.crt ]; then
	openssl ecparam -name prime256v1 -genkey -noout -out authority/ca.key
	openssl req -x509 -new -key authority/ca.key -sha256 -days 3650 -subj '/CN=taskledger authority' -out authority/ca.crt
fi

# issue NAME SUBJECT EXTENSIONS makes the directory NAME.
issue() {
	[ -f "$1/tls.crt" ] && return
	mkdir -p "$1"
	openssl ecparam -name prime256v1 -genkey -noout -out "$1/tls.key"
	openssl req -new -key "$1/tls.key" -subj "/CN=$2" -out "$1/tls.csr"
	printf '%s\n' "$3" >"$1/tls.ext"
	openssl x509 -req -in "$1/tls.csr" -CA authority/ca.crt -CAkey authority/ca.key -CAcreateserial -sha256 -days 365 \
		-extfile "$1/tls.ext" -out "$1/tls.crt" 2>/dev/null
	rm "$1/tls.csr" "$1/tls.ext"
	cp authority/ca.crt "$1"
	chmod 644 "$1/tls.crt" "$1/ca.crt"
}

for name; do
	issue "$name" "$name" "subjectAltName=DNS:$name,DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth,clientAuth"
done
issue client taskledger 'extendedKeyUsage=clientAuth'
