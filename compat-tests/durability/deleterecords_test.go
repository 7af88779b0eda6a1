package durability

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"sluice/compat-tests/sluicetest"
)

// TestDeleteRecords_SurvivesAKill: what was deleted does not come back, although no checkpoint was due.
func TestDeleteRecords_SurvivesAKill(t *testing.T) {
	p := sluicetest.Start(t)
	createTopic(t, p.Address, "trimmed", 1)
	writeBatches(t, p.Address, "trimmed", 20, 1, 100)
	offsets := kadm.Offsets{}
	offsets.AddOffset("trimmed", 0, 7, -1)
	if r, err := kadm.NewClient(open(t, p.Address)).DeleteRecords(t.Context(), offsets); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
	p.Kill()
	p.Launch()
	p.WaitReady()
	if start, end := boundsOf(t, p.Address, "trimmed"); start != 7 || end != 20 {
		t.Errorf("the log is from %d to %d, want 7 to 20", start, end)
	}
	checkLog(t, p.Address, "trimmed", 7, 20, 100)
}
