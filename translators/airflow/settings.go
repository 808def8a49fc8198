package airflow

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// Limits of the protocol's.
const (
	maxRetries   = 100
	maxBackoff   = 7 * 24 * time.Hour
	maxTimeLimit = 366 * 24 * time.Hour
)

// exponentialMost is how long Airflow waits at most before a retry, unless the task says otherwise.
const exponentialMost = 24 * time.Hour

// settings carries over what all operators have, and gives notice of what is not carried over.
func (x *translating) settings() {
	x.retries()
	x.timeout()
	x.parallelism()
	x.waitForPulled()
	op := x.operator
	if pool := op.text("pool"); pool != "" && pool != "default_pool" {
		x.notice(op, "pool %s (%d slots) is not kept: a limit of the scheduler's, such as a licence, a QOS or a partition, is the way to say it", pool, x.whole("pool_slots", 1))
	}
	if weight := x.whole("priority_weight", 1); weight != 1 {
		x.notice(op, "priority_weight %d means nothing here: the scheduler has priorities of its own", weight)
	}
	if rule := op.text("weight_rule"); rule != "" && rule != "downstream" {
		x.notice(op, "weight_rule %s means nothing here", rule)
	}
	if queue := op.text("queue"); queue != "" && queue != "default" {
		x.notice(op, "queue %s is one of Airflow's workers, and means nothing here", queue)
	}
	for _, name := range []string{"executor", "executor_config"} {
		if dict, isDict := op.setting(name).(*jinja.Dict); op.get(name) != nil && !(isDict && len(dict.Keys()) == 0) {
			x.notice(op, "%s is for Airflow's workers, and means nothing here", name)
		}
	}
	for _, name := range []string{"depends_on_past", "wait_for_downstream"} {
		if op.flag(name) {
			x.notice(op, "%s is not kept: runs of the DAG do not wait for each other", name)
		}
	}
	if events := op.callbacks(); len(events) > 0 {
		x.notice(op, "callbacks (%s) are Python code in Airflow: nothing calls them", strings.Join(events, ", "))
	}
	if op.flag("has_retry_policy") {
		x.notice(op, "its retry_policy is Python code in Airflow: it is tried again after any failure")
	}
	for _, name := range []string{"inlets", "outlets"} {
		if list, ok := op.setting(name).(jinja.List); ok && len(list) > 0 {
			x.notice(op, "%s are not told: no asset's event comes of it", name)
		}
	}
	if op.flag("on_failure_fail_dagrun") {
		x.notice(op, "on_failure_fail_dagrun is not kept: a tear-down that fails does not fail the run")
	}
}

// whole is a setting that is a whole number.
func (x *translating) whole(name string, otherwise int64) int64 {
	switch value := x.operator.setting(name).(type) {
	case nil:
		return otherwise
	case int64:
		return value
	default:
		x.fault(x.operator, name, "is %s, and should be a whole number", shown(value))
		return otherwise
	}
}

// span is a setting that is a duration, or nil.
func (x *translating) span(name string) *time.Duration {
	value := x.operator.setting(name)
	if value == nil {
		return nil
	}
	d, ok := seconds(value)
	if !ok || d < 0 {
		x.fault(x.operator, name, "is %s, and should be a duration", shown(value))
		return nil
	}
	return (*time.Duration)(&d)
}

func (x *translating) retries() {
	n := x.whole("retries", 0)
	if n <= 0 {
		return
	}
	if n > maxRetries {
		x.notice(x.operator, "retries %d: it is tried again %d times at most", n, maxRetries)
		n = maxRetries
	}
	delay, most := 300*time.Second, x.span("max_retry_delay")
	if set := x.span("retry_delay"); set != nil {
		delay = *set
	}
	longest := delay // the same before each
	switch exponential := x.operator.setting("retry_exponential_backoff").(type) {
	case nil, bool:
		if exponential == true {
			longest = exponentialMost
		}
	default:
		if factor, ok := float(exponential); ok && factor > 0 {
			longest = exponentialMost
			if factor != 2 && factor != 1 {
				x.notice(x.operator, "retry_exponential_backoff %v: the delay is doubled", factor)
			}
		}
	}
	if most != nil {
		longest = min(longest, *most)
		delay = min(delay, *most)
	}
	if x.task.Retry == nil {
		x.task.Retry = &dagbridgev1.Retry{}
	}
	if x.task.Retry.MaxRetries != 0 {
		x.notice(x.operator, "retry says how often it is tried again, so that retries does not")
		return
	}
	x.task.Retry.MaxRetries = int32(n)
	x.task.Retry.Backoff = durationpb.New(min(delay, maxBackoff))
	x.task.Retry.MaxBackoff = durationpb.New(min(max(longest, delay), maxBackoff))
}

// timeout: Airflow's limit on how long it may take is the scheduler's.
func (x *translating) timeout() {
	limit := x.span("execution_timeout")
	if limit == nil || *limit == 0 {
		return
	}
	if x.task.Resources == nil {
		x.task.Resources = &dagbridgev1.Resources{}
	}
	if own := x.task.Resources.TimeLimit; own == nil || own.AsDuration() > *limit {
		x.task.Resources.TimeLimit = durationpb.New(min(*limit, maxTimeLimit))
	}
}

func (x *translating) parallelism() {
	perRun, ever := x.whole("max_active_tis_per_dagrun", 0), x.whole("max_active_tis_per_dag", 0)
	if ever > 0 {
		x.notice(x.operator, "max_active_tis_per_dag %d is kept within this run, not across runs", ever)
	}
	if ever > 0 && (perRun <= 0 || ever < perRun) {
		perRun = ever
	}
	if array := x.task.Array; array != nil && perRun > 0 {
		array.MaxParallel = int32(min(perRun, maxInstances))
	}
}

// wholeDAG gives notice of what the DAG itself says and what is not kept.
func (t *translator) wholeDAG() {
	get := func(name string) jinja.Value { value, _ := t.dag.fields.Get(name); return decode(value) }
	if limit, ok := seconds(get("dagrun_timeout")); ok && limit > 0 {
		t.once("dagrun_timeout %s is not kept: the run may take longer", fmt.Sprint(time.Duration(limit)))
	}
	for _, event := range []string{"failure", "success"} {
		if get("has_on_"+event+"_callback") == true {
			t.once("the DAG's on_%s_callback is Python code in Airflow: nothing calls it", event)
		}
	}
	if get("fail_fast") == true || get("fail_stop") == true {
		t.once("fail_fast is not kept: other tasks go on after a failure")
	}
}
