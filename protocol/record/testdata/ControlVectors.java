// Prints the control records of KRaft logs and snapshots as Apache Kafka's classes write them, key and value:
//
//	javac -cp "$CLASSPATH" -d /tmp ControlVectors.java && java -cp "/tmp:$CLASSPATH" ControlVectors > control.vectors
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;

public class ControlVectors {
    public static void main(String[] args) {
        print("abort", ControlRecordType.ABORT, new EndTransactionMarker(ControlRecordType.ABORT, 7).serializeValue());
        print("commit", ControlRecordType.COMMIT, new EndTransactionMarker(ControlRecordType.COMMIT, -1).serializeValue());
        print("leader-change", ControlRecordType.LEADER_CHANGE, message(new LeaderChangeMessage().setVersion((short) 0).setLeaderId(2)
            .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(2)))
            .setGrantingVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(2)))));
        print("snapshot-header", ControlRecordType.SNAPSHOT_HEADER, message(new SnapshotHeaderRecord().setLastContainedLogTimestamp(1700000000000L)));
        print("snapshot-footer", ControlRecordType.SNAPSHOT_FOOTER, message(new SnapshotFooterRecord()));
        print("kraft-version", ControlRecordType.KRAFT_VERSION, message(new KRaftVersionRecord().setKRaftVersion((short) 1)));
        VotersRecord.EndpointCollection endpoints = new VotersRecord.EndpointCollection();
        endpoints.add(new VotersRecord.Endpoint().setName("CONTROLLER").setHost("host-1").setPort(9093));
        endpoints.add(new VotersRecord.Endpoint().setName("OTHER").setHost("host-2").setPort(65535));
        print("voters", ControlRecordType.KRAFT_VOTERS, message(new VotersRecord().setVoters(List.of(
            new VotersRecord.Voter().setVoterId(1).setVoterDirectoryId(new Uuid(1, 2)).setEndpoints(endpoints)
                .setKRaftVersionFeature(new VotersRecord.KRaftVersionFeature().setMinSupportedVersion((short) 0).setMaxSupportedVersion((short) 1)),
            new VotersRecord.Voter().setVoterId(2)))));
    }

    static ByteBuffer message(Message m) {
        return MessageUtil.toByteBufferAccessor(m, (short) 0).buffer();
    }

    static void print(String name, ControlRecordType type, ByteBuffer value) {
        System.out.println(name + " " + hex(type.recordKey()) + " " + hex(value));
    }

    static String hex(ByteBuffer b) {
        byte[] bytes = new byte[b.remaining()];
        b.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
