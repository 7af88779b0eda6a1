// Answers the cases of validate.cases with Apache Kafka's own classes: what a broker checks of the records of one
// partition in a Produce request, up to the append.
//
//	go test ./protocol/record -run AsKafka -write-validate-cases
//	javac -cp "$CLASSPATH" -d /tmp ValidateBatches.java && java -cp "/tmp:$CLASSPATH" ValidateBatches < validate.cases > validate.answers
//
// A line of the output: name, error code, indexes of the bad records or -, stored batch or -.
import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.server.record.BrokerCompressionType;
import org.apache.kafka.storage.internals.log.*;

public class ValidateBatches {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] f = line.split(" ");
            byte[] bytes = f[8].equals("-") ? new byte[0] : HexFormat.of().parseHex(f[8]);
            try {
                MemoryRecords out = validate(MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)), f);
                ByteBuffer b = out.buffer().duplicate();
                byte[] stored = new byte[b.remaining()];
                b.get(stored);
                System.out.println(f[0] + " 0 - " + HexFormat.of().formatHex(stored));
            } catch (RecordValidationException e) {
                String indexes = e.recordErrors().stream().map(r -> String.valueOf(r.batchIndex)).collect(Collectors.joining(","));
                System.out.println(f[0] + " " + Errors.forException(e.invalidException()).code() + " " + indexes + " -");
            } catch (Throwable e) {
                System.out.println(f[0] + " " + Errors.forException(e).code() + " - -");
            }
        }
    }

    static MemoryRecords validate(MemoryRecords records, String[] f) {
        TopicPartition tp = new TopicPartition("t", 0);
        ProduceRequest.validateRecords((short) 9, records);
        // What UnifiedLog looks at before it takes its lock; its own code for this needs a log on disk.
        CompressionType source = CompressionType.NONE;
        int valid = 0;
        for (MutableRecordBatch batch : records.batches()) {
            if (batch.baseOffset() != 0) throw new InvalidRecordException("base offset");
            if (batch.sizeInBytes() > Integer.parseInt(f[5])) throw new RecordTooLargeException("size");
            if (!batch.isValid()) throw new CorruptRecordException("crc");
            valid += batch.sizeInBytes();
            if (batch.compressionType() != CompressionType.NONE) source = batch.compressionType();
        }
        ByteBuffer trimmed = records.buffer().duplicate();
        trimmed.limit(valid);
        Compression target = f[6].equals("producer") ? Compression.of(source).build() : Compression.of(f[6]).build();
        LogValidator validator = new LogValidator(MemoryRecords.readableRecords(trimmed), tp, new Fixed(Long.parseLong(f[7])), source, target,
            Boolean.parseBoolean(f[4]), (byte) 2, TimestampType.forName(f[1]), Long.parseLong(f[2]), Long.parseLong(f[3]), -1,
            AppendOrigin.CLIENT);
        LogValidator.ValidationResult r = validator.validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), new NoMetrics(), BufferSupplier.create());
        if (r.messageSizeMaybeChanged()) {
            for (MutableRecordBatch batch : r.validatedRecords().batches()) {
                if (batch.sizeInBytes() > Integer.parseInt(f[5])) throw new RecordTooLargeException("size");
            }
        }
        return r.validatedRecords();
    }

    static class NoMetrics implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() {}
        public void recordInvalidOffset() {}
        public void recordInvalidSequence() {}
        public void recordInvalidChecksums() {}
        public void recordNoKeyCompactedTopic() {}
    }

    record Fixed(long now) implements Time {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1000000; }
        public void sleep(long ms) {}
    }
}
