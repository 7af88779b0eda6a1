#!/usr/bin/env bash
# The smoke job with kcat, librdkafka's command line.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }
kcat -b "$BOOTSTRAP" -L > /dev/null
codecs="none gzip snappy lz4 zstd"
for codec in $codecs; do
  # kcat creates the topic by its first produce: auto-creation is part of the job here
  seq 0 9999 | sed -E "s/(.*)/k\1:$codec-\1/" | kcat -P -b "$BOOTSTRAP" -t "$TOPIC" -K: -z "$codec" -X enable.idempotence=true -X acks=all -X linger.ms=5
done
echo "produced with $codecs"
consume() { # NAME EXIT-AT-END-SECONDS
  timeout "$2" kcat -b "$BOOTSTRAP" -G "$GROUP" -X auto.offset.reset=earliest -X session.timeout.ms=10000 -X heartbeat.interval.ms=500 \
    -X auto.commit.interval.ms=200 -X client.id="$1" -f '%s\n' -u -q "$TOPIC" > "$dir/$1" 2> "$dir/$1.err" || [ $? = 124 ] || fail "consumer $1: $(cat "$dir/$1.err")"
}
consume first 25 & first=$!
until [ "$(cat "$dir/first" 2>/dev/null | wc -l)" -gt 10000 ]; do kill -0 $first || fail "the first consumer ended"; read -rt 0.05 <> <(:) || :; done
consume second 20 & second=$!
wait $first $second
for codec in $codecs; do for i in 0 4711 9999; do grep -qx "$codec-$i" "$dir/first" "$dir/second" || fail "lost $codec-$i"; done; done
[ "$(sort -u "$dir/first" "$dir/second" | wc -l)" = 50000 ] || fail "$(sort -u "$dir/first" "$dir/second" | wc -l) of 50000 records"
echo "consumed by two members: $(wc -l < "$dir/first") and $(wc -l < "$dir/second")"
seq 0 99 | sed 's/^/resumed-/' | kcat -P -b "$BOOTSTRAP" -t "$TOPIC" -X acks=all
consume third 10
[ "$(grep -c '^resumed-' "$dir/third")" = 100 ] || fail "resumed with $(wc -l < "$dir/third") records"
[ "$(wc -l < "$dir/third")" = 100 ] || fail "an old record came back"
kcat -b "$BOOTSTRAP" -Q -t "$TOPIC:0:0" | grep -q 'offset 0$' || fail "time 0 is not offset 0: $(kcat -b "$BOOTSTRAP" -Q -t "$TOPIC:0:0")"
echo "resumed, listed offsets"
echo OK
