package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load reads the configuration at path. An error lists all faults, a line each, with their place in the file.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	return Parse(path, text)
}

// Parse reads a configuration; name is what its faults call the file.
func Parse(name string, text []byte) (*Config, error) {
	faults := &Faults{File: name}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // nothing but comments: the defaults
		return Default(), nil
	case err != nil:
		faults.add(0, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil, faults
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		faults.add(second.Line, "", "there is a second YAML document; a configuration is one")
	}
	c := Default()
	lines := read(document.Content[0], c, faults)
	unread := slices.Clone(faults.List)
	for _, fault := range c.faults() {
		// A value that could not be read is not blamed a second time for being missing.
		if slices.ContainsFunc(unread, func(u Fault) bool { return within(fault.Path, u.Path) }) {
			continue
		}
		fault.Line = lines.nearest(fault.Path)
		faults.List = append(faults.List, fault)
	}
	if err := faults.orNil(); err != nil {
		return nil, err
	}
	return c, nil
}

// Validate finds everything that is wrong with a configuration that was not read from a file.
func (c *Config) Validate() error {
	return (&Faults{List: c.faults()}).orNil()
}
