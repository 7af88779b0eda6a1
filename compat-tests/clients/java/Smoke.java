import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

/** The smoke job with Apache Kafka's own client; written so that it compiles against 2.1 as well as 4.4. */
public class Smoke {
    static final int RECORDS = 10000;
    static final String bootstrap = System.getenv("BOOTSTRAP"), topic = System.getenv("TOPIC"), group = System.getenv("GROUP");

    static Properties props(Object... pairs) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < pairs.length; i += 2) p.put(pairs[i], pairs[i + 1]);
        return p;
    }

    static void check(boolean ok, String what) {
        if (!ok) throw new IllegalStateException(what);
    }

    static KafkaConsumer<String, String> consumer(String client) {
        return new KafkaConsumer<>(props("group.id", group, "client.id", client, "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "session.timeout.ms", "10000", "heartbeat.interval.ms", "500", "max.poll.records", "200"), new StringDeserializer(), new StringDeserializer());
    }

    static void produce(String codec, int count, String prefix) throws Exception {
        try (KafkaProducer<String, String> p = new KafkaProducer<>(props("compression.type", codec, "acks", "all", "enable.idempotence", "true", "linger.ms", "5"),
                new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> acks = new ArrayList<>();
            for (int i = 0; i < count; i++) acks.add(p.send(new ProducerRecord<>(topic, "k" + i, prefix + "-" + i)));
            p.flush();
            for (Future<RecordMetadata> ack : acks) check(ack.get().offset() >= 0, "no offset in an ack");
        }
    }

    /** Polls until all expected values were seen by either member; the second member joins once the first has a third of them. */
    static Set<String> consumeInTwo(int expected) {
        Set<String> seen = new HashSet<>();
        KafkaConsumer<String, String> first = consumer("first"), second = null;
        int rebalanced = 0;
        try {
            first.subscribe(Collections.singletonList(topic));
            long deadline = System.currentTimeMillis() + 120000;
            while (seen.size() < expected || second == null || rebalanced == 0) {
                check(System.currentTimeMillis() < deadline, "only " + seen.size() + " of " + expected + " records after two minutes");
                for (ConsumerRecord<String, String> r : first.poll(Duration.ofMillis(50))) seen.add(r.value());
                if (second == null && seen.size() > expected / 3) {
                    first.commitSync();
                    second = consumer("second");
                    second.subscribe(Collections.singletonList(topic));
                }
                if (second != null) {
                    for (ConsumerRecord<String, String> r : second.poll(Duration.ofMillis(50))) seen.add(r.value());
                    if (second.assignment().size() == 3 && first.assignment().size() == 3) rebalanced++;
                    second.commitSync();
                }
                first.commitSync();
            }
        } finally {
            first.close();
            if (second != null) second.close();
        }
        return seen;
    }

    public static void main(String[] args) throws Exception {
        List<String> codecs = Arrays.asList(System.getenv("CODECS").split(","));
        try (AdminClient admin = AdminClient.create(props())) {
            admin.createTopics(Collections.singletonList(new NewTopic(topic, 6, (short) 1))).all().get();
            System.out.println("created");
            for (String codec : codecs) produce(codec, RECORDS, codec);
            System.out.println("produced with " + codecs);
            int total = RECORDS * codecs.size();
            Set<String> seen = consumeInTwo(total);
            for (String codec : codecs) for (int i = 0; i < RECORDS; i++) check(seen.contains(codec + "-" + i), "lost " + codec + "-" + i);
            System.out.println("consumed in two members");

            produce("none", 100, "resumed");
            Set<String> resumed = new HashSet<>();
            try (KafkaConsumer<String, String> c = consumer("third")) {
                c.subscribe(Collections.singletonList(topic));
                long deadline = System.currentTimeMillis() + 30000;
                while (resumed.size() < 100) {
                    check(System.currentTimeMillis() < deadline, "resumed with " + resumed.size() + " of 100 records");
                    for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(100))) {
                        check(r.value().startsWith("resumed-"), "an old record came back: " + r.value());
                        resumed.add(r.value());
                    }
                }
                c.commitSync();

                Map<TopicPartition, Long> zero = new HashMap<>(), late = new HashMap<>();
                for (int p = 0; p < 6; p++) {
                    zero.put(new TopicPartition(topic, p), 0L);
                    late.put(new TopicPartition(topic, p), System.currentTimeMillis() + 3600000);
                }
                for (OffsetAndTimestamp o : c.offsetsForTimes(zero).values()) check(o != null && o.offset() == 0, "time 0 is not offset 0: " + o);
                for (Map.Entry<TopicPartition, OffsetAndTimestamp> e : c.offsetsForTimes(late).entrySet()) check(e.getValue() == null, "a record in the future: " + e);
                long end = 0;
                for (long o : c.endOffsets(zero.keySet()).values()) end += o;
                check(end == total + 100, "end offsets add up to " + end + ", not " + (total + 100));
            }
            System.out.println("resumed, listed offsets");

            admin.deleteTopics(Collections.singletonList(topic)).all().get();
            for (int i = 0; admin.listTopics().names().get().contains(topic); i++) check(i < 100, "the topic is still listed");
            System.out.println("OK");
        }
    }
}
