//! The smoke job with the rdkafka crate.
use std::collections::HashSet;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::Offset;

const RECORDS: usize = 10_000;
const CODECS: [&str; 4] = ["none", "gzip", "lz4", "zstd"];

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn config() -> ClientConfig {
    let mut c = ClientConfig::new();
    c.set("bootstrap.servers", var("BOOTSTRAP"));
    c
}

async fn produce(topic: &str, codec: &str, count: usize, prefix: &str) {
    let p: FutureProducer = config()
        .set("compression.type", codec)
        .set("enable.idempotence", "true")
        .set("linger.ms", "5")
        .create()
        .expect("producer");
    let mut acks = Vec::with_capacity(count);
    for i in 0..count {
        let (key, value) = (format!("k{i}"), format!("{prefix}-{i}"));
        acks.push(p.send_result(FutureRecord::to(topic).key(&key).payload(&value)).map_err(|(e, _)| e).expect("send"));
    }
    for ack in acks {
        ack.await.expect("delivery").map_err(|(e, _)| e).expect("acknowledged");
    }
}

fn consumer(client: &str) -> BaseConsumer {
    let c: BaseConsumer = config()
        .set("group.id", var("GROUP"))
        .set("client.id", client)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("session.timeout.ms", "10000")
        .set("heartbeat.interval.ms", "500")
        .create()
        .expect("consumer");
    c.subscribe(&[&var("TOPIC")]).expect("subscribe");
    c
}

fn poll(c: &BaseConsumer, seen: &mut HashSet<String>) {
    let until = Instant::now() + Duration::from_millis(100);
    while let Some(m) = c.poll(until.saturating_duration_since(Instant::now())) {
        let m = m.expect("message");
        seen.insert(String::from_utf8(m.payload().expect("value").to_vec()).expect("utf-8"));
    }
}

fn partitions(c: &BaseConsumer) -> usize {
    c.assignment().expect("assignment").count()
}

fn commit(c: &BaseConsumer) {
    match c.commit_consumer_state(CommitMode::Sync) {
        Ok(()) => {}
        Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset | RDKafkaErrorCode::RebalanceInProgress | RDKafkaErrorCode::IllegalGeneration)) => {}
        Err(e) => panic!("commit: {e}"),
    }
}

#[tokio::main]
async fn main() {
    let topic = var("TOPIC");
    let admin: AdminClient<DefaultClientContext> = config().create().expect("admin");
    for r in admin.create_topics(&[NewTopic::new(&topic, 6, TopicReplication::Fixed(1))], &AdminOptions::new()).await.expect("create") {
        r.expect("created");
    }
    println!("created");
    for codec in CODECS {
        produce(&topic, codec, RECORDS, codec).await;
    }
    println!("produced with {CODECS:?}");

    let total = RECORDS * CODECS.len();
    let mut seen = HashSet::new();
    let first = consumer("first");
    let mut second: Option<BaseConsumer> = None;
    let mut split = false;
    let deadline = Instant::now() + Duration::from_secs(120);
    while seen.len() < total || !split {
        assert!(Instant::now() < deadline, "only {} of {total} records, split {split}", seen.len());
        poll(&first, &mut seen);
        if second.is_none() && seen.len() > total / 3 {
            commit(&first);
            second = Some(consumer("second"));
        }
        if let Some(second) = &second {
            poll(second, &mut seen);
            split = split || (partitions(&first) == 3 && partitions(second) == 3);
            commit(second);
        }
        commit(&first);
    }
    // A rebalance may have taken a member back to what was committed last: go on until the group's offsets say that all is done.
    let members = [first, second.expect("the second member")];
    loop {
        assert!(Instant::now() < deadline, "not all was committed");
        for c in &members {
            poll(c, &mut seen);
            commit(c);
        }
        let mut ask = TopicPartitionList::new();
        ask.add_partition_range(&topic, 0, 5);
        let committed = members[0].committed_offsets(ask, Duration::from_secs(10)).expect("committed");
        let sum: i64 = committed.elements().iter().filter_map(|e| e.offset().to_raw()).map(|o| o.max(0)).sum();
        if sum as usize == total {
            break;
        }
    }
    drop(members);
    for codec in CODECS {
        for i in 0..RECORDS {
            assert!(seen.contains(&format!("{codec}-{i}")), "lost {codec}-{i}");
        }
    }
    println!("consumed in two members");

    produce(&topic, "none", 100, "resumed").await;
    let third = consumer("third");
    let mut resumed = HashSet::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    while resumed.len() < 100 {
        assert!(Instant::now() < deadline, "resumed with {} of 100", resumed.len());
        poll(&third, &mut resumed);
    }
    assert!(resumed.iter().all(|v| v.starts_with("resumed-")), "an old record came back");
    commit(&third);
    let mut times = TopicPartitionList::new();
    for p in 0..6 {
        times.add_partition_offset(&topic, p, Offset::Offset(0)).expect("time");
    }
    for e in third.offsets_for_times(times, Duration::from_secs(10)).expect("times").elements() {
        assert_eq!(e.offset(), Offset::Offset(0));
    }
    let ends: i64 = (0..6).map(|p| third.fetch_watermarks(&topic, p, Duration::from_secs(10)).expect("watermarks").1).sum();
    assert_eq!(ends as usize, total + 100);
    drop(third);
    println!("resumed, listed offsets");

    for r in admin.delete_topics(&[&topic], &AdminOptions::new()).await.expect("delete") {
        r.expect("deleted");
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while admin.inner().fetch_metadata(None, Duration::from_secs(10)).expect("metadata").topics().iter().any(|t| t.name() == topic) {
        assert!(Instant::now() < deadline, "the topic is still listed");
    }
    println!("OK");
}
