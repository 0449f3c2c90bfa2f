#!/bin/sh
# secrets.sh [DIR [NAMESPACE [CLIENTS...]]]
#
# Makes the authority, certificates and tokens in a folder (default ./taxon-certs) and puts what
# each process needs into the cluster's secrets. Clients get theirs in the namespace of the
# processes, and in those of CLIENTS, which are labelled so that they are let in. Run it again
# to renew: what still serves is kept, and running pods notice changed files within a minute or
# two. Keep the folder, and ca.key in it, off the cluster. Needs taxon and kubectl.
set -eu
umask 077

dir=${1:-taxon-certs}
namespace=${2:-taxon}
if [ $# -gt 2 ]; then shift 2; else shift $#; fi

# localhost is for those who reach the coordinator by kubectl port-forward.
taxon certs --dir "$dir" --role coordinator --name coordinator \
	--host "taxon-coordinator,taxon-coordinator.$namespace,taxon-coordinator.$namespace.svc,localhost"
taxon certs --dir "$dir" --role store --name store \
	--host "*.taxon-store.$namespace.svc"
# The kubelet calls a worker's probes by its address and does not look at the name.
taxon certs --dir "$dir" --role worker --name worker --host taxon-worker
taxon certs --dir "$dir" --role submit --name client
taxon certs token --dir "$dir"

# secret NAMESPACE ROLE ARGS...: a role's certificate and key, and more.
secret() {
	space=$1 role=$2
	shift 2
	kubectl --namespace "$space" create secret generic "taxon-$role" \
		--from-file=ca.crt="$dir/ca.crt" \
		--from-file=tls.crt="$dir/$role.crt" \
		--from-file=tls.key="$dir/$role.key" "$@" \
		--dry-run=client -o yaml | kubectl apply -f -
}

# The namespace's own manifest comes with apply -k; here it only has to be there.
kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f -
for role in coordinator store worker; do
	secret "$namespace" "$role" --from-file=tokens="$dir/$role.tokens"
done
# A client's profile names the files beside it: those of the secret, and those of the folder.
profile() { printf 'tls-ca: ca.crt\ntls-cert: %s.crt\ntls-key: %s.key\n' "$1" "$1"; }
mkdir -p "$dir"
profile client >"$dir/profile"
secret "$namespace" client --from-literal=profile="$(profile tls)"
for space in "$@"; do
	kubectl label namespace "$space" taxon.client=true --overwrite
	secret "$space" client --from-literal=profile="$(profile tls)"
done
# What Prometheus reads figures with (monitoring/).
kubectl --namespace "$namespace" create secret generic taxon-prometheus \
	--from-file=ca.crt="$dir/ca.crt" --from-file=token="$dir/read-only.token" \
	--dry-run=client -o yaml | kubectl apply -f -
