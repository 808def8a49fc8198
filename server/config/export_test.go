package config

import "reflect"

// WithDefaults is a part of the configuration as it is before the file is read into it.
func WithDefaults(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if d, ok := v.Interface().(defaulter); ok {
		d.setDefaults()
	}
	return v.Elem()
}
