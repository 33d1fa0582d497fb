#!/usr/bin/env bash
# Fetches what every pod of the DaemonSet said, and keeps it under its node's name. Run it
# where kubectl reaches the cluster, in the directory of this file.
#
#   ./collect.sh [DIR [SECONDS]]
#
# A pod may be pulled up late: each is waited for, SECONDS at most (120).
set -euo pipefail

out="${1:-transcripts}"
patience="${2:-120}"
cluster() { kubectl --namespace tki-attest "$@"; }

mkdir -p "$out"
pods=$(cluster get pods --selector app=tki-attest-nodes \
    --output 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}')
wanted=$(cluster get daemonset tki-attest-nodes \
    --output 'jsonpath={.status.desiredNumberScheduled}')
heard=0
while read -r pod node; do
    [ -n "$node" ] || continue
    # It becomes a file's name, and a cluster could call a node anything.
    case "$pod$node" in
    *[!a-z0-9.-]*)
        printf 'not the name of a node, or of a pod on it: left out\n' >&2
        continue
        ;;
    esac
    give_up=$((SECONDS + patience))
    # The last line repeats this packet's nonce: what has it is whole, and of this packet.
    until cluster logs "$pod" > "$out/$node.ndjson.part" 2>&1 &&
        tail -n 1 "$out/$node.ndjson.part" |
            grep -q '^{"done":{"nonce":"{{nonce}}",'; do
        if [ "$SECONDS" -ge "$give_up" ]; then
            printf 'no answer from %s on %s: see %s\n' "$pod" "$node" "$out/$node.ndjson.part" >&2
            continue 2
        fi
        sleep 1
    done
    mv "$out/$node.ndjson.part" "$out/$node.ndjson"
    heard=$((heard + 1))
done <<< "$pods"
printf '%s of %s nodes answered\n' "$heard" "${wanted:-?}" >&2
[ "$heard" = "$wanted" ]
