#!/bin/sh
# Makes the authority, certificates and tokens in a folder (default ./taxon-certs) and puts what
# each process needs into the cluster's secrets. Run it again to renew: what still serves is kept,
# and running pods notice changed files within a minute or two. Keep the folder, and ca.key in it,
# off the cluster. Needs taxon and kubectl.
set -eu
umask 077

dir=${1:-taxon-certs}
namespace=${2:-taxon}

taxon certs --dir "$dir" --role coordinator --name coordinator \
	--host "taxon-coordinator,taxon-coordinator.$namespace,taxon-coordinator.$namespace.svc"
taxon certs --dir "$dir" --role store --name store \
	--host "*.taxon-store,*.taxon-store.$namespace,*.taxon-store.$namespace.svc"
# The kubelet calls a worker's probes by its address and does not look at the name.
taxon certs --dir "$dir" --role worker --name worker --host taxon-worker
taxon certs token --dir "$dir"

# The namespace's own manifest comes with apply -k; here it only has to be there.
kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f -
for role in coordinator store worker; do
	kubectl --namespace "$namespace" create secret generic "taxon-$role" \
		--from-file=ca.crt="$dir/ca.crt" \
		--from-file=tls.crt="$dir/$role.crt" \
		--from-file=tls.key="$dir/$role.key" \
		--from-file=tokens="$dir/$role.tokens" \
		--dry-run=client -o yaml | kubectl apply -f -
done
