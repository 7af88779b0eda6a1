package durability

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

// tryProduce sends one record once.
func tryProduce(ctx context.Context, cl *kgo.Client, topic string, partition int32, value []byte) (int64, error) {
	r := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: partition, Value: value})[0]
	return r.Record.Offset, r.Err
}

// once is a client that does not try again: what the broker answers is what the test sees.
func once(t *testing.T, address string) *kgo.Client {
	return open(t, address, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0),
		kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.RequestRetries(0))
}

// TestV30_FullDisk writes to a volume of 64 MB until it is full: producers get an error that clients retry, reading goes on, nothing that was
// acknowledged is lost, and once there is space again the broker goes on by itself.
func TestV30_FullDisk(t *testing.T) {
	volume := mountSmall(t, "64m")
	filler := filepath.Join(volume, "filler")
	writeFile(t, filler, make([]byte, 16<<20))
	p := sluicetest.New(t)
	p.DataDir = filepath.Join(volume, "data")
	p.Args = []string{"--listen", p.Address, "--admin", p.Admin, "--data", p.DataDir}
	p.Launch()
	p.WaitReady()
	createTopic(t, p.Address, "full", 1, "segment.bytes", "4194304")
	createTopic(t, p.Address, "other", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const valueBytes = 100_000
	cl := once(t, p.Address)
	end := int64(0)
	var failed error
	for failed == nil && end < 1000 {
		var offset int64
		if offset, failed = tryProduce(ctx, cl, "full", 0, valueOf(end, valueBytes)); failed == nil {
			if offset != end {
				t.Fatalf("offset %d was acknowledged as %d", end, offset)
			}
			end++
		}
	}
	var code *kerr.Error
	if !errors.As(failed, &code) || !code.Retriable {
		t.Fatalf("after %d records: %v, want an error of Kafka's that clients retry", end, failed)
	}
	t.Logf("full after %d records: %v", end, failed)

	// While it is full: each attempt fails, reading goes on, the broker lives.
	for range 20 {
		if _, err := tryProduce(ctx, cl, "full", 0, valueOf(end, valueBytes)); err == nil {
			end++ // a hole was found; all the better
		} else if !errors.As(err, &code) || !code.Retriable {
			t.Fatalf("%v, want an error of Kafka's that clients retry", err)
		}
	}
	checkLog(t, p.Address, "full", 0, end, valueBytes)
	if got := endOf(t, p.Address, "full"); got != end {
		t.Fatalf("the log ends at %d, %d records were acknowledged", got, end)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	cl = once(t, p.Address)
	sluicetest.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		offset, err := tryProduce(ctx, cl, "full", 0, valueOf(end, valueBytes))
		if err != nil {
			return err
		}
		if offset != end {
			t.Fatalf("the first record after the disk was full is at %d, want %d", offset, end)
		}
		return nil
	})
	end++
	if _, err := tryProduce(ctx, cl, "other", 0, []byte("v")); err != nil {
		t.Errorf("the other topic: %v", err)
	}
	end = writeBatches(t, p.Address, "full", 10, 1, valueBytes)
	checkLog(t, p.Address, "full", 0, end, valueBytes)

	// A start needs room for the metadata that it writes. Without it the broker says so and ends, and has broken nothing.
	p.Kill()
	if err := fill(filler); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	p.Launch()
	if code := p.WaitEnd(20 * time.Second); code == 0 || !strings.Contains(p.Output(), "no space left on device") {
		t.Errorf("started on a full disk: exit code %d, %s", code, p.Output())
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.Launch()
	p.WaitReady()
	checkLog(t, p.Address, "full", 0, end, valueBytes)
	verifyDirectory(t, p, p.DataDir)
}

// fill writes a file until there is no space left.
func fill(name string) error {
	f, err := os.Create(name)
	for chunk := make([]byte, 4096); err == nil; {
		_, err = f.Write(chunk)
	}
	return errors.Join(err, f.Close())
}

// TestLogDirs_OneFails runs a broker with three log directories and takes the volume of one away. Its partitions answer KAFKA_STORAGE_ERROR, the
// others serve and new partitions go there; when the volume is back, a restart has everything.
func TestLogDirs_OneFails(t *testing.T) {
	base := t.TempDir()
	dirs := []string{filepath.Join(base, "a"), mountSmall(t, "256m"), filepath.Join(base, "c")}
	p := sluicetest.New(t)
	p.Args = []string{"--listen", p.Address, "--admin", p.Admin, "--set", "log.dirs=" + strings.Join(dirs, ","),
		"--set", "log.flush.offset.checkpoint.interval.ms=500", "--set", "replica.high.watermark.checkpoint.interval.ms=500", "--set", "log.initial.task.delay.ms=100"}
	p.Launch()
	p.WaitReady()
	const partitions = 6
	createTopic(t, p.Address, "spread", partitions)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cl := once(t, p.Address)
	ends := [partitions]int64{}
	write := func(partition int32) error {
		offset, err := tryProduce(ctx, cl, "spread", partition, valueOf(ends[partition], 100))
		if err == nil {
			if offset != ends[partition] {
				t.Fatalf("partition %d: offset %d, want %d", partition, offset, ends[partition])
			}
			ends[partition]++
		}
		return err
	}
	for range 10 {
		for partition := range int32(partitions) {
			if err := write(partition); err != nil {
				t.Fatal(err)
			}
		}
	}
	var lost []int32
	for partition := range int32(partitions) {
		if _, err := os.Stat(filepath.Join(dirs[1], fmt.Sprintf("spread-%d", partition))); err == nil {
			lost = append(lost, partition)
		}
	}
	if len(lost) != partitions/3 {
		t.Fatalf("partitions %v are in the second of three directories", lost)
	}
	isLost := func(partition int32) bool {
		for _, l := range lost {
			if l == partition {
				return true
			}
		}
		return false
	}

	uncover := coverReadOnly(t, dirs[1])
	// It is found out by the next checkpoint that changes, at the latest.
	adm := kadm.NewClient(open(t, p.Address))
	sluicetest.Eventually(t, 20*time.Second, func(ctx context.Context) error {
		_ = write(lost[0])
		described, err := adm.DescribeAllLogDirs(ctx, nil)
		if err != nil {
			return err
		}
		for _, byBroker := range described {
			for _, dir := range byBroker {
				if dir.Dir == dirs[1] && errors.Is(dir.Err, kerr.KafkaStorageError) {
					return nil
				}
			}
		}
		return fmt.Errorf("%s is not told to be offline: %+v", dirs[1], described)
	})
	for partition := range int32(partitions) {
		// Straight to the broker, as a client that has not refreshed its metadata does.
		code := produceCode(t, p.Address, "spread", partition)
		if !isLost(partition) {
			ends[partition]++
		}
		if want := kerr.KafkaStorageError.Code; isLost(partition) && code != want || !isLost(partition) && code != 0 {
			t.Errorf("partition %d (lost: %v): error %d", partition, isLost(partition), code)
		}
	}
	createTopic(t, p.Address, "later", 4)
	for partition := range int32(4) {
		if code := produceCode(t, p.Address, "later", partition); code != 0 {
			t.Errorf("a partition that was created later: error %d", code)
		}
	}
	uncover()
	p.Stop()
	p.Launch()
	p.WaitReady()
	cl = once(t, p.Address)
	for partition := range int32(partitions) {
		if err := write(partition); err != nil {
			t.Errorf("partition %d after the restart: %v", partition, err)
		}
	}
	verifyDirectory(t, p, dirs...)
}

// TestLogDirs_LastFails: a broker without any directory left ends, and says why.
func TestLogDirs_LastFails(t *testing.T) {
	volume := mountSmall(t, "256m")
	p := sluicetest.New(t)
	p.Args = []string{"--listen", p.Address, "--admin", p.Admin, "--data", volume, "--set", "replica.high.watermark.checkpoint.interval.ms=500"}
	p.Launch()
	p.WaitReady()
	createTopic(t, p.Address, "last", 1)
	writeBatches(t, p.Address, "last", 5, 1, 100)
	uncover := coverReadOnly(t, volume)
	_ = produceCode(t, p.Address, "last", 0) // what the next checkpoint has to write
	if code := p.WaitEnd(20 * time.Second); code == 0 || !strings.Contains(p.Output(), "no log directory is left") {
		t.Errorf("exit code %d: %s", code, p.Output())
	}
	uncover()
	p.Launch()
	p.WaitReady()
	checkLog(t, p.Address, "last", 0, 5, 100)
}
