package durability

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"sluice/compat-tests/sluicetest"
)

// lastBatch is where the last batch of a segment begins.
func lastBatch(log []byte) int {
	at := 0
	for next := 0; next+12 <= len(log); next += 12 + int(binary.BigEndian.Uint32(log[next+8:])) {
		at = next
	}
	return at
}

// damages are what may have become of the files while the broker was down.
var damages = []struct {
	name       string
	tail       bool // the last batch is lost with it
	afterClean bool // it is made good after a clean stop as well, where logs are not scanned
	do         func(t *testing.T, p *sluicetest.Process)
}{
	{"nothing", false, true, func(*testing.T, *sluicetest.Process) {}},
	{"last segment cut mid-batch", true, false, func(t *testing.T, p *sluicetest.Process) {
		logs := segments(t, p, "damaged", ".log")
		last := logs[len(logs)-1]
		content := readFile(t, last)
		writeFile(t, last, content[:(lastBatch(content)+len(content))/2])
	}},
	{"100 random bytes appended", false, false, func(t *testing.T, p *sluicetest.Process) {
		logs := segments(t, p, "damaged", ".log")
		random := make([]byte, 100)
		for i := range random {
			random[i] = byte(rand.Uint32())
		}
		writeFile(t, logs[len(logs)-1], append(readFile(t, logs[len(logs)-1]), random...))
	}},
	{"zeros appended", false, false, func(t *testing.T, p *sluicetest.Process) {
		logs := segments(t, p, "damaged", ".log")
		writeFile(t, logs[len(logs)-1], append(readFile(t, logs[len(logs)-1]), make([]byte, 5000)...))
	}},
	{"a byte of the last batch flipped", true, false, func(t *testing.T, p *sluicetest.Process) {
		logs := segments(t, p, "damaged", ".log")
		content := readFile(t, logs[len(logs)-1])
		content[(lastBatch(content)+len(content))/2] ^= 0x10
		writeFile(t, logs[len(logs)-1], content)
	}},
	{"every index deleted", false, true, func(t *testing.T, p *sluicetest.Process) {
		removeAll(t, p, ".index", ".timeindex", ".txnindex")
	}},
	{"every producer snapshot deleted", false, false, func(t *testing.T, p *sluicetest.Process) { removeAll(t, p, ".snapshot") }},
	{"indexes cut to half an entry", false, true, func(t *testing.T, p *sluicetest.Process) {
		for suffix, size := range map[string]int{".index": 12, ".timeindex": 18} {
			for _, name := range segments(t, p, "damaged", suffix) {
				if content := readFile(t, name); len(content) >= size {
					writeFile(t, name, content[:size])
				}
			}
		}
	}},
	{"indexes full of rubbish", false, false, func(t *testing.T, p *sluicetest.Process) {
		for _, suffix := range []string{".index", ".timeindex"} {
			for _, name := range segments(t, p, "damaged", suffix) {
				writeFile(t, name, bytes.Repeat([]byte{0x5a}, len(readFile(t, name))))
			}
		}
	}},
}

func removeAll(t *testing.T, p *sluicetest.Process, suffixes ...string) {
	t.Helper()
	for _, suffix := range suffixes {
		for _, name := range segments(t, p, "damaged", suffix) {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const (
	damagedValueBytes = 4000
	perBatch          = 5
)

// TestV30_DamagedFiles damages the files of a broker that was killed, and those that are made good in any case also after a clean stop. The
// log ends at the last whole batch, and nothing else is missing: records, lookup by time, producer state, group offsets, topic id.
func TestV30_DamagedFiles(t *testing.T) {
	for _, stop := range []string{"killed", "stopped"} {
		for _, d := range damages {
			if stop == "stopped" && !d.afterClean {
				continue
			}
			t.Run(stop+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				p := sluicetest.Start(t)
				id := createTopic(t, p.Address, "damaged", 1, "segment.bytes", "1048576", "index.interval.bytes", "20000")
				end := writeBatches(t, p.Address, "damaged", 150, perBatch, damagedValueBytes)
				commitGroup(t, p.Address, 321)
				if stop == "killed" {
					p.Kill()
				} else {
					p.Stop()
				}
				d.do(t, p)
				p.Launch()
				p.WaitReady()

				want := end
				if d.tail {
					want -= perBatch
				}
				if got := endOf(t, p.Address, "damaged"); got != want {
					t.Fatalf("the log ends at %d, want %d of %d", got, want, end)
				}
				checkLog(t, p.Address, "damaged", 0, want, damagedValueBytes)
				checkTimes(t, p.Address, want)
				if after := topicID(t, p.Address, "damaged"); after != id {
					t.Errorf("topic id %v, was %v", after, id)
				}
				checkGroup(t, p.Address, 321)
				writeBatches(t, p.Address, "damaged", 3, perBatch, damagedValueBytes)
				verifyDirectory(t, p, p.DataDir)
			})
		}
	}
}

// checkTimes looks records up by their times, which writeBatches made from their offsets (V18).
func checkTimes(t *testing.T, address string, end int64) {
	t.Helper()
	cl := open(t, address)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for _, offset := range []int64{0, 1, 77, end / 2, end - 1} {
		at := 1_700_000_000_000 + offset
		offsets, err := adm.ListOffsetsAfterMilli(t.Context(), at, "damaged")
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := offsets.Lookup("damaged", 0); o.Offset != offset || o.Timestamp != at || o.Err != nil {
			t.Errorf("the first record at or after %d is offset %d at %d (%v), want offset %d", at, o.Offset, o.Timestamp, o.Err, offset)
		}
	}
	newest, err := adm.ListMaxTimestampOffsets(t.Context(), "damaged")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := newest.Lookup("damaged", 0); o.Offset != end-1 {
		t.Errorf("the newest record is at %d, want %d", o.Offset, end-1)
	}
}

func commitGroup(t *testing.T, address string, at int64) {
	t.Helper()
	cl := open(t, address)
	defer cl.Close()
	offsets := kadm.Offsets{}
	offsets.AddOffset("damaged", 0, at, 0)
	if r, err := kadm.NewClient(cl).CommitOffsets(t.Context(), "damaged-group", offsets); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
}

func checkGroup(t *testing.T, address string, at int64) {
	t.Helper()
	cl := open(t, address)
	defer cl.Close()
	offsets, err := kadm.NewClient(cl).FetchOffsets(t.Context(), "damaged-group")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := offsets.Lookup("damaged", 0); o.At != at {
		t.Errorf("the group is at %d, was at %d", o.At, at)
	}
}

// TestV30_KilledWhileRecovering kills a broker, damages its last batch, and kills it again and again while it starts. None of those starts
// may pass for a clean one.
func TestV30_KilledWhileRecovering(t *testing.T) {
	p := sluicetest.Start(t)
	createTopic(t, p.Address, "damaged", 1, "segment.bytes", "4194304")
	end := writeBatches(t, p.Address, "damaged", 300, 20, damagedValueBytes)
	p.Kill()
	logs := segments(t, p, "damaged", ".log")
	content := readFile(t, logs[len(logs)-1])
	content[(lastBatch(content)+len(content))/2] ^= 0x10
	writeFile(t, logs[len(logs)-1], content)
	for delay := time.Millisecond; delay < 200*time.Millisecond; delay = delay * 3 / 2 {
		p.Launch()
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		<-ctx.Done()
		cancel()
		p.Kill()
	}
	p.Launch()
	p.WaitReady()
	if got := endOf(t, p.Address, "damaged"); got != end-20 {
		t.Fatalf("the log ends at %d, want %d", got, end-20)
	}
	checkLog(t, p.Address, "damaged", 0, end-20, damagedValueBytes)
	verifyDirectory(t, p, p.DataDir)
}
