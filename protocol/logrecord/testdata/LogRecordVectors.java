// Prints what Apache Kafka's own classes write for every record type of this package, all fields set and none set, at
// every version. Kept beside its output, kafka-4.4.0.vectors:
//
//	javac -cp "$CLASSPATH" -d /tmp LogRecordVectors.java && java -cp "/tmp:$CLASSPATH" LogRecordVectors > kafka-4.4.0.vectors
//
// A field's value is computed from its name in lower case, so that the Go test knows it without being told: see want() there.
import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.zip.CRC32;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.protocol.types.*;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class LogRecordVectors {
    public static void main(String[] args) throws Exception {
        for (MetadataRecordType type : MetadataRecordType.values()) {
            ApiMessage empty = type.newMetadataRecord();
            for (short v = empty.lowestSupportedVersion(); v <= empty.highestSupportedVersion(); v++) {
                print("cluster", type.name(), v, "default", cluster(type.newMetadataRecord(), v));
                ApiMessage full = type.newMetadataRecord();
                fill(full, v, 0);
                print("cluster", type.name(), v, "full", cluster(full, v));
            }
        }
        for (Class<?> c : List.of(OffsetCommitValue.class, GroupMetadataValue.class)) {
            for (short v = 0; v <= 4; v++) {
                ApiMessage full = (ApiMessage) c.getConstructor().newInstance();
                fill(full, v, 0);
                print("group", c.getSimpleName(), v, "full", MessageUtil.toVersionPrefixedByteBuffer(v, full));
            }
        }
        for (ApiMessage key : List.of(new LegacyOffsetCommitKey(), new OffsetCommitKey(), new GroupMetadataKey())) {
            fill(key, (short) 0, 0);
            ByteBuffer body = MessageUtil.toByteBufferAccessor(key, (short) 0).buffer();
            ByteBuffer b = ByteBuffer.allocate(2 + body.remaining());
            b.putShort(key.apiKey()).put(body).flip();
            print("group", key.getClass().getSimpleName(), 0, "full", b);
        }
    }

    static ByteBuffer cluster(ApiMessage m, short version) {
        ApiMessageAndVersion mv = new ApiMessageAndVersion(m, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer b = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(mv, cache));
        MetadataRecordSerde.INSTANCE.write(mv, cache, new ByteBufferAccessor(b));
        b.flip();
        return b;
    }

    static void print(String kind, String name, int version, String what, ByteBuffer b) {
        StringBuilder s = new StringBuilder();
        while (b.hasRemaining()) s.append(String.format("%02x", b.get()));
        System.out.println(kind + " " + name + " " + version + " " + what + " " + s);
    }

    // fill sets every field that the version has; i is the index of the structure in its array.
    static void fill(Object message, int version, int i) throws Exception {
        Schema[] schemas = (Schema[]) message.getClass().getField("SCHEMAS").get(null);
        for (BoundField bound : schemas[version].fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (org.apache.kafka.common.protocol.types.Field f : tagged.fields().values()) set(message, f.name, version, i);
            } else {
                set(message, bound.def.name, version, i);
            }
        }
    }

    static void set(Object message, String snake, int version, int i) throws Exception {
        String wanted = snake.replace("_", "").toLowerCase();
        for (java.lang.reflect.Field f : message.getClass().getDeclaredFields()) {
            if (f.getName().toLowerCase().equals(wanted)) {
                f.setAccessible(true);
                f.set(message, value(f.getType(), f.getGenericType(), wanted, version, i));
                return;
            }
        }
        throw new IllegalStateException(message.getClass() + " has no " + snake);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Object value(Class<?> type, java.lang.reflect.Type generic, String name, int version, int i) throws Exception {
        long n = number(name) + i;
        if (type == byte.class) return (byte) (n % 100 + 1);
        if (type == short.class) return (short) (n % 30000 + 1);
        if (type == int.class && name.equals("port")) return (int) (n % 60000 + 1);
        if (type == int.class || type == Integer.class) return (int) (n % 2000000000 + 1);
        if (type == long.class) return n * 1000003L;
        if (type == double.class) return n / 8.0;
        if (type == boolean.class) return true;
        if (type == String.class) return name + "-" + i;
        if (type == byte[].class) return (name + "-" + i).getBytes("UTF-8");
        if (type == Uuid.class) return new Uuid(n, n + 1);
        if (ImplicitLinked(type)) {
            Collection c = (Collection) type.getConstructor().newInstance();
            Class<?> element = (Class<?>) ((ParameterizedType) type.getGenericSuperclass()).getActualTypeArguments()[0];
            for (int j = 0; j < 2; j++) c.add(struct(element, version, j));
            return c;
        }
        if (type == List.class) {
            Class<?> element = (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
            List list = new ArrayList();
            for (int j = 0; j < 2; j++) {
                if (Message.class.isAssignableFrom(element)) list.add(struct(element, version, j));
                else list.add(value(element, element, name, version, j));
            }
            return list;
        }
        throw new IllegalStateException(name + " is a " + type);
    }

    static boolean ImplicitLinked(Class<?> type) {
        return type.getSimpleName().endsWith("Collection") && type != Collection.class;
    }

    static Object struct(Class<?> element, int version, int j) throws Exception {
        Object e = element.getConstructor().newInstance();
        fill(e, version, j);
        return e;
    }

    static long number(String name) {
        CRC32 crc = new CRC32();
        crc.update(name.getBytes());
        return crc.getValue();
    }
}
