package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
	"sluice/storage/vfs"
)

// A broker that is not heard from is fenced when its session ends, at once and by nobody's request; the node's own is not.
func TestRun_FencesASilentBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		format(t, fsys)
		o := options(t, fsys)
		o.NowMs = func() int64 { return time.Now().UnixMilli() }
		c, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		register(t, c, 1)
		other := kmsg.NewBrokerRegistrationRequest()
		other.Version, other.BrokerID, other.ClusterID, other.IncarnationID = 4, 2, testCluster, [16]byte{2}
		other.LogDirs = [][16]byte{{8, 8}}
		for _, f := range features {
			feature := kmsg.NewBrokerRegistrationRequestFeature()
			feature.Name, feature.MinSupportedVersion, feature.MaxSupportedVersion = f.Name, f.Min, f.Max
			other.Features = append(other.Features, feature)
		}
		if _, err := c.Do(ctx, metadata.RegisterBroker(&other)); err != nil {
			t.Fatal(err)
		}
		beat := kmsg.NewBrokerHeartbeatRequest()
		b, _ := c.Image().Broker(2)
		beat.BrokerID, beat.BrokerEpoch, beat.CurrentMetadataOffset = 2, int64(b.Epoch), c.Image().Offset()
		if _, err := c.Do(ctx, metadata.BrokerHeartbeat(&beat)); err != nil {
			t.Fatal(err)
		}
		fenced := make(chan time.Time, 1)
		begin := time.Now()
		c.Subscribe(func(d *metadata.Delta) {
			if b, _ := d.Next.Broker(2); b.Fenced && len(fenced) == 0 {
				fenced <- time.Now()
			}
		})
		if took := (<-fenced).Sub(begin); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("fenced after %v", took)
		}
		<-time.After(time.Hour)
		if own, _ := c.Image().Broker(1); own.Fenced {
			t.Error("the node's own broker was fenced")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := c.Do(context.Background(), createTopic("t", 1)); !errors.Is(err, ErrNotController) {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
