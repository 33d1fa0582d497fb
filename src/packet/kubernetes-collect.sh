#!/usr/bin/env bash
# Asks every pod of the DaemonSet the challenge, and keeps what each says under its node's
# name. Run it where kubectl reaches the cluster, in the directory of this file.
#
#   ./collect.sh [DIR]
set -euo pipefail

out="${1:-transcripts}"
sha256sum --check --strict --quiet SHA256SUMS
mkdir -p "$out"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kubectl --namespace tki-attest get pods --selector app=tki-attest-nodes \
    --output 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}' > "$folder/pods"
failed=0
while read -r pod node <&4; do
    # Open in both directions: standard input stays open until the pod has said everything.
    mkfifo "$folder/stdin"
    exec 3<>"$folder/stdin"
    cat challenge.json >&3
    # A pod that heard nothing for a minute ends and is started again.
    kubectl --namespace tki-attest wait --for=condition=Ready --timeout=360s "pod/$pod" || true
    if ! timeout 120 kubectl --namespace tki-attest attach --stdin --quiet "$pod" \
        <&3 > "$out/$node.ndjson"; then
        printf 'no answer from %s on %s\n' "$pod" "$node" >&2
        failed=1
    fi
    exec 3>&-
    rm -f "$folder/stdin"
done 4< "$folder/pods"
exit "$failed"
