package airflow

import (
	"math"
	"time"

	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// reference is an XComArg: another task's result, given as an argument.
type reference struct {
	task, key string
	// why it cannot be followed; empty if it can.
	why string
}

// unknown is a value of a type that is not known here.
type unknown struct{ kind string }

// decode takes Airflow's encoding off a value: {"__type": ..., "__var": ...} becomes what it stands for.
func decode(v jinja.Value) jinja.Value {
	switch v := v.(type) {
	case jinja.List:
		list := make(jinja.List, len(v))
		for i, each := range v {
			list[i] = decode(each)
		}
		return list
	case *jinja.Dict:
		kind, typed := v.Get("__type")
		value, _ := v.Get("__var")
		if !typed {
			return decodeMembers(v)
		}
		return decodeTyped(kind, value)
	}
	return v
}

func decodeMembers(d *jinja.Dict) *jinja.Dict {
	members := &jinja.Dict{}
	for _, key := range d.Keys() {
		value, _ := d.Get(key)
		members.Set(key, decode(value))
	}
	return members
}

func decodeTyped(kind, value jinja.Value) jinja.Value {
	switch kind {
	case "dict":
		if members, ok := value.(*jinja.Dict); ok {
			return decodeMembers(members)
		}
	case "set", "frozenset", "tuple", "list":
		if list, ok := value.(jinja.List); ok {
			return decode(list)
		}
	case "timedelta":
		if seconds, ok := seconds(value); ok {
			return seconds
		}
	case "datetime":
		if n, ok := float(value); ok && math.Abs(n) < 1e11 {
			whole, part := math.Modf(n)
			return jinja.Time{Time: time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()}
		}
	case "xcomref":
		if members, ok := value.(*jinja.Dict); ok {
			return decodeReference(members)
		}
	}
	name, _ := kind.(string)
	return unknown{name}
}

func decodeReference(d *jinja.Dict) reference {
	task, _ := d.Get("task_id")
	key, _ := d.Get("key")
	id, isPlain := task.(string)
	word, _ := key.(string)
	if kind, there := d.Get("type"); there && kind != "plain" || !isPlain {
		name, _ := kind.(string)
		return reference{why: "results of other tasks that pass through Python functions (" + name + ") are not supported"}
	}
	if word == "" {
		word = returnValue
	}
	return reference{task: id, key: word}
}

// returnValue is the output that is a task's result.
const returnValue = "return_value"

func float(v jinja.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// seconds is a duration of a number of them.
func seconds(v jinja.Value) (jinja.Delta, bool) {
	if d, ok := v.(jinja.Delta); ok {
		return d, true
	}
	n, ok := float(v)
	if !ok || math.Abs(n) > 1e9 {
		return 0, false
	}
	return jinja.Delta(time.Duration(math.Round(n * 1e9))), true
}

// shown is a value in a sentence.
func shown(v jinja.Value) string {
	switch v := v.(type) {
	case nil:
		return "missing"
	case string:
		return brief(v)
	case *jinja.Dict:
		return "an object"
	case jinja.List:
		return "a list"
	case unknown:
		return "a " + v.kind
	case reference:
		return "the result of another task"
	}
	text, err := jinja.Str(v)
	if err != nil {
		return "a value"
	}
	return text
}
