#!/bin/sh
# Makes an authority and the certificates of a cluster in a directory: certs.sh DIR [NAME...]. Each NAME is the host of
# a server or node, which its certificate names beside localhost; a certificate that is there stays. The client's is of
# the user taskledger: etcd knows users by that name. Valid for a year: run it again with other files removed.
set -eu
dir=$1
shift
mkdir -p "$dir"
cd "$dir"
umask 077

[ -f ca.key ] || openssl ecparam -name prime256v1 -genkey -noout -out ca.key
[ -f ca.crt ] || openssl req -x509 -new -key ca.key -sha256 -days 3650 -subj '/CN=taskledger authority' -out ca.crt

# issue NAME SUBJECT EXTENSIONS makes NAME.key and NAME.crt.
issue() {
	[ -f "$1.crt" ] && return
	openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
	openssl req -new -key "$1.key" -subj "/CN=$2" -out "$1.csr"
	printf '%s\n' "$3" >"$1.ext"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -sha256 -days 365 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
	rm "$1.csr" "$1.ext"
}

for name; do
	issue "$name" "$name" "subjectAltName=DNS:$name,DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth,clientAuth"
done
issue client taskledger 'extendedKeyUsage=clientAuth'
chmod 644 ./*.crt
