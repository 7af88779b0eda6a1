"""The smoke job with confluent-kafka, librdkafka's Python face."""
import os
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

RECORDS = 10_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
BOOTSTRAP, TOPIC, GROUP = (os.environ[k] for k in ("BOOTSTRAP", "TOPIC", "GROUP"))


def produce(codec, count, prefix):
    errors = []
    p = Producer({"bootstrap.servers": BOOTSTRAP, "compression.type": codec, "enable.idempotence": True, "linger.ms": 5})
    for i in range(count):
        p.produce(TOPIC, key=f"k{i}", value=f"{prefix}-{i}", on_delivery=lambda e, m: errors.append(e) if e else None)
        if i % 1000 == 0:
            p.poll(0)
    assert p.flush(60) == 0, "records were left in the queue"
    assert not errors, errors[:3]


def consumer(client):
    c = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": GROUP, "client.id": client, "auto.offset.reset": "earliest", "enable.auto.commit": False,
                  "session.timeout.ms": 10000, "heartbeat.interval.ms": 500})
    c.subscribe([TOPIC])
    return c


def poll(c, seen):
    for m in c.consume(500, 0.1):
        assert not m.error(), m.error()
        seen.add(m.value().decode())


def commit(c):
    try:
        c.commit(asynchronous=False)
    except KafkaException as e:
        if e.args[0].code() not in (KafkaError._NO_OFFSET, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION):
            raise


def settle(expected, members):
    """Polls and commits until the group's committed offsets add up to all records: a rebalance may have taken a member back."""
    deadline = time.time() + 60
    while True:
        for c in members:
            poll(c, seen)
            commit(c)
        committed = members[0].committed([TopicPartition(TOPIC, p) for p in range(6)], timeout=10)
        if sum(max(tp.offset, 0) for tp in committed) == expected:
            return
        assert time.time() < deadline, f"committed {committed}"


admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
for f in admin.create_topics([NewTopic(TOPIC, 6, 1)]).values():
    f.result(20)
print("created", flush=True)
for codec in CODECS:
    produce(codec, RECORDS, codec)
print("produced with", CODECS, flush=True)

total, seen, first, second, split = RECORDS * len(CODECS), set(), consumer("first"), None, False
deadline = time.time() + 120
while len(seen) < total or not split:
    assert time.time() < deadline, f"only {len(seen)} of {total} records, split {split}"
    poll(first, seen)
    if second is None and len(seen) > total / 3:
        commit(first)
        second = consumer("second")
    if second is not None:
        poll(second, seen)
        split = split or len(first.assignment()) == len(second.assignment()) == 3
        commit(second)
    commit(first)
settle(total, [first, second])
first.close()
second.close()
assert seen == {f"{c}-{i}" for c in CODECS for i in range(RECORDS)}
print("consumed in two members", flush=True)

produce("none", 100, "resumed")
third, resumed, deadline = consumer("third"), set(), time.time() + 30
while len(resumed) < 100:
    assert time.time() < deadline, f"resumed with {len(resumed)} of 100"
    poll(third, resumed)
assert all(v.startswith("resumed-") for v in resumed), "an old record came back"
third.commit(asynchronous=False)
for tp in third.offsets_for_times([TopicPartition(TOPIC, p, 0) for p in range(6)], timeout=10):
    assert tp.error is None and tp.offset == 0, tp
ends = 0
for p in range(6):
    low, high = third.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=10)
    assert low == 0
    ends += high
assert ends == total + 100, ends
for tp in third.offsets_for_times([TopicPartition(TOPIC, p, int(time.time() * 1000) + 3_600_000) for p in range(6)], timeout=10):
    assert tp.error is None and tp.offset == -1, tp  # OFFSET_END
third.close()
print("resumed, listed offsets", flush=True)

for f in admin.delete_topics([TOPIC]).values():
    f.result(20)
deadline = time.time() + 10
while TOPIC in admin.list_topics(timeout=10).topics:
    assert time.time() < deadline, "the topic is still listed"
print("OK")
