package wire

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// cleanShutdownMark is the file by which the next start knows that nothing needs to be recovered, as Apache Kafka names it.
const cleanShutdownMark = ".kafka_cleanshutdown"

// TestStop_AnswersWhatIsInFlight: SIGTERM ends no request without an answer, waits for no time-out, and leaves a clean directory.
func TestStop_AnswersWhatIsInFlight(t *testing.T) {
	onlyOurs(t)
	p := sluicetest.Start(t)
	setup := sluicetest.Dial(t, p.Address)
	topic, idle := fresh("stop"), fresh("stop-idle")
	createTopic(t, setup, topic, 1)
	createTopic(t, setup, idle, 1)

	// A fetch that waits for data, and behind it on the same connection a produce, whose answer must wait for its turn.
	pipelined := sluicetest.Dial(t, p.Address)
	poll := fetchRequest(idle, [16]byte{}, 0, 0)
	poll.MaxWaitMillis = 60_000
	pipelined.Send(poll, 12)
	pipelined.Send(produceRequest(-1, part{topic, 0, batch(t, plain(), values(1000, "in flight")...)}), 9)
	sluicetest.Until(t, 5*time.Second, "the record is appended", func() bool { return listOffset(setup, topic, 0, latest).Offset == 1 })
	// A member that waits for the rest of its group.
	group := fresh("stop")
	a, b := memberOf(t, p.Address, group, lastGroupVersions), memberOf(t, p.Address, group, lastGroupVersions)
	a.rebalanceMs, b.rebalanceMs = 300_000, 300_000
	a.sessionMs, b.sessionMs = 300_000, 300_000
	form(t, a)
	b.sendJoin()
	a.awaitRebalance()

	start := time.Now()
	p.Signal(syscall.SIGTERM)
	if got := pipelined.Receive().(*kmsg.FetchResponse); got.ErrorCode != none {
		t.Errorf("the fetch in flight: error %d", got.ErrorCode)
	}
	if got := pipelined.Receive().(*kmsg.ProduceResponse).Topics[0].Partitions[0]; got.ErrorCode != none || got.BaseOffset != 0 {
		t.Errorf("the produce in flight: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
	if got := b.Receive().(*kmsg.JoinGroupResponse); got.ErrorCode != notCoordinator {
		t.Errorf("the join in flight: error %d, want %d", got.ErrorCode, notCoordinator)
	}
	pipelined.WantClosed(5 * time.Second)
	setup.WantClosed(5 * time.Second)
	if code := p.WaitEnd(20 * time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Output())
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the broker took %v to stop", took)
	}
	if _, err := os.Stat(filepath.Join(p.DataDir, cleanShutdownMark)); err != nil {
		t.Errorf("no mark of a clean shutdown: %v", err)
	}

	p.Launch()
	p.WaitReady()
	if got := fetch(sluicetest.Dial(t, p.Address), topic, 0, 0); got.ErrorCode != none || got.HighWatermark != 1 {
		t.Errorf("the record after the restart: error %d, high watermark %d", got.ErrorCode, got.HighWatermark)
	}
	if _, err := os.Stat(filepath.Join(p.DataDir, cleanShutdownMark)); !os.IsNotExist(err) {
		t.Errorf("the mark of a clean shutdown is there while the broker runs: %v", err)
	}
}

// TestStop_SecondSignalLeavesAtOnce, though a client that takes no answers keeps the first from ending.
func TestStop_SecondSignalLeavesAtOnce(t *testing.T) {
	onlyOurs(t)
	p := sluicetest.Start(t)
	setup := sluicetest.Dial(t, p.Address)
	topic := fresh("stop")
	createTopic(t, setup, topic, 1)
	large := make([]byte, 900_000)
	for range 8 {
		if got := produce(setup, topic, 0, batch(t, plain(), values(1000, string(large))...)); got.ErrorCode != none {
			t.Fatalf("produce: error %d", got.ErrorCode)
		}
	}
	stuck := sluicetest.Dial(t, p.Address)
	for range 16 {
		req := fetchRequest(topic, [16]byte{}, 0, 0)
		req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 50<<20, 50<<20
		stuck.Send(req, 12)
	}
	_ = stuck.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadFull(stuck, make([]byte, 1<<20)); err != nil { // it has begun to answer, and cannot go on for long
		t.Fatal(err)
	}
	p.Signal(syscall.SIGTERM)
	setup.WantClosed(5 * time.Second)
	if !p.Running() {
		t.Fatalf("the broker did not wait for the client\n%s", p.Output())
	}
	// Signals within half a second count as one, as shells and supervisors send one to a process and again to its group.
	sluicetest.Until(t, 3*time.Second, "a second signal ends the broker", func() bool {
		if p.Running() {
			p.Signal(syscall.SIGTERM)
		}
		return !p.Running()
	})
	if code := p.WaitEnd(5 * time.Second); code == 0 {
		t.Error("exit code 0, though the broker was cut off")
	}
	if _, err := os.Stat(filepath.Join(p.DataDir, cleanShutdownMark)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a mark of a clean shutdown: %v", err)
	}
	p.Launch()
	p.WaitReady()
	if got := listOffset(sluicetest.Dial(t, p.Address), topic, 0, latest); got.Offset != 8 {
		t.Errorf("%d of 8 records after the restart", got.Offset)
	}
}
