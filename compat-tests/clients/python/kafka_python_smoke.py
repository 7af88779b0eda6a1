"""The smoke job with kafka-python."""
import os
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

RECORDS = 10_000
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
BOOTSTRAP, TOPIC, GROUP = (os.environ[k] for k in ("BOOTSTRAP", "TOPIC", "GROUP"))


def produce(codec, count, prefix):
    p = KafkaProducer(bootstrap_servers=BOOTSTRAP, compression_type=codec, acks="all", enable_idempotence=True, linger_ms=5)
    acks = [p.send(TOPIC, key=f"k{i}".encode(), value=f"{prefix}-{i}".encode()) for i in range(count)]
    p.flush(60)
    for a in acks:
        assert a.get(10).offset >= 0
    p.close()


def consumer(client):
    return KafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, group_id=GROUP, client_id=client, auto_offset_reset="earliest", enable_auto_commit=False,
                         session_timeout_ms=10000, heartbeat_interval_ms=500)


def poll(c, seen):
    for records in c.poll(timeout_ms=100, max_records=500).values():
        seen.update(r.value.decode() for r in records)


admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
admin.create_topics([NewTopic(TOPIC, 6, 1)])
print("created", flush=True)
for codec in CODECS:
    produce(codec, RECORDS, codec)
print("produced with", CODECS, flush=True)

total, seen, first, second, split = RECORDS * len(CODECS), set(), consumer("first"), None, False
deadline = time.time() + 150
while len(seen) < total or not split:
    assert time.time() < deadline, f"only {len(seen)} of {total} records, split {split}"
    poll(first, seen)
    if second is None and len(seen) > total / 3:
        first.commit()
        second = consumer("second")
    if second is not None:
        poll(second, seen)
        split = split or len(first.assignment()) == len(second.assignment()) == 3
        second.commit()
    first.commit()
first.close()
second.close()
assert seen == {f"{c}-{i}" for c in CODECS for i in range(RECORDS)}
print("consumed in two members", flush=True)

produce(None, 100, "resumed")
third, resumed, deadline = consumer("third"), set(), time.time() + 30
while len(resumed) < 100:
    assert time.time() < deadline, f"resumed with {len(resumed)} of 100"
    poll(third, resumed)
assert all(v.startswith("resumed-") for v in resumed), "an old record came back"
third.commit()
partitions = [TopicPartition(TOPIC, p) for p in range(6)]
for tp, found in third.offsets_for_times({tp: 0 for tp in partitions}).items():
    assert found.offset == 0, (tp, found)
late = int(time.time() * 1000) + 3_600_000
assert all(found is None for found in third.offsets_for_times({tp: late for tp in partitions}).values())
assert sum(third.end_offsets(partitions).values()) == total + 100
third.close()
print("resumed, listed offsets", flush=True)

admin.delete_topics([TOPIC])
deadline = time.time() + 10
while TOPIC in admin.list_topics():
    assert time.time() < deadline, "the topic is still listed"
print("OK")
