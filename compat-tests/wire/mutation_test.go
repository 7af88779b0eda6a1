package wire

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

var (
	hostile     = flag.Bool("hostile", false, "send every damaged request, not a sample of them")
	hostileSeed = flag.Uint64("hostile-seed", 0, "chooses the sample and how bytes are changed; 0 takes one from the clock and prints it")
)

// sampled is how many damaged requests are sent without -hostile, of each kind.
const sampled = 20_000

// An attacker is one of several at the same time. It goes on with a connection as long as the broker does.
type attacker struct {
	t       *testing.T
	address string
	conn    net.Conn
	dials   int
	answers int
}

// probe is a small request whose answer shows that the broker has done with what was sent before it.
var probe = func() []byte {
	req := kmsg.NewPtrApiVersionsRequest()
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("probe")).AppendRequest(nil, req, probeID)
}()

const (
	probeID  = 0x7abcdef0
	patience = 10 * time.Second
	tooLarge = 64 << 20 // no request of these tests has so large an answer
)

func (a *attacker) dial() error {
	if a.conn != nil {
		return nil
	}
	conn, err := net.DialTimeout("tcp", a.address, patience)
	if err != nil {
		return fmt.Errorf("a new connection: %w", err)
	}
	a.conn = conn
	a.dials++
	return conn.SetDeadline(time.Now().Add(patience))
}

func (a *attacker) hangUp() {
	if a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
}

// send sends bytes and sees what becomes of them: either answers, up to that of a probe sent after them, or the end of the connection.
func (a *attacker) send(frame []byte) error {
	if err := a.dial(); err != nil {
		return err
	}
	if err := a.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := a.conn.Write(slices.Concat(frame, probe)); err != nil {
		a.hangUp()
		return nil // ended before it had all
	}
	for {
		id, err := a.receive()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			a.hangUp()
			return fmt.Errorf("neither an answer nor the end after %v", patience)
		case errors.Is(err, errSize):
			a.hangUp()
			return err
		case err != nil:
			a.hangUp()
			return nil
		case id == probeID:
			return nil
		}
		a.answers++
	}
}

var errSize = errors.New("an answer of an impossible size")

// receive reads one answer and returns its correlation id.
func (a *attacker) receive() (int32, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(a.conn, head); err != nil {
		return 0, err
	}
	size := int64(int32(binary.BigEndian.Uint32(head)))
	if size < 4 || size > tooLarge {
		return 0, fmt.Errorf("%w: %d bytes", errSize, size)
	}
	_, err := io.CopyN(io.Discard, a.conn, size-4)
	return int32(binary.BigEndian.Uint32(head[4:])), err
}

// sendAndLeave sends bytes that may be the beginning of something longer, or a request that waits for others, and ends its half of the
// connection. The broker must end the other.
func (a *attacker) sendAndLeave(frame []byte) error {
	a.hangUp()
	if err := a.dial(); err != nil {
		return err
	}
	defer a.hangUp()
	if _, err := a.conn.Write(frame); err != nil {
		return nil
	}
	if err := a.conn.(*net.TCPConn).CloseWrite(); err != nil {
		return nil
	}
	for {
		if _, err := a.receive(); errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the connection is open %v after the client has ended its half", patience)
		} else if errors.Is(err, errSize) {
			return err
		} else if err != nil {
			return nil
		}
		a.answers++
	}
}

// waits are the keys of requests that wait for other members of a group, or are the end of a conversation.
var waits = map[int16]bool{int16(kmsg.JoinGroup): true, int16(kmsg.SyncGroup): true}

// damage is one way to spoil a request.
type damage struct {
	key, version int16
	at           int // the byte that is changed, or the length that is left
	change       byte
}

func (d damage) String() string {
	what := fmt.Sprintf("byte %d changed by %#x", d.at, d.change)
	if d.change == 0 {
		what = fmt.Sprintf("cut to %d bytes", d.at)
	}
	return fmt.Sprintf("%s v%d, %s", kmsg.NameForKey(d.key), d.version, what)
}

// apply returns the spoilt frame. One that is cut keeps a size that is right, or the broker would wait for the rest.
func (d damage) apply(frame []byte) []byte {
	if d.change == 0 {
		return sized(frame[4:d.at])
	}
	spoilt := slices.Clone(frame)
	spoilt[d.at] ^= d.change
	return spoilt
}

// leaves says that the broker may wait for more, or for somebody else, so that no probe can be sent after it.
func (d damage) leaves() bool { return d.at < 4 && d.change != 0 || waits[d.key] }

// TestBadInput_DamagedRequests: each byte of a valid request of each version changed, and each cut to every length.
func TestBadInput_DamagedRequests(t *testing.T) {
	random := hostileRandom(t)
	p := own(t, "--set", "auto.create.topics.enable=false", "--log-level", "warn")
	setup := sluicetest.Dial(t, p.Address)
	victim := plausible{name: fresh("victim"), records: batch(t, plain(), values(1000, "v")...)}
	victim.topicID = createTopic(t, setup, victim.name, 1)
	waitForCoordinator(t, setup, victim.name)
	frames := validRequests(t, p.Address, victim)
	b := startBystander(t, p.Address)
	before := p.ResidentBytes()

	wantAnswers(t, p.Address, frames)

	var flips, cuts []damage
	for _, kv := range slices.SortedFunc(maps.Keys(frames), func(x, y [2]int16) int { return slices.Compare(x[:], y[:]) }) {
		frame := frames[kv]
		for at := range frame {
			flips = append(flips, damage{kv[0], kv[1], at, byte(1 + random.IntN(255))}, damage{kv[0], kv[1], at, 0xff}, damage{kv[0], kv[1], at, 0x80})
			if at >= 4 {
				cuts = append(cuts, damage{kv[0], kv[1], at, 0})
			}
		}
	}
	all := len(flips) + len(cuts)
	if !*hostile {
		for _, list := range []*[]damage{&flips, &cuts} {
			random.Shuffle(len(*list), func(i, j int) { (*list)[i], (*list)[j] = (*list)[j], (*list)[i] })
			*list = (*list)[:min(sampled, len(*list))]
		}
	}
	chosen := append(flips, cuts...)
	start := time.Now()
	var next, dials, answers atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			a := &attacker{t: t, address: p.Address}
			defer a.hangUp()
			for i := next.Add(1) - 1; i < int64(len(chosen)) && !t.Failed(); i = next.Add(1) - 1 {
				d := chosen[i]
				send := a.send
				if d.leaves() {
					send = a.sendAndLeave
				}
				if err := send(d.apply(frames[[2]int16{d.key, d.version}])); err != nil {
					t.Errorf("%v: %v", d, err)
				}
			}
			dials.Add(int64(a.dials))
			answers.Add(int64(a.answers))
		})
	}
	wait.Wait()
	t.Logf("%d of %d damaged requests of %d keys and versions in %v: %d answers, %d connections",
		len(chosen), all, len(frames), time.Since(start).Round(time.Millisecond), answers.Load(), dials.Load())
	wantAlive(t, p)
	b.undisturbed(t)
	wantFlat(t, p, before)
}

// wantAnswers checks that the requests are good as long as nothing is changed, so that damage reaches every part of a handler.
func wantAnswers(t *testing.T, address string, frames map[[2]int16][]byte) {
	t.Helper()
	a := &attacker{t: t, address: address}
	defer a.hangUp()
	for kv, frame := range frames {
		if waits[kv[0]] || kv[0] == int16(kmsg.Produce) && kv[1] < 3 {
			continue // others must come first; advertised for the sake of a client, but not served
		}
		a.answers = 0
		if err := a.send(frame); err != nil || a.answers != 1 {
			t.Errorf("%s v%d: %d answers, %v", kmsg.NameForKey(kv[0]), kv[1], a.answers, err)
		}
	}
}

// TestBadInput_UnknownKeys: a hundred thousand requests of keys that nobody has.
func TestBadInput_UnknownKeys(t *testing.T) {
	random := hostileRandom(t)
	p := own(t, "--log-level", "warn")
	b := startBystander(t, p.Address)
	before := p.ResidentBytes()
	const requests = 100_000
	perConnection := 100
	if *hostile {
		perConnection = 1
	}
	unknown := func() []byte {
		for {
			if key := int16(random.Uint32()); kmsg.RequestForKey(key) == nil {
				return sized(append(header(key, int16(random.IntN(16)), false), byte(random.Uint32()), 0, 0, 0))
			}
		}
	}
	for range requests / perConnection {
		conn, err := net.Dial("tcp", p.Address)
		if err != nil {
			t.Fatal(err)
		}
		var frames []byte
		for range perConnection {
			frames = append(frames, unknown()...)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = conn.Write(frames) // the broker may end the connection at the first of them
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes, %v: the connection was not ended", n, err)
		}
		conn.Close()
	}
	wantAlive(t, p)
	b.undisturbed(t)
	wantFlat(t, p, before)
}

// TestBadInput_Lengths: each field of four bytes that could be a length, in each version, says something impossible.
func TestBadInput_Lengths(t *testing.T) {
	random := hostileRandom(t)
	p := own(t, "--set", "auto.create.topics.enable=false", "--log-level", "warn")
	setup := sluicetest.Dial(t, p.Address)
	victim := plausible{name: fresh("victim"), records: batch(t, plain(), values(1000, "v")...)}
	victim.topicID = createTopic(t, setup, victim.name, 1)
	waitForCoordinator(t, setup, victim.name)
	frames := validRequests(t, p.Address, victim)
	b := startBystander(t, p.Address)
	before := p.ResidentBytes()
	a := &attacker{t: t, address: p.Address}
	defer a.hangUp()
	lengths := [][]byte{
		{0x7f, 0xff, 0xff, 0xff}, {0x80, 0, 0, 0}, {0xff, 0xff, 0xff, 0xfe}, {0, 0xff, 0xff, 0xff}, // plain
		{0x7f, 0xff}, {0x80, 0}, {0xff, 0xfe}, // of strings
		{0xff, 0xff, 0xff, 0xff, 0x0f}, compactHuge, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, // compact
	}
	sent := 0
	for kv, frame := range frames {
		for at := 8; at < len(frame); at++ {
			if !*hostile && random.IntN(10) > 0 {
				continue
			}
			length := lengths[random.IntN(len(lengths))]
			spoilt := sized(slices.Concat(frame[4:at], length, frame[min(at+len(length), len(frame)):]))
			send := a.send
			if waits[kv[0]] {
				send = a.sendAndLeave
			}
			if err := send(spoilt); err != nil {
				t.Errorf("%s v%d, % x at %d: %v", kmsg.NameForKey(kv[0]), kv[1], length, at, err)
			}
			sent++
		}
	}
	t.Logf("%d requests, %d answers, %d connections", sent, a.answers, a.dials)
	wantAlive(t, p)
	b.undisturbed(t)
	wantFlat(t, p, before)
}

func hostileRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *hostileSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-hostile-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// wantAlive checks that the process runs and has caught no panic.
func wantAlive(t *testing.T, p *sluicetest.Process) {
	t.Helper()
	if !p.Running() {
		t.Fatalf("the broker has ended\n%s", p.Output())
	}
	if out := p.Output(); strings.Contains(out, "panic") || strings.Contains(out, "ERROR") {
		t.Errorf("the broker found a fault in itself:\n%s", out)
	}
}
