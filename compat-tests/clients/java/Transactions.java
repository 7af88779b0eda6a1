import java.lang.reflect.Method;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

/** Exactly once with Apache Kafka's own client: copies a topic in transactions, some of which are aborted, and fences an old producer. */
public class Transactions {
    static final int RECORDS = 2000, PER_TRANSACTION = 50;
    static final String bootstrap = System.getenv("BOOTSTRAP"), input = System.getenv("TOPIC"), group = System.getenv("GROUP"), output = input + "-copy";

    static Properties props(Object... pairs) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < pairs.length; i += 2) p.put(pairs[i], pairs[i + 1]);
        return p;
    }

    static void check(boolean ok, String what) {
        if (!ok) throw new IllegalStateException(what);
    }

    static KafkaConsumer<String, String> consumer(String group, String isolation) {
        return new KafkaConsumer<>(props("group.id", group, "isolation.level", isolation, "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "max.poll.records", "" + PER_TRANSACTION), new StringDeserializer(), new StringDeserializer());
    }

    static KafkaProducer<String, String> producer(String id) {
        return new KafkaProducer<>(props("transactional.id", id, "transaction.timeout.ms", "30000"), new StringSerializer(), new StringSerializer());
    }

    /** sendOffsetsToTransaction took the group's name until 2.4, and has taken its metadata since 2.5. */
    static void sendOffsets(KafkaProducer<String, String> p, KafkaConsumer<String, String> c, Map<TopicPartition, OffsetAndMetadata> offsets) throws Exception {
        for (Method m : KafkaProducer.class.getMethods()) {
            if (!m.getName().equals("sendOffsetsToTransaction")) continue;
            if (m.getParameterTypes()[1] == String.class) {
                m.invoke(p, offsets, group);
                return;
            }
        }
        for (Method m : KafkaProducer.class.getMethods())
            if (m.getName().equals("sendOffsetsToTransaction")) m.invoke(p, offsets, KafkaConsumer.class.getMethod("groupMetadata").invoke(c));
    }

    static List<String> readAll(String topic, String isolation, int atLeast) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> c = consumer(group + "-" + isolation + "-" + topic.length(), isolation)) {
            c.subscribe(Collections.singletonList(topic));
            long deadline = System.currentTimeMillis() + 60000, quiet = 0;
            while (values.size() < atLeast || quiet < 5) {
                check(System.currentTimeMillis() < deadline, "only " + values.size() + " of " + atLeast + " records of " + topic);
                ConsumerRecords<String, String> some = c.poll(Duration.ofMillis(200));
                quiet = some.isEmpty() ? quiet + 1 : 0;
                for (ConsumerRecord<String, String> r : some) values.add(r.value());
            }
        }
        return values;
    }

    public static void main(String[] args) throws Exception {
        try (AdminClient admin = AdminClient.create(props())) {
            admin.createTopics(Arrays.asList(new NewTopic(input, 3, (short) 1), new NewTopic(output, 3, (short) 1))).all().get();
            try (KafkaProducer<String, String> p = new KafkaProducer<>(props("acks", "all"), new StringSerializer(), new StringSerializer())) {
                for (int i = 0; i < RECORDS; i++) p.send(new ProducerRecord<>(input, "k" + i, "v" + i));
            }
            System.out.println("input written");

            int committed = 0, aborted = 0;
            KafkaProducer<String, String> p = producer(input);
            p.initTransactions();
            try (KafkaConsumer<String, String> c = consumer(group, "read_committed")) {
                c.subscribe(Collections.singletonList(input));
                long deadline = System.currentTimeMillis() + 120000;
                for (int round = 0; committed < RECORDS; round++) {
                    check(System.currentTimeMillis() < deadline, "only " + committed + " records copied");
                    ConsumerRecords<String, String> some = c.poll(Duration.ofMillis(500));
                    if (some.isEmpty()) continue;
                    p.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(), begins = new HashMap<>();
                    for (ConsumerRecord<String, String> r : some) {
                        TopicPartition tp = new TopicPartition(r.topic(), r.partition());
                        offsets.put(tp, new OffsetAndMetadata(r.offset() + 1));
                        if (!begins.containsKey(tp)) begins.put(tp, new OffsetAndMetadata(r.offset()));
                        p.send(new ProducerRecord<>(output, r.key(), r.value()));
                    }
                    sendOffsets(p, c, offsets);
                    if (round % 4 == 1) {
                        p.flush();
                        p.abortTransaction();
                        aborted++;
                        for (Map.Entry<TopicPartition, OffsetAndMetadata> e : begins.entrySet()) c.seek(e.getKey(), e.getValue().offset());
                        continue;
                    }
                    p.commitTransaction();
                    committed += some.count();
                }
            }
            System.out.println("copied, " + aborted + " transactions aborted");

            List<String> copy = readAll(output, "read_committed", RECORDS);
            check(copy.size() == RECORDS && new HashSet<>(copy).size() == RECORDS, copy.size() + " records in the copy, " + new HashSet<>(copy).size() + " of them different");
            int all = readAll(output, "read_uncommitted", RECORDS).size();
            check(aborted > 0 && all > RECORDS, all + " records read uncommitted, " + aborted + " transactions aborted");

            // A second producer with the same id takes over what the first has open.
            p.beginTransaction();
            p.send(new ProducerRecord<>(output, "k", "of the first"));
            p.flush();
            KafkaProducer<String, String> q = producer(input);
            q.initTransactions();
            try {
                p.commitTransaction();
                check(false, "the first producer could commit");
            } catch (KafkaException expected) {
                check(expected.getClass().getSimpleName().matches("ProducerFencedException|InvalidProducerEpochException"), "the first producer failed with " + expected);
                System.out.println("fenced: " + expected.getClass().getSimpleName());
            }
            p.close();
            q.beginTransaction();
            q.send(new ProducerRecord<>(output, "k", "of the second"));
            q.commitTransaction();
            q.close();
            List<String> last = readAll(output, "read_committed", RECORDS + 1);
            check(last.size() == RECORDS + 1 && last.contains("of the second") && !last.contains("of the first"), "read " + last.size() + " records after the take-over");
            System.out.println("OK");
        }
    }
}
