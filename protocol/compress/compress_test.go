package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	kgzip "compress/gzip"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// samples are inputs around the sizes at which codecs change what they do.
func samples() map[string][]byte {
	rnd := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 200<<10)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	m := map[string][]byte{"empty": {}, "one": {7}}
	for _, n := range []int{20, 32<<10 - 1, 32 << 10, 64<<10 + 1, 300 << 10, 3 << 20} {
		m[fmt.Sprintf("text-%d", n)] = []byte(strings.Repeat("to be compressed, ", n/18+1))[:n]
	}
	for _, n := range []int{20, 64 << 10, 200 << 10} {
		m[fmt.Sprintf("noise-%d", n)] = noise[:n]
	}
	return m
}

// What is compressed, at any level, decompresses to the same, in one go and through a stream.
func TestCompress_RoundTrip(t *testing.T) {
	levels := map[Codec][]int{None: {0}, Gzip: {0, -1, 1, 9}, Snappy: {0}, Lz4: {0, 1, 9, 17}, Zstd: {0, -131072, 1, 7, 22}}
	for codec, levels := range levels {
		for _, level := range levels {
			for name, in := range samples() {
				if len(in) > 1<<20 && level != 0 {
					continue
				}
				packed, err := Compress([]byte("before"), codec, level, in)
				if err != nil {
					t.Fatalf("%s level %d %s: %v", codec, level, name, err)
				}
				packed, ok := bytes.CutPrefix(packed, []byte("before"))
				if !ok {
					t.Fatalf("%s level %d %s: does not append", codec, level, name)
				}
				out, err := Decompress([]byte("here: "), codec, packed, len(in))
				if err != nil || !bytes.Equal(out, append([]byte("here: "), in...)) {
					t.Errorf("%s level %d %s: %d bytes of %d, %v", codec, level, name, len(out), len(in), err)
				}
				if len(in) > 0 {
					if out, err := Decompress([]byte("here: "), codec, packed, len(in)-1); err != ErrTooLarge || string(out) != "here: " {
						t.Errorf("%s level %d %s: cap not kept: %d bytes, %v", codec, level, name, len(out), err)
					}
				}
				if codec != None {
					checkStream(t, fmt.Sprintf("%s level %d %s", codec, level, name), codec, packed, in)
				}
			}
		}
	}
}

// checkStream reads packed through Streams in uneven steps, and checks that a kept stream leaves alone what it showed.
func checkStream(t *testing.T, name string, codec Codec, packed, want []byte) {
	kept, err := OpenKeptStream(codec, packed, len(want))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer kept.Close()
	var shown [][]byte
	for {
		b, err := kept.Peek(3001)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(b) == 0 {
			break
		}
		shown = append(shown, b)
		kept.Discard(len(b))
	}
	if got := bytes.Join(shown, nil); !bytes.Equal(got, want) {
		t.Errorf("%s: a kept stream has shown %d bytes that are not the %d wanted", name, len(got), len(want))
	}

	s, err := OpenStream(codec, packed, len(want))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer s.Close()
	for step := 1; len(want) > 0; step = step*3%WindowBytes + 1 {
		b, err := s.Peek(step)
		if err != nil || !bytes.Equal(b, want[:min(step, len(want))]) {
			t.Fatalf("%s: peek %d with %d left: %d bytes, %v", name, step, len(want), len(b), err)
		}
		skip := min(step+step/2, len(want)) // beyond what was peeked
		if ok, err := s.Discard(skip); !ok || err != nil {
			t.Fatalf("%s: discard %d: %t, %v", name, skip, ok, err)
		}
		want = want[skip:]
	}
	if b, err := s.Peek(1); len(b) != 0 || err != nil {
		t.Errorf("%s: at the end: %d bytes, %v", name, len(b), err)
	}
	if ok, err := s.Discard(1); ok || err != nil {
		t.Errorf("%s: discard at the end: %t, %v", name, ok, err)
	}
}

// What other libraries write is read.
func TestDecompress_OtherWriters(t *testing.T) {
	text := []byte(strings.Repeat("the quick brown fox ", 20_000))
	check := func(name string, c Codec, packed, want []byte) {
		t.Helper()
		out, err := Decompress(nil, c, packed, len(want))
		if err != nil || !bytes.Equal(out, want) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(out), len(want), err)
			return
		}
		checkStream(t, name, c, packed, want)
	}
	check("snappy raw", Snappy, snappy.Encode(nil, text), text)
	xerial := snappyCompress(nil, text)
	check("xerial twice", Snappy, append(bytes.Clone(xerial), xerial...), append(bytes.Clone(text), text...))

	var member bytes.Buffer
	w := kgzip.NewWriter(&member)
	w.Name, w.Comment, w.Extra = "a name", "a comment", []byte("extra")
	w.Write(text)
	w.Close()
	check("gzip with header fields", Gzip, member.Bytes(), text)
	two := append(bytes.Clone(member.Bytes()), member.Bytes()...)
	check("gzip of two members", Gzip, two, append(bytes.Clone(text), text...))
	check("gzip with bytes behind it", Gzip, append(bytes.Clone(member.Bytes()), "garbage that is not a member"...), text)

	for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
		for _, options := range [][]lz4.Option{
			{lz4.ChecksumOption(true)}, {lz4.ChecksumOption(false)}, {lz4.BlockChecksumOption(true)}, {lz4.SizeOption(uint64(len(text)))},
			{lz4.SizeOption(uint64(len(text))), lz4.BlockChecksumOption(true), lz4.ChecksumOption(true)},
		} {
			var b bytes.Buffer
			w := lz4.NewWriter(&b)
			if err := w.Apply(append(options, lz4.BlockSizeOption(size), lz4.ConcurrencyOption(1))...); err != nil {
				t.Fatal(err)
			}
			w.Write(text)
			w.Close()
			check(fmt.Sprintf("lz4 %v %v", size, options), Lz4, b.Bytes(), text)
			check("lz4 with bytes behind it", Lz4, append(b.Bytes(), 1, 2, 3), text)
		}
	}
	for _, options := range [][]zstd.EOption{
		{zstd.WithEncoderCRC(true)}, {zstd.WithWindowSize(64 << 20), zstd.WithSingleSegment(false)}, {zstd.WithSingleSegment(true)},
		{zstd.WithWindowSize(1 << 10)},
	} {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, options...)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(text)
		w.Flush()
		w.Write(text)
		w.Close()
		check("zstd stream", Zstd, b.Bytes(), append(bytes.Clone(text), text...))
		all := w.EncodeAll(text, nil)
		check("zstd at once", Zstd, all, text)
		skippable := append([]byte{0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'}, all...)
		check("zstd behind a skippable frame", Zstd, skippable, text)
		check("zstd of two frames", Zstd, append(bytes.Clone(all), all...), append(bytes.Clone(text), text...))
	}
}

// bombs are small inputs that declare or hold very much.
func bombs() map[string]struct {
	codec Codec
	b     []byte
} {
	zeros := make([]byte, 16<<20)
	m := map[string]struct {
		codec Codec
		b     []byte
	}{}
	add := func(name string, c Codec, b []byte) {
		m[name] = struct {
			codec Codec
			b     []byte
		}{c, b}
	}
	for c := Gzip; c <= Zstd; c++ {
		b, err := Compress(nil, c, 0, zeros)
		if err != nil {
			panic(err)
		}
		add(c.String()+" of zeros", c, b)
	}
	add("snappy declares 4 GiB", Snappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0})
	add("snappy declares 1 GiB in a block", Snappy, append(snappyCompress(nil, nil), 0, 0, 0, 6, 0x80, 0x80, 0x80, 0x80, 0x04, 0))
	add("xerial block of 2 GiB", Snappy, append(snappyCompress(nil, nil), 0x7f, 0xff, 0xff, 0xff, 0))
	huge := []byte{0x04, 0x22, 0x4d, 0x18, 0x60 | lz4HasContentSize, 0x70, 255, 255, 255, 255, 255, 255, 255, 127}
	huge = append(huge, byte(xxh32(huge[4:])>>8), 4, 0, 0, 0, 0x1f, 0, 1, 0, 0, 0, 0, 0)
	add("lz4 declares all there is", Lz4, huge)
	// Frames of one short raw block, with windows and content sizes that they cannot fill.
	raw := []byte{3<<3 | 1, 0, 0, 'a', 'b', 'c'}
	add("zstd window of 128 MiB", Zstd, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3}, raw...))
	add("zstd window of 3.75 TiB", Zstd, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xff}, raw...))
	add("zstd content of 100 MiB", Zstd, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x40, 6}, raw...))
	add("zstd content of 4 EiB", Zstd, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x40}, raw...))
	rle := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3}
	for range 500 {
		rle = append(rle, 0x02, 0, 0x10, 0) // 128 KiB of zeros
	}
	add("zstd of 500 repeated bytes, window of 128 MiB", Zstd, append(rle, 1, 0, 0))
	return m
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Hostile input neither allocates much more than the cap nor passes it.
func TestDecompress_Bombs_StayWithinTheCap(t *testing.T) {
	const limit = 256 << 10
	for name, bomb := range bombs() {
		try := func() {
			if _, err := Decompress(nil, bomb.codec, bomb.b, limit); err == nil && name != "zstd window of 128 MiB" {
				t.Errorf("%s: no error", name)
			}
			s, err := OpenStream(bomb.codec, bomb.b, limit)
			if err != nil {
				return
			}
			defer s.Close()
			for {
				b, err := s.Peek(WindowBytes)
				if err != nil || len(b) == 0 {
					return
				}
				if _, err := s.Discard(len(b)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		try() // fills pools, with decoders whose size does not depend on the input
		max := uint64(8 * limit)
		if bomb.codec == Zstd {
			max += 2 * zstdStreamWindow // a decoder, if the pool has lost it
		}
		if strings.Contains(name, "repeated") {
			max = 8 * zstdWholeMax // the window is too large for decoding it piece by piece; the sum of a slice that grows, twice
		}
		if n := allocated(try); n > max {
			t.Errorf("%s: %d bytes allocated for an input of %d", name, n, len(bomb.b))
		}
	}
}

// Errors say what is wrong and are told apart from the cap.
func TestDecompress_CorruptInput(t *testing.T) {
	text := []byte(strings.Repeat("corrupt me ", 1000))
	for c := Gzip; c <= Zstd; c++ {
		packed, err := Compress(nil, c, 0, text)
		if err != nil {
			t.Fatal(err)
		}
		for cut := range len(packed) {
			if cut > 64 && cut < len(packed)-64 {
				continue
			}
			if c == Snappy && cut == xerialHeaderBytes || c == Zstd && cut == 0 {
				continue // a stream without blocks: no bytes, no fault
			}
			var corrupt *Corrupt
			if out, err := Decompress(nil, c, packed[:cut], 1<<20); !errors.As(err, &corrupt) || corrupt.Codec != c || len(out) > 0 {
				t.Errorf("%s cut after %d of %d: %d bytes, %v", c, cut, len(packed), len(out), err)
			}
		}
	}
	linked := []byte{0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0}
	linked[6] = byte(xxh32(linked[4:6]) >> 8)
	if _, err := Decompress(nil, Lz4, linked, 1000); !errors.Is(err, errLz4Flags) {
		t.Errorf("lz4 with linked blocks, which no Java consumer could read: %v", err)
	}
	for _, c := range []Codec{-1, 5, 7} {
		if _, err := Decompress(nil, c, text, 1<<20); err != ErrUnknownCodec {
			t.Errorf("codec %d: %v", c, err)
		}
		if _, err := Compress(nil, c, 0, text); err != ErrUnknownCodec {
			t.Errorf("codec %d: %v", c, err)
		}
		if _, err := OpenStream(c, text, 1<<20); err != ErrUnknownCodec {
			t.Errorf("codec %d: %v", c, err)
		}
	}
}

// The lz4 library checks header checksums that are made with our hash, for all lengths that its loops treat apart.
func TestXXH32(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint32
	}{ // from the reference implementation
		{"", 0x02cc5d05}, {"a", 0x550d7456}, {"abc", 0x32d153ff}, {"Nobody inspects the spammish repetition", 0xe2293b2f},
	} {
		if got := xxh32([]byte(c.in)); got != c.want {
			t.Errorf("%q: %#x, want %#x", c.in, got, c.want)
		}
	}
}

// fuzzDecoder feeds a decoder: it must not panic, keep the cap, allocate in proportion, and agree with the stream.
func fuzzDecoder(f *testing.F, c Codec) {
	for _, in := range samples() {
		if len(in) > 4000 {
			in = in[:4000]
		}
		packed, err := Compress(nil, c, 0, in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	for _, bomb := range bombs() {
		if bomb.codec == c && len(bomb.b) < 1000 {
			f.Add(bomb.b)
		}
	}
	const limit = 64 << 10
	packed, err := Compress(nil, c, 0, []byte("to fill the pools"))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := Decompress(nil, c, packed, limit); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var out []byte
		var err error
		allowed := uint64(4<<20 + 16*len(src))
		if c == Zstd {
			if bound, window, err := zstdExtent(src); err == nil && bound > zstdWholeBytes {
				allowed = 2 * zstdStreamWindow
				if window > zstdStreamWindow {
					allowed = 4 * zstdWholeMax
				}
			}
		}
		if n := allocated(func() { out, err = Decompress(nil, c, src, limit) }); n > allowed {
			t.Errorf("%d bytes allocated for %d", n, len(src))
		}
		if len(out) > limit {
			t.Errorf("%d bytes, beyond the cap", len(out))
		}
		s, openErr := OpenStream(c, src, limit)
		if openErr != nil {
			if err == nil {
				t.Errorf("stream: %v", openErr)
			}
			return
		}
		defer s.Close()
		for {
			b, streamErr := s.Peek(1000)
			if streamErr != nil {
				if err == nil {
					t.Errorf("stream: %v", streamErr)
				}
				return
			}
			if err == nil && !bytes.HasPrefix(out, b) {
				t.Error("stream yields something else")
			}
			if len(b) == 0 {
				break
			}
			if err == nil {
				out = out[len(b):]
			}
			if _, streamErr := s.Discard(len(b)); streamErr != nil {
				t.Errorf("discard: %v", streamErr)
			}
		}
		if err != nil || len(out) > 0 {
			t.Errorf("stream ends without error; at once: %v, %d bytes more", err, len(out))
		}
	})
}

func FuzzGzip(f *testing.F)   { fuzzDecoder(f, Gzip) }
func FuzzSnappy(f *testing.F) { fuzzDecoder(f, Snappy) }
func FuzzLz4(f *testing.F)    { fuzzDecoder(f, Lz4) }
func FuzzZstd(f *testing.F)   { fuzzDecoder(f, Zstd) }

func BenchmarkDecompress(b *testing.B) {
	text := []byte(strings.Repeat("0123456789 some=thing else=1 ", 4000))
	for i := range text {
		if i%29 < 9 {
			binary.NativeEndian.PutUint16(text[i&^1:], uint16(i*7919))
		}
	}
	for c := Gzip; c <= Zstd; c++ {
		packed, err := Compress(nil, c, 0, text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.String()+"/whole", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				if dst, err = Decompress(dst[:0], c, packed, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.String()+"/stream", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s, err := OpenStream(c, packed, 1<<20)
				if err != nil {
					b.Fatal(err)
				}
				for {
					p, err := s.Peek(1 << 10)
					if err != nil {
						b.Fatal(err)
					}
					if len(p) == 0 {
						break
					}
					s.Discard(len(p))
				}
				s.Close()
			}
		})
	}
}
