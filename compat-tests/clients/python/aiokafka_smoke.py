"""The smoke job with aiokafka."""
import asyncio
import os
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

RECORDS = 10_000
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
BOOTSTRAP, TOPIC, GROUP = (os.environ[k] for k in ("BOOTSTRAP", "TOPIC", "GROUP"))


async def produce(codec, count, prefix):
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, compression_type=codec, acks="all", enable_idempotence=True, linger_ms=5) as p:
        acks = [await p.send(TOPIC, key=f"k{i}".encode(), value=f"{prefix}-{i}".encode()) for i in range(count)]
        for a in await asyncio.gather(*acks):
            assert a.offset >= 0


async def consumer(client):
    c = AIOKafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, group_id=GROUP, client_id=client, auto_offset_reset="earliest", enable_auto_commit=False,
                         session_timeout_ms=10000, heartbeat_interval_ms=500)
    await c.start()
    return c


async def poll(c, seen):
    for records in (await c.getmany(timeout_ms=100, max_records=500)).values():
        seen.update(r.value.decode() for r in records)


async def main():
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, 6, 1)])
    print("created", flush=True)
    for codec in CODECS:
        await produce(codec, RECORDS, codec)
    print("produced with", CODECS, flush=True)

    total, seen, first, second, split = RECORDS * len(CODECS), set(), await consumer("first"), None, False
    deadline = time.time() + 150
    while len(seen) < total or not split:
        assert time.time() < deadline, f"only {len(seen)} of {total} records, split {split}"
        await poll(first, seen)
        if second is None and len(seen) > total / 3:
            await first.commit()
            second = asyncio.ensure_future(consumer("second"))
        if second is not None and second.done():
            await poll(second.result(), seen)
            split = split or len(first.assignment()) == len(second.result().assignment()) == 3
    # A rebalance may have taken a member back to what was committed last: go on until the group's offsets say that all is done.
    members = [first, second.result()]
    while True:
        for c in members:
            await poll(c, seen)
            await c.commit()
        committed = [await first.committed(TopicPartition(TOPIC, p)) for p in range(6)]
        if sum(o or 0 for o in committed) == total:
            break
        assert time.time() < deadline, f"committed {committed}"
    await first.stop()
    await second.result().stop()
    assert seen == {f"{c}-{i}" for c in CODECS for i in range(RECORDS)}
    print("consumed in two members", flush=True)

    await produce(None, 100, "resumed")
    third, resumed, deadline = await consumer("third"), set(), time.time() + 30
    while len(resumed) < 100:
        assert time.time() < deadline, f"resumed with {len(resumed)} of 100"
        await poll(third, resumed)
    assert all(v.startswith("resumed-") for v in resumed), "an old record came back"
    await third.commit()
    partitions = [TopicPartition(TOPIC, p) for p in range(6)]
    for tp, found in (await third.offsets_for_times({tp: 0 for tp in partitions})).items():
        assert found.offset == 0, (tp, found)
    late = int(time.time() * 1000) + 3_600_000
    assert all(found is None for found in (await third.offsets_for_times({tp: late for tp in partitions})).values())
    assert sum((await third.end_offsets(partitions)).values()) == total + 100
    await third.stop()
    print("resumed, listed offsets", flush=True)

    await admin.delete_topics([TOPIC])
    deadline = time.time() + 10
    while TOPIC in await admin.list_topics():
        assert time.time() < deadline, "the topic is still listed"
    await admin.close()
    print("OK")


asyncio.run(main())
