package diff

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerLimit is how long a step waits for an answer. A step that no broker answers within it is "silent" on both.
const answerLimit = 3 * time.Second

// slowLimit is how much longer a broker is waited for when the other one has answered.
const slowLimit = 20 * time.Second

// settleLimit is how long a broker may take to see a change that it has made. Apache Kafka needs some milliseconds, and seconds while it is busy.
const settleLimit = 8 * time.Second

// Scenario is one sequence of steps. It is run once, against both brokers in step.
type Scenario struct {
	// Name begins with the subject, and is unique: "groups/static member rejoins".
	Name string
	// Needs are the keys of the APIs that it asks for beyond those of its subject; while Sluice lacks one, the scenario waits in pending.md.
	Needs []kmsg.Key
	// Alone says that the scenario sees or changes what others use, and so runs when no other does.
	Alone bool
	Steps func(r *Run)
}

// side is one broker in one scenario: its connections, and the values that the scenario keeps from its answers.
type side struct {
	name    string // "kafka" or "sluice"
	address string
	conns   map[string]*conn
	kept    map[string]any
}

func (s *side) conn(name string) *conn {
	c := s.conns[name]
	if c == nil {
		c = &conn{address: s.address}
		s.conns[name] = c
	}
	return c
}

// keep remembers a value under a name, for a later request to the same broker.
func (s *side) keep(name string, value any) { s.kept[name] = value }

// get is what keep was given. A name that nothing was kept under gives the zero value: the answer that should have held it is a difference already.
func get[T any](s *side, name string) T {
	value, _ := s.kept[name].(T)
	return value
}

// Run is one scenario under way.
type Run struct {
	t        testing.TB
	scenario string
	prefix   string // begins every name of this scenario
	on       string // the connection that steps use
	sides    [2]*side
	norm     *normaliser
	tamper   func(a *answer) // changes the second broker's answers, in tests of the harness
	report   *report
	limit    time.Duration
	last     *[2]answer // of the step before
}

func newRun(t testing.TB, scenario, prefix string, addresses [2]string, report *report) *Run {
	r := &Run{t: t, scenario: scenario, prefix: prefix, on: "first", report: report, limit: answerLimit, last: new([2]answer), norm: newNormaliser(prefix)}
	for i, name := range sideNames {
		r.sides[i] = &side{name: name, address: addresses[i], conns: map[string]*conn{}, kept: map[string]any{}}
	}
	return r
}

var sideNames = [2]string{"kafka", "sluice"}

func (r *Run) close() {
	for _, s := range r.sides {
		for _, c := range s.conns {
			c.close()
		}
	}
}

// name is a name of this scenario's own, the same on both brokers.
func (r *Run) name(what string) string { return r.prefix + what }

// connection gives a view of the run whose steps use another connection.
func (r *Run) connection(name string) *Run {
	view := *r
	view.on = name
	return &view
}

// waiting gives a view of the run whose steps wait so long for an answer.
func (r *Run) waiting(limit time.Duration) *Run {
	view := *r
	view.limit = limit
	return &view
}

// both runs f for the two brokers at once.
func (r *Run) both(f func(i int, s *side)) {
	var wg sync.WaitGroup
	for i, s := range r.sides {
		wg.Go(func() { f(i, s) })
	}
	wg.Wait()
}

// send writes a request to both brokers, without waiting for the answers.
func (r *Run) send(version int16, build func(s *side) kmsg.Request) {
	r.both(func(_ int, s *side) {
		req := build(s)
		req.SetVersion(version)
		s.conn(r.on).send(appendFrame(req, 0), req.ResponseKind())
	})
}

// receive takes the answers to the oldest request and compares them.
func (r *Run) receive(step string) [2]answer {
	answers := r.collect()
	r.compare(step, answers)
	return answers
}

// A broker that is silent where the other has answered gets slowLimit more: it may only be busy.
func (r *Run) collect() (answers [2]answer) {
	var answered atomic.Bool
	r.both(func(i int, s *side) {
		answers[i] = s.conn(r.on).receive(r.limit, func() time.Duration {
			if answered.Load() {
				return slowLimit
			}
			return 0
		})
		if i == 1 && r.tamper != nil {
			r.tamper(&answers[i])
		}
		answered.Store(answered.Load() || answers[i].outcome != silent)
	})
	if answers[0].outcome == silent && answers[1].outcome == silent {
		r.report.countSilent(r.scenario)
	}
	return answers
}

func (r *Run) compare(step string, answers [2]answer) {
	*r.last = answers
	r.report.add(r.scenario, step, r.norm.compare(answers[0], answers[1]))
	r.report.count(answers)
}

// exchange sends a request and takes the answers without comparing them.
func (r *Run) exchange(version int16, build func(s *side) kmsg.Request) [2]answer {
	r.send(version, build)
	return r.collect()
}

// ask sends a request to both brokers and compares the answers. keep, if given, sees each broker's response.
func ask[R kmsg.Response](r *Run, step string, version int16, build func(s *side) kmsg.Request, keep ...func(s *side, resp R)) {
	r.send(version, build)
	take(r, fmt.Sprintf("%s v%d", step, version), keep...)
}

// take is the second half of ask.
func take[R kmsg.Response](r *Run, step string, keep ...func(s *side, resp R)) {
	for i, a := range r.receive(step) {
		if resp, ok := a.response.(R); ok {
			for _, k := range keep {
				k(r.sides[i], resp)
			}
		}
	}
}

// askSettled is ask for what a broker learns with a delay: it asks again until the answers are equal, or settleLimit has passed.
func askSettled[R kmsg.Response](r *Run, step string, version int16, build func(s *side) kmsg.Request, keep ...func(s *side, resp R)) {
	deadline := time.Now().Add(settleLimit)
	for {
		answers := r.exchange(version, build)
		before := r.norm.clone()
		differences := r.norm.compare(answers[0], answers[1])
		if len(differences) > 0 && time.Now().Before(deadline) {
			r.norm.restore(before)
			time.Sleep(5 * time.Millisecond)
			continue
		}
		r.report.add(r.scenario, fmt.Sprintf("%s v%d", step, version), differences)
		r.report.count(answers)
		for i, a := range answers {
			if resp, ok := a.response.(R); ok {
				for _, k := range keep {
					k(r.sides[i], resp)
				}
			}
		}
		return
	}
}

// same is a request that is equal for both brokers. It must not be changed by building.
func same(req kmsg.Request) func(*side) kmsg.Request {
	var mu sync.Mutex
	first := true
	return func(*side) kmsg.Request {
		mu.Lock()
		defer mu.Unlock()
		if first {
			first = false
			return req
		}
		return deepCopy(req)
	}
}
