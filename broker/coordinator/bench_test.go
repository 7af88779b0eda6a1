package coordinator

import (
	"sync"
	"testing"

	"go.uber.org/zap"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// A nullLog takes everything and keeps nothing.
type nullLog struct {
	end     int64
	watcher func(int64)
}

func (l *nullLog) Append(b record.Batch, _ record.Verification, _ int64) (int64, error) {
	l.end += int64(b.Count())
	l.watcher(l.end)
	return l.end - 1, nil
}
func (l *nullLog) AppendMarker(b record.Batch, _ int16, nowMs int64) (int64, error) {
	return l.Append(b, record.Verification{}, nowMs)
}
func (l *nullLog) Read(int64, int) ([]byte, error) { return nil, nil }
func (l *nullLog) Offsets() (int64, int64, int64)  { return 0, 0, 0 }
func (l *nullLog) Watch(f func(int64)) func()      { l.watcher = f; return func() {} }
func (l *nullLog) MaxBatchBytes() int              { return 1 << 20 }

// BenchmarkSubmit is the way of one operation with a record through the runtime, with many clients at a time.
func BenchmarkSubmit(b *testing.B) {
	rt := New(Options[*list]{
		Topic: "t", New: func(int32) *list { return &list{} }, NowMs: func() int64 { return 1 },
		WriteTimeoutMs: func() int64 { return 5000 }, Log: zap.NewNop(),
	})
	defer rt.Close()
	rt.Load(0, 1, &nullLog{})
	records := records("a value of some thirty characters")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var wait sync.WaitGroup
		for pb.Next() {
			wait.Add(1)
			rt.Submit(0, func(m *list, _ int64) (machine.Effects, error) {
				m.values = m.values[:0]
				return machine.Effects{Records: records}, nil
			}, func(error) { wait.Done() })
			wait.Wait()
		}
	})
}
