// Produces the batches of this folder's *.log files to a running Apache Kafka; they are copies of its segment files.
//
//	javac -cp "$CLASSPATH" -d /tmp ProduceBatches.java && java -cp "/tmp:$CLASSPATH" ProduceBatches 127.0.0.1:19092 prefix-
//
// Each topic gets the same 40 records: see javaRecord in java_test.go.
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class ProduceBatches {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], prefix = args[1];
        Map<String, Map<String, String>> topics = new LinkedHashMap<>();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) topics.put(codec, Map.of());
        topics.put("logappend", Map.of("message.timestamp.type", "LogAppendTime"));
        topics.put("recompressed", Map.of("compression.type", "zstd", "compression.zstd.level", "22"));
        topics.put("transactional", Map.of());
        topics.put("zstd-level22", Map.of());
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            List<NewTopic> wanted = new ArrayList<>();
            topics.forEach((name, configs) -> wanted.add(new NewTopic(prefix + name, 1, (short) 1).configs(configs)));
            admin.createTopics(wanted).all().get();
        }
        for (String name : topics.keySet()) {
            Map<String, Object> p = new HashMap<>();
            p.put("bootstrap.servers", bootstrap);
            p.put("linger.ms", "60000");
            p.put("batch.size", "1000000");
            p.put("acks", "all");
            p.put("compression.type", switch (name) {
                case "logappend" -> "gzip";
                case "recompressed" -> "lz4";
                case "transactional" -> "none";
                case "zstd-level22" -> "zstd";
                default -> name;
            });
            if (name.equals("zstd-level22")) p.put("compression.zstd.level", "22");
            if (name.equals("transactional")) p.put("transactional.id", prefix + "id");
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
                if (name.equals("transactional")) {
                    producer.initTransactions();
                    producer.beginTransaction();
                    send(producer, prefix + name);
                    producer.commitTransaction();
                    producer.beginTransaction();
                    send(producer, prefix + name);
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    send(producer, prefix + name);
                    producer.flush();
                }
            }
        }
    }

    static void send(KafkaProducer<byte[], byte[]> producer, String topic) {
        for (int i = 0; i < 40; i++) {
            byte[] key = i % 5 == 1 ? null : ("key-" + i).getBytes();
            byte[] value = i % 7 == 3 ? null : ("value-" + i + "-").repeat(i * 5).getBytes();
            ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(topic, 0, 1700000000000L + 1000L * (i % 30), key, value);
            if (i % 4 == 2) r.headers().add(new RecordHeader("kind", "x".repeat(i).getBytes())).add(new RecordHeader("none", null));
            producer.send(r);
        }
    }
}
