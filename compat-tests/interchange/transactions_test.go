package interchange

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

// TestTransactions_ThereAndBack: Apache Kafka and the broker take over each other's transactional ids, in the middle of a transaction as well.
// What was committed under either is read under both, what was left open is aborted by the producer's next incarnation, and nothing else shows.
func TestTransactions_ThereAndBack(t *testing.T) {
	k := newKafka(t, "")
	k.start()
	if _, err := kadm.NewClient(open(t, k.address)).CreateTopic(t.Context(), 1, 1, nil, "turns"); err != nil {
		t.Fatal(err)
	}
	var want []string
	turn := func(address, who string) {
		t.Helper()
		want = append(want, takeTurn(t, address, who)...)
		if got := readTurns(t, address); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s shows %v, want %v", who, got, want)
		}
	}
	turn(k.address, "Apache Kafka")
	leaveOpen(t, k.address, "left by Apache Kafka")
	k.stop()

	s := sluicetest.New(t)
	s.Address, s.Args = k.address, []string{"--config", k.properties, "--admin", s.Admin}
	s.Launch()
	s.WaitReady()
	turn(s.Address, "Sluice")
	leaveOpen(t, s.Address, "left by Sluice")
	s.Stop()
	verify(t, k)

	k.start()
	turn(k.address, "Apache Kafka again")
	k.stop()
}

// takeTurn runs a transaction that is committed and one that is aborted, and returns what the first wrote.
func takeTurn(t *testing.T, address, who string) []string {
	t.Helper()
	cl := open(t, address, kgo.DefaultProduceTopic("turns"), kgo.TransactionalID("turns"), kgo.TransactionTimeout(time.Minute))
	defer cl.Close()
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprintf("%s, committed %v", who, bool(commit)))).FirstErr(); err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		if err := cl.EndTransaction(t.Context(), commit); err != nil {
			t.Fatalf("%s: %v", who, err)
		}
	}
	return []string{who + ", committed true"}
}

// leaveOpen writes in a transaction and goes away.
func leaveOpen(t *testing.T, address, value string) {
	t.Helper()
	cl := open(t, address, kgo.DefaultProduceTopic("turns"), kgo.TransactionalID("turns"), kgo.TransactionTimeout(10*time.Minute))
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// readTurns is what a reader of committed records sees, up to the end, which no open transaction may keep it from.
func readTurns(t *testing.T, address string) (values []string) {
	t.Helper()
	cl := open(t, address, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"turns": {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), "turns")
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup("turns", 0)
	for next := int64(0); next < end.Offset; {
		fetches := cl.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		})
	}
	return values
}
