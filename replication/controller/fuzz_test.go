package controller

import (
	"os"
	"testing"

	"sluice/protocol/logrecord"
	"sluice/replication/metadata"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
)

func FuzzQuorumState(f *testing.F) {
	f.Add([]byte(`{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`))
	f.Add([]byte(`{"leaderId":-1,"leaderEpoch":0,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`))
	f.Add([]byte(`{"currentVoters":null,"data_version":0}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := parseQuorumState("quorum-state", content, []metadata.BrokerID{1})
		if err == nil && (s.Epoch < 0 || s.LeaderID < -1 || s.VotedID < -1) {
			t.Fatalf("%+v", s)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	kafkas, err := os.ReadFile("testdata/kafka-4.4.0/" + snapshotID{}.fileName())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kafkas)
	f.Add(kafkas[:100])
	f.Fuzz(func(t *testing.T, content []byte) {
		fsys := vfs.NewMem()
		if err := fsys.MkdirAll("d", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := checkpoint.WriteFile(fsys, "d/s", content); err != nil {
			t.Fatal(err)
		}
		records := 0
		if err := readSnapshot(fsys, "d/s", func(logrecord.ClusterRecord) error { records++; return nil }); err == nil && len(content) < records {
			t.Fatalf("%d records in %d bytes", records, len(content))
		}
	})
}
