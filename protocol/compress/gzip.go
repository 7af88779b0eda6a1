package compress

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gzipSource reads one gzip member after the other. As Java's reader does, it takes bytes after a member that do not
// begin another one for the end.
type gzipSource struct {
	in bytes.Reader
	z  gzip.Reader
}

var gzipSources = sync.Pool{New: func() any { return new(gzipSource) }}

func openGzip(src []byte) (source, error) {
	g := gzipSources.Get().(*gzipSource)
	g.in.Reset(src)
	if err := g.z.Reset(&g.in); err != nil {
		g.close()
		return nil, err
	}
	g.z.Multistream(false)
	return g, nil
}

func (g *gzipSource) fill(dst []byte) ([]byte, error) {
	n, err := g.z.Read(dst[len(dst):cap(dst)])
	dst = dst[:len(dst)+n]
	if err != io.EOF {
		return dst, err
	}
	if g.in.Len() == 0 || g.z.Reset(&g.in) != nil {
		return dst, io.EOF
	}
	g.z.Multistream(false)
	return dst, nil
}

func (g *gzipSource) close() {
	g.in.Reset(nil)
	gzipSources.Put(g)
}

// gzipWriters has a pool for each level, -1 to 9.
var gzipWriters [11]sync.Pool

func gzipCompress(dst []byte, level int, src []byte) ([]byte, error) {
	if level == DefaultLevel {
		level = gzip.DefaultCompression
	}
	level = min(max(level, gzip.DefaultCompression), gzip.BestCompression)
	pool := &gzipWriters[level+1]
	out := appender{dst}
	w, _ := pool.Get().(*gzip.Writer)
	if w == nil {
		var err error
		if w, err = gzip.NewWriterLevel(&out, level); err != nil {
			return dst, err
		}
	} else {
		w.Reset(&out)
	}
	if _, err := w.Write(src); err != nil {
		return dst, err
	}
	if err := w.Close(); err != nil {
		return dst, err
	}
	w.Reset(io.Discard) // so that the pool does not keep the output alive
	pool.Put(w)
	return out.b, nil
}

// appender is an io.Writer onto a slice.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}
