package kfp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	celref "cel.dev/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxCost bounds how long an expression may take, in CEL's own measure.
const maxCost = 1_000_000

// Expressions are those of pipelines, in CEL with the variables that KFP's driver declares
// (backend/src/v2/expression of github.com/kubeflow/pipelines): a condition sees the executor's input as inputs.parameter_values, and a
// selector the value, as JSON text, as string_value. parseJson reads text. Numbers are doubles, as in the protobuf values of KFP.
type Expressions struct {
	conditions, selectors *cel.Env
	selected              map[string]cel.Program
}

// NewExpressions prepares them.
func NewExpressions() (*Expressions, error) {
	parseJSON := cel.Function("parseJson", cel.Overload("parse_json", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(func(text celref.Val) celref.Val {
		var value any
		if err := json.Unmarshal([]byte(text.Value().(string)), &value); err != nil {
			return types.NewErr("parseJson: %v", err)
		}
		return types.DefaultTypeAdapter.NativeToValue(value)
	})))
	conditions, err := cel.NewEnv(parseJSON, cel.Variable("inputs", cel.MapType(cel.StringType, cel.MapType(cel.StringType, cel.DynType))))
	if err != nil {
		return nil, err
	}
	variables := []cel.EnvOption{parseJSON, cel.Variable("string_value", cel.StringType)}
	for _, name := range []string{"number_value", "bool_value", "struct_value", "list_value", "null_value"} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	selectors, err := cel.NewEnv(variables...)
	return &Expressions{conditions: conditions, selectors: selectors, selected: map[string]cel.Program{}}, err
}

// Compile finds what is wrong with a condition before its inputs are known.
func (e *Expressions) Compile(condition string) error {
	_, err := program(e.conditions, condition)
	return err
}

// Condition judges one over parameters. An error says what the expression language cannot do with them.
func (e *Expressions) Condition(condition string, parameters map[string]json.RawMessage) (bool, error) {
	compiled, err := program(e.conditions, condition)
	if err != nil {
		return false, err
	}
	values := map[string]any{}
	for name, text := range parameters {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return false, fmt.Errorf("%s is no JSON: %w", name, err)
		}
		values[name] = value
	}
	result, _, err := compiled.Eval(map[string]any{"inputs": map[string]map[string]any{"parameter_values": values}})
	if err != nil {
		return false, err
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("is %v, neither true nor false", result.Value())
	}
	return holds, nil
}

// Select takes a part of a JSON value.
func (e *Expressions) Select(value json.RawMessage, selector string) (json.RawMessage, error) {
	compiled := e.selected[selector]
	if compiled == nil {
		var err error
		if compiled, err = program(e.selectors, selector); err != nil {
			return nil, fmt.Errorf("the selector %s: %w", brief(selector), err)
		}
		e.selected[selector] = compiled
	}
	var native any
	if err := json.Unmarshal(value, &native); err != nil {
		return nil, err
	}
	variables := map[string]any{"string_value": asText(value), "number_value": nil, "bool_value": nil, "struct_value": nil, "list_value": nil, "null_value": nil}
	switch native.(type) {
	case float64:
		variables["number_value"] = native
	case bool:
		variables["bool_value"] = native
	case map[string]any:
		variables["struct_value"] = native
	case []any:
		variables["list_value"] = native
	}
	result, _, err := compiled.Eval(variables)
	if err != nil {
		return nil, fmt.Errorf("the selector %s, of %s: %w", brief(selector), brief(string(value)), err)
	}
	part, err := result.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("the selector %s, of %s: %w", brief(selector), brief(string(value)), err)
	}
	return JSON(part.(*structpb.Value).AsInterface())
}

func program(env *cel.Env, text string) (cel.Program, error) {
	const longest = 64 << 10
	if len(text) > longest {
		return nil, fmt.Errorf("has %d characters, %d at most are taken", len(text), longest)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		first, _, _ := strings.Cut(issues.Err().Error(), "\n")
		return nil, errors.New(strings.TrimPrefix(first, "ERROR: "))
	}
	return env.Program(checked, cel.CostLimit(maxCost))
}
