package kfp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Types of parameters, as the pipeline declares them.
const (
	stringType  = "STRING"
	integerType = "NUMBER_INTEGER"
	doubleType  = "NUMBER_DOUBLE"
	booleanType = "BOOLEAN"
	listType    = "LIST"
	structType  = "STRUCT"
	statusType  = "TASK_FINAL_STATUS"
	configType  = "TASK_CONFIG"
)

// Typed is a JSON value as the type of a parameter has it: whole numbers without a fraction (the SDK writes 3 as 3.0). An error
// says, after the parameter's name, what is wrong.
func Typed(kind string, value json.RawMessage) (json.RawMessage, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return value, nil
	}
	first := value[0]
	switch kind {
	case stringType:
		if first == '"' {
			return value, nil
		}
	case integerType:
		if whole, ok := wholeNumber(string(value)); ok {
			return json.RawMessage(whole), nil
		}
	case doubleType:
		if first == '-' || first >= '0' && first <= '9' {
			return value, nil
		}
	case booleanType:
		if first == 't' || first == 'f' {
			return value, nil
		}
	case listType:
		if first == '[' {
			return value, nil
		}
	case structType, statusType, configType:
		if first == '{' {
			return value, nil
		}
		if first == '[' && kind == structType { // the SDK declares some lists so
			return value, nil
		}
	default:
		return nil, fmt.Errorf("is of the type %s, which is not known", brief(kind))
	}
	return nil, fmt.Errorf("is %s, and should be %s", brief(string(value)), words[kind])
}

// AsInput is a value as a task's input of a type: any value can be taken as a text, as KFP's driver does.
func AsInput(kind string, value json.RawMessage) (json.RawMessage, error) {
	if value = bytes.TrimSpace(value); kind == stringType && len(value) > 0 && value[0] != '"' && string(value) != "null" {
		return JSON(asText(value))
	}
	return Typed(kind, value)
}

var words = map[string]string{
	stringType: "a text", integerType: "a whole number", doubleType: "a number", booleanType: "true or false",
	listType: "a list", structType: "a mapping", statusType: "a mapping", configType: "a mapping",
}

// wholeNumber reads 3, 3.0 and 3e2 as they are meant; 64 bits and more survive.
func wholeNumber(text string) (string, bool) {
	if strings.Trim(text, "-0123456789") == "" && text != "" {
		return text, json.Valid([]byte(text))
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.IsInf(f, 0) {
		return "", false
	}
	whole, _ := big.NewFloat(f).Int(nil)
	return whole.String(), true
}

// ReadParameter is what a program wrote into the file of an output parameter: text, or the JSON of its type.
func ReadParameter(kind string, text []byte) (json.RawMessage, error) {
	if kind == stringType {
		return JSON(strings.ToValidUTF8(string(text), "\ufffd"))
	}
	word := bytes.TrimSpace(text)
	if kind == booleanType {
		word = bytes.ToLower(word) // Python's True
	}
	if !json.Valid(word) {
		return nil, fmt.Errorf("is %s, and should be %s", brief(string(text)), words[kind])
	}
	return Typed(kind, word)
}

// JSON writes a value with every character as it is.
func JSON(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// asText is a value in the place of its placeholder within a text.
func asText(value json.RawMessage) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return ""
	}
	switch first := value[0]; {
	case first == '"':
		var text string
		_ = json.Unmarshal(value, &text) // it is JSON
		return text
	case first == '-' || first >= '0' && first <= '9':
		if whole, ok := wholeNumber(string(value)); ok {
			return whole
		}
		f, _ := strconv.ParseFloat(string(value), 64)
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return string(value)
	}
	return compact.String()
}

// rootParameters are the values of the pipeline's own inputs: those of the request, else those that the file brings along, else the
// defaults. Without a value and with placeholders, one is shown by its name.
func (t *translator) rootParameters(brought map[string]json.RawMessage) map[string]*Value {
	declared := t.spec.Root.InputDefinitions.Parameters
	values := map[string]*Value{}
	for _, name := range sorted(t.workflow.GetParameters()) {
		if _, ok := declared[name]; !ok {
			t.faults.Add("parameters."+name, "the pipeline has no parameter %s; it has: %s", brief(name), strings.Join(sorted(declared), ", "))
		}
	}
	for _, name := range sorted(declared) {
		definition := declared[name]
		value := json.RawMessage(t.workflow.GetParameters()[name].GetText())
		if len(value) == 0 {
			value = brought[name]
		}
		switch {
		case len(value) > 0:
			typed, err := t.given(definition.ParameterType, value)
			if err != nil {
				t.faults.Add("parameters."+name, "%v", err)
				t.show(name) // so that whatever else is wrong is told, too
			}
			if values[name] = t.shown[name]; err == nil {
				values[name] = &Value{Constant: typed}
			}
		case len(definition.DefaultValue) > 0:
			typed, err := Typed(definition.ParameterType, definition.DefaultValue)
			if err != nil {
				t.fault("the pipeline", "the default of %s %v", brief(name), err)
				continue
			}
			values[name] = &Value{Constant: typed}
		case definition.IsOptional:
		case t.placeholders:
			values[name] = t.show(name)
		default:
			values[name] = t.show(name) // so that whatever else is wrong is told, too
			t.faults.Add("parameters."+name, "is missing: the pipeline has no default for it (--param %s=...)", name)
		}
	}
	return values
}

// show makes a value of an input that has none.
func (t *translator) show(name string) *Value {
	t.once("parameter %s has no value; it is shown as <%s>", name, name)
	text, _ := json.Marshal("<" + name + ">") // a string always has a JSON form
	value := &Value{Constant: text}
	t.shown[name] = value
	return value
}

// given is a value of the request's: a word that looks like a number is a text where the pipeline wants one.
func (t *translator) given(kind string, value json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(value) {
		return nil, errors.New("is not JSON")
	}
	typed, err := Typed(kind, value)
	if err != nil && kind == stringType && value[0] != '{' && value[0] != '[' {
		return json.RawMessage(strconv.Quote(string(value))), nil
	}
	return typed, err
}
