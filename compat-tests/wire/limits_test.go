package wire

import (
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

const kib = 1 << 10

// TestLimits_IdleMemory: what a broker takes that nobody uses.
func TestLimits_IdleMemory(t *testing.T) {
	p := own(t)
	c := sluicetest.Dial(t, p.Address)
	topic := fresh("limits")
	createTopic(t, c, topic, 1)
	if got := produce(c, topic, 0, batch(t, plain(), values(1000, "v")...)); got.ErrorCode != none {
		t.Fatalf("produce: error %d", got.ErrorCode)
	}
	resident := p.ResidentBytes()
	t.Logf("one topic with one record: %d KiB resident", resident/kib)
	if resident > 30<<20 {
		t.Errorf("%d MiB resident", resident>>20)
	}
}

// TestLimits_IdleConnections measures a connection that has been used and waits.
func TestLimits_IdleConnections(t *testing.T) {
	const connections, most = 1000, 30 * kib
	p := own(t)
	use := func() net.Conn {
		c, err := net.Dial("tcp", p.Address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		metadata(sluicetest.Over(t, c), 12, false)
		return c
	}
	for range 50 { // what the first ones bring with them is not counted
		use().Close()
	}
	before := p.ResidentBytes()
	for range connections {
		use()
	}
	each := (p.ResidentBytes() - before) / connections
	t.Logf("an idle connection: %d bytes resident", each)
	if each > most {
		t.Errorf("%d bytes for an idle connection, the bound is %d", each, most)
	}
}

// TestLimits_IdlePartitions measures a partition that nobody has written to.
func TestLimits_IdlePartitions(t *testing.T) {
	const topics, partitions, most = 20, 100, 8 * kib
	p := own(t)
	c := sluicetest.Dial(t, p.Address)
	createTopic(t, c, fresh("limits-first"), partitions)
	before := p.ResidentBytes()
	names := make([]string, topics)
	start := time.Now()
	for i := range names {
		names[i] = fresh("limits")
		createTopic(t, c, names[i], partitions)
	}
	t.Logf("%d topics of %d partitions created and asked for in %v", topics, partitions, time.Since(start))
	each := (p.ResidentBytes() - before) / (topics * partitions)
	t.Logf("an idle partition: %d bytes resident", each)
	if each > most {
		t.Errorf("%d bytes for an idle partition, the bound is %d", each, most)
	}

	p.Stop()
	start = time.Now()
	p.Launch()
	p.WaitReady()
	t.Logf("restart with %d partitions: ready after %v, %d MiB resident", (topics+1)*partitions, time.Since(start), p.ResidentBytes()>>20)
	c = sluicetest.Dial(t, p.Address)
	for _, name := range names {
		if got := metadata(c, 12, false, name).Topics[0]; got.ErrorCode != none || len(got.Partitions) != partitions {
			t.Fatalf("after the restart: error %d, %d partitions", got.ErrorCode, len(got.Partitions))
		}
	}
	if got := produce(c, names[topics-1], partitions-1, batch(t, plain(), values(1000, "v")...)); got.ErrorCode != none {
		t.Errorf("produce after the restart: error %d", got.ErrorCode)
	}
}

// TestLimits_UsableAfterStart measures from the start of the process until a topic has been made, written and read. It asserts no time:
// that is a matter of the machine.
func TestLimits_UsableAfterStart(t *testing.T) {
	onlyOurs(t)
	p := sluicetest.New(t)
	for _, what := range []string{"with an empty directory", "again"} {
		start := time.Now()
		p.Launch()
		var conn net.Conn
		sluicetest.Until(t, 20*time.Second, "the port is open", func() (open bool) {
			var err error
			conn, err = net.Dial("tcp", p.Address)
			return err == nil
		})
		accepted := time.Since(start)
		c := sluicetest.Over(t, conn)
		topic := fresh("limits")
		create := kmsg.NewCreateTopicsRequestTopic()
		create.Topic, create.NumPartitions, create.ReplicationFactor = topic, 1, 1
		if got := sluicetest.Ask[*kmsg.CreateTopicsResponse](c, createRequest(7, create), 7).Topics[0]; got.ErrorCode != none {
			t.Fatalf("create: error %d", got.ErrorCode)
		}
		if got := produce(c, topic, 0, batch(t, plain(), values(1000, "v")...)); got.ErrorCode != none {
			t.Fatalf("produce: error %d", got.ErrorCode)
		}
		if got := fetch(c, topic, 0, 0); got.ErrorCode != none || len(got.RecordBatches) == 0 {
			t.Fatalf("fetch: error %d, %d bytes", got.ErrorCode, len(got.RecordBatches))
		}
		t.Logf("started %s: connected after %v, produced and fetched after %v", what, accepted.Round(time.Microsecond), time.Since(start).Round(time.Microsecond))
		p.WaitReady()
		conn.Close()
		p.Stop()
	}
}
