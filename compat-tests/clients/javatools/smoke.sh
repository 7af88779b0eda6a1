#!/usr/bin/env bash
# The smoke job with Apache Kafka's own command-line tools: topics, console, perf, consumer-groups, get-offsets. Every line of it is a JVM.
set -euo pipefail
kafka=${KAFKA:?the reference script}
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }
tool() { "$kafka" tool "$1" --bootstrap-server "$BOOTSTRAP" "${@:2}"; }
export KAFKA_REF_OPTS="-Xms64m -Xmx256m -XX:TieredStopAtLevel=1"

tool topics --create --topic "$TOPIC" --partitions 6 --replication-factor 1 | grep -q "Created topic" || fail "not created"
tool topics --describe --topic "$TOPIC" | grep -q "PartitionCount: 6" || fail "describe"
echo created
seq 0 9999 | sed -E 's/(.*)/k\1:console-\1/' | tool console-producer --topic "$TOPIC" --reader-property parse.key=true --reader-property key.separator=: --compression-codec zstd
"$kafka" tool producer-perf-test --topic "$TOPIC" --num-records 10000 --record-size 100 --throughput -1 --producer-props bootstrap.servers="$BOOTSTRAP" acks=all compression.type=lz4 | tail -1
echo produced
tool console-consumer --topic "$TOPIC" --group "$GROUP" --from-beginning --max-messages 20000 --timeout-ms 30000 > "$dir/all" 2> "$dir/err" || fail "$(cat "$dir/err")"
[ "$(wc -l < "$dir/all")" = 20000 ] || fail "consumed $(wc -l < "$dir/all")"
[ "$(grep -c '^console-' "$dir/all")" = 10000 ] || fail "consumed $(grep -c '^console-' "$dir/all") of the console's"
tool consumer-groups --describe --group "$GROUP" > "$dir/group"
awk -v topic="$TOPIC" '$2 == topic { lag += $6; rows++ } END { exit !(rows == 6 && lag == 0) }' "$dir/group" || fail "lag: $(cat "$dir/group")"
tool consumer-groups --list | grep -qx "$GROUP" || fail "the group is not listed"
echo consumed
tool consumer-perf-test --topic "$TOPIC" --num-records 20000 --timeout 30000 | tail -1
tool get-offsets --topic "$TOPIC" --time earliest > "$dir/earliest"
[ "$(grep -c ':0$' "$dir/earliest")" = 6 ] || fail "earliest: $(cat "$dir/earliest")"
[ "$(tool get-offsets --topic "$TOPIC" | awk -F: '{ n += $3 } END { print n }')" = 20000 ] || fail "latest offsets"
tool consumer-groups --reset-offsets --group "$GROUP" --topic "$TOPIC" --to-earliest --execute > "$dir/reset"
[ "$(awk -v topic="$TOPIC" '$2 == topic && $4 == 0' "$dir/reset" | wc -l)" = 6 ] || fail "reset: $(cat "$dir/reset")"
echo "listed and reset offsets"
tool consumer-groups --delete --group "$GROUP" | grep -q "successful" || fail "group not deleted"
tool topics --delete --topic "$TOPIC"
tool topics --list > "$dir/topics"
! grep -qx "$TOPIC" "$dir/topics" || fail "the topic is still listed"
echo OK
