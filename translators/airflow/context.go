package airflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// standIn is shown for the logical date of a run that has none yet.
var standIn = jinja.Time{Time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}

// onlyAirflow is why something of Airflow's is not known here.
const onlyAirflow = "is known to Airflow alone"

// variables makes those that all tasks share.
func (t *translator) variables() {
	run := t.workflow.GetRun()
	conf := t.conf()
	logical := jinja.Lazy(t.logicalDate)
	of := func(text func(jinja.Time) string) jinja.Lazy {
		return func() (jinja.Value, error) {
			date, err := t.logicalDate()
			if err != nil {
				return nil, err
			}
			return text(date.(jinja.Time)), nil
		}
	}
	format := func(layout string) jinja.Lazy {
		return of(func(date jinja.Time) string { return date.Format(layout) })
	}
	start, end := jinja.Lazy(func() (jinja.Value, error) { return t.interval(false) }), jinja.Lazy(func() (jinja.Value, error) { return t.interval(true) })
	changing := jinja.Refused("is known to Airflow alone, in its database: pass it as a param or in conf")
	earlier := jinja.Refused("is of an earlier run, which is known to Airflow alone")
	t.vars = map[string]jinja.Value{
		"ds": format("2006-01-02"), "ds_nodash": format("20060102"), "ts": of(jinja.Time.Text), "ts_nodash": format("20060102T150405"),
		"ts_nodash_with_tz": of(func(date jinja.Time) string { return date.Compact() }),
		"logical_date":      logical, "execution_date": logical, "data_interval_start": start, "data_interval_end": end,
		"run_id": run.GetRun(), "macros": jinja.Macros(),
		"dag": &jinja.Object{Name: "dag", Why: onlyAirflow, Attr: map[string]jinja.Value{"dag_id": t.dag.id}},
		"dag_run": &jinja.Object{Name: "dag_run", Why: onlyAirflow, Attr: map[string]jinja.Value{
			"conf": conf, "run_id": run.GetRun(), "dag_id": t.dag.id, "logical_date": logical, "execution_date": logical,
			"data_interval_start": start, "data_interval_end": end,
		}},
		"var": changing, "conn": changing,
		"prev_ds": earlier, "prev_ds_nodash": earlier, "prev_execution_date": earlier, "prev_data_interval_start_success": earlier,
		"prev_data_interval_end_success": earlier, "prev_start_date_success": earlier, "prev_end_date_success": earlier,
	}
	for _, name := range []string{
		"conf", "inlets", "inlet_events", "next_ds", "next_ds_nodash", "next_execution_date", "outlets", "outlet_events", "test_mode",
		"tomorrow_ds", "tomorrow_ds_nodash", "yesterday_ds", "yesterday_ds_nodash", "triggering_asset_events", "triggering_dataset_events",
		"task_reschedule_count", "task_state_store", "partition_key", "partition_date", "exception", "reason", "map_index_template", "templates_dict",
	} {
		t.vars[name] = jinja.Refused(onlyAirflow)
	}
	t.params = t.readParams(t.dag.fields, "airflowDag.dag.params")
	t.checkParameters()
	t.confMembers = conf
	t.renderer = jinja.NewRenderer(t.vars)
}

func (t *translator) logicalDate() (jinja.Value, error) {
	if date := t.workflow.GetLogicalDate(); date != nil {
		return jinja.Time{Time: date.AsTime()}, nil
	}
	if !t.placeholders {
		return nil, errors.New("needs the run's logicalDate, which is missing (--logical-date)")
	}
	t.once("logicalDate is missing: %s stands in for it", standIn.Text())
	return standIn, nil
}

// interval is an end of the run's data interval, where the schedule leaves no doubt.
func (t *translator) interval(end bool) (jinja.Value, error) {
	date, err := t.logicalDate()
	if err != nil {
		return nil, err
	}
	length, known := t.dag.intervalLength()
	if !known {
		return nil, errors.New("depends on the DAG's schedule, which only Airflow follows: compute it from logical_date")
	}
	if !end {
		return date, nil
	}
	return jinja.Time{Time: date.(jinja.Time).Add(time.Duration(length))}, nil
}

// intervalLength is how long a run's data interval is, where it is always the same.
func (d *dag) intervalLength() (jinja.Delta, bool) {
	value, there := d.fields.Get("timetable")
	if !there {
		schedule, _ := d.fields.Get("schedule_interval")
		length, ok := decode(schedule).(jinja.Delta)
		return length, ok || schedule == nil
	}
	timetable, _ := value.(*jinja.Dict)
	kind, _ := timetable.Get("__type")
	inner, _ := timetable.Get("__var")
	settings, _ := inner.(*jinja.Dict)
	switch kind {
	case "airflow.timetables.simple.NullTimetable", "airflow.timetables.simple.OnceTimetable":
		return 0, true
	case "airflow.timetables.trigger.CronTriggerTimetable", "airflow.timetables.trigger.DeltaTriggerTimetable":
		length, _ := settings.Get("interval")
		return seconds(length)
	case "airflow.timetables.interval.DeltaDataIntervalTimetable":
		length, _ := settings.Get("delta")
		return seconds(length)
	}
	return 0, false
}

// conf is the run's.
func (t *translator) conf() *jinja.Dict {
	members := &jinja.Dict{}
	if given := t.workflow.GetConf(); given != nil {
		value, err := parseJSON(given.GetText())
		dict, ok := value.(*jinja.Dict)
		switch {
		case err != nil:
			t.faults.Add("conf", "%v", err)
		case ok:
			members = dict
		case value != nil:
			t.faults.Add("conf", "is %s, and should be an object", shown(value))
		}
	}
	if t.placeholders {
		members.Missing = func(key string) jinja.Value {
			t.once("conf has no %s: its name stands in for it", brief(key))
			return "<conf." + key + ">"
		}
	}
	return members
}

// readParams are the defaults of a DAG's or a task's params.
func (t *translator) readParams(fields *jinja.Dict, at string) *jinja.Dict {
	value, _ := fields.Get("params")
	params := &jinja.Dict{}
	add := func(name string, value jinja.Value) {
		param, ok := value.(*jinja.Dict)
		if _, is := param.Get("__class"); !ok || !is {
			params.Set(name, decode(value))
			return
		}
		value, _ = param.Get("default")
		if decoded := decode(value); decoded != (unknown{"arg_not_set"}) {
			params.Set(name, decoded)
			return
		}
		params.Set(name, jinja.Refused("has no value: give it one in parameters (--param)"))
	}
	switch value := value.(type) {
	case nil:
	case *jinja.Dict:
		for _, name := range value.Keys() {
			param, _ := value.Get(name)
			add(name, param)
		}
	case jinja.List:
		for i, each := range value {
			pair, ok := each.(jinja.List)
			if !ok || len(pair) != 2 {
				t.faults.Add(fmt.Sprintf("%s[%d]", at, i), "is no param")
				continue
			}
			name, _ := pair[0].(string)
			add(name, pair[1])
		}
	default:
		t.faults.Add(at, "is %s, and should be the params", shown(value))
	}
	return params
}

// checkParameters wants parameters to be params that there are: nobody reads any other.
func (t *translator) checkParameters() {
	if len(t.workflow.GetParameters()) == 0 {
		return
	}
	names := map[string]bool{}
	for _, name := range t.params.Keys() {
		names[name] = true
	}
	for _, op := range t.dag.operators {
		for _, name := range t.readParams(op.fields, fmt.Sprintf("airflowDag.dag.tasks[%d].params", op.index)).Keys() {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.workflow.GetParameters())) {
		if !names[name] {
			t.faults.Add("parameters["+brief(name)+"]", "DAG %s has no param of this name; it has %s", brief(t.dag.id), orNone(slices.Sorted(maps.Keys(names))))
		}
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return translators.SomeOf(names)
}

// paramsOf are a task's params with the values that this run has: defaults, then conf, then parameters.
func (t *translator) paramsOf(op *operator) *jinja.Dict {
	all := &jinja.Dict{}
	for _, from := range []*jinja.Dict{t.params, t.readParams(op.fields, fmt.Sprintf("airflowDag.dag.tasks[%d].params", op.index)), t.confMembers} {
		for _, name := range from.Keys() {
			value, _ := from.Get(name)
			all.Set(name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.workflow.GetParameters())) {
		value, err := parseJSON(t.workflow.GetParameters()[name].GetText())
		if err != nil {
			t.faults.Add("parameters["+brief(name)+"]", "%v", err)
		}
		all.Set(name, value)
	}
	for _, name := range all.Keys() {
		if value, _ := all.Get(name); t.placeholders {
			if _, missing := value.(jinja.Refused); missing {
				t.once("param %s has no value: its name stands in for it", brief(name))
				all.Set(name, "<params."+name+">")
			}
		}
	}
	return all
}

// variablesOf are those of one task.
func (x *translating) variablesOf() map[string]jinja.Value {
	op := x.operator
	own := map[string]jinja.Value{"task_id": op.id, "dag_id": x.dag.id, "run_id": x.workflow.GetRun().GetRun(), "xcom_pull": jinja.Func(x.pull)}
	instance := &jinja.Object{Name: "ti", Why: onlyAirflow, Attr: own}
	return map[string]jinja.Value{
		"params": x.paramsOf(op), "ti": instance, "task_instance": instance,
		"task": &jinja.Object{Name: "task", Why: onlyAirflow, Attr: map[string]jinja.Value{"task_id": op.id}},
		"task_instance_key_str": jinja.Lazy(func() (jinja.Value, error) {
			if x.workflow.GetLogicalDate() == nil && !x.placeholders {
				return x.dag.id + "__" + op.id + "__" + x.workflow.GetRun().GetRun(), nil
			}
			date, err := x.logicalDate()
			if err != nil {
				return nil, err
			}
			return x.dag.id + "__" + op.id + "__" + date.(jinja.Time).Format("20060102"), nil
		}),
	}
}
