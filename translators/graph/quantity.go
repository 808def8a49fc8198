package graph

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// number has the digits a quantity may have. More, in an exponent above all, would make the parser multiply for hours.
var number = regexp.MustCompile(`^([+-]?)([0-9]{0,19}(?:\.[0-9]{0,18})?)(?:[eE][+-]?[0-9]{1,2}|([^0-9.+-][^0-9]*)?)$`)

// byteUnit is what people write for bytes where Kubernetes has k, M, G and Ki, Mi, Gi.
var byteUnit = regexp.MustCompile(`^(?i:\s*([kmgtpe])(i?)b?)$`)

// More is a mistake, and would overflow further on.
const maxCPU, maxMemory = "1M", "1Ei"

// Shared by all callers: compared only, since a quantity's String writes to it.
var mostCPU, mostMemory = resource.MustParse(maxCPU), resource.MustParse(maxMemory)

// CPU reads a number of CPUs as Kubernetes writes it ("4", "500m", "1.5"), in thousandths of a CPU, rounded up. None is 0.
// Its error is the rest of a sentence that begins with the quantity.
func CPU(s string) (int64, error) {
	q, unit, err := quantity(s)
	switch {
	case err == nil && q.Cmp(mostCPU) > 0:
		return 0, fmt.Errorf("is more than %s CPUs", maxCPU)
	case err == nil:
		return q.MilliValue(), nil
	case unit != "":
		return 0, fmt.Errorf(`is no number of CPUs: write %s, or thousandths ("500m")`, strings.TrimSpace(s[:len(s)-len(unit)]))
	}
	return 0, suggest(err, `a number of CPUs: write "4", "1.5" or "500m"`)
}

// Memory reads an amount of memory as Kubernetes writes it ("16Gi", "1.5G", "1e9"), in bytes, rounded up. None is 0. Its
// error is the rest of a sentence that begins with the quantity.
func Memory(s string) (int64, error) {
	q, unit, err := quantity(s)
	digits := strings.TrimSpace(strings.TrimSuffix(s, unit))
	parts := byteUnit.FindStringSubmatch(unit)
	switch {
	case errors.Is(err, errNegative):
	case err == nil && strings.TrimRight(s, "mun") != s:
		// Legal in Kubernetes, where it means thousandths of a byte; nobody who writes it wants that.
		return 0, fmt.Errorf("is a fraction of a byte: write %[1]sM or %[1]sMi", strings.TrimRight(s, "mun"))
	case err == nil && q.Cmp(mostMemory) > 0:
		return 0, fmt.Errorf("is more than %s", maxMemory)
	case err == nil:
		return q.Value(), nil
	case parts != nil:
		binary := strings.ToUpper(parts[1]) + "i"
		if parts[2] != "" {
			return 0, fmt.Errorf("is no amount of memory: write %s%s", digits, binary)
		}
		decimal := strings.TrimSuffix(binary, "i")
		if decimal == "K" {
			decimal = "k"
		}
		return 0, fmt.Errorf("is no amount of memory: write %[1]s%[2]s or %[1]s%[3]s", digits, decimal, binary)
	}
	return 0, suggest(err, `an amount of memory: write it as "16Gi", "500M" or a number of bytes`)
}

var (
	errNegative = errors.New("is negative")
	errNumber   = errors.New("is not a quantity")
)

func suggest(err error, what string) error {
	if errors.Is(err, errNegative) {
		return err
	}
	return fmt.Errorf("is not %s", what)
}

// quantity parses one and, where it cannot, tells the unit that was written after a well-formed number.
func quantity(s string) (q resource.Quantity, unit string, err error) {
	if s == "" {
		return q, "", nil
	}
	parts := number.FindStringSubmatch(s)
	if parts == nil || strings.Trim(parts[2], ".") == "" {
		return q, "", errNumber
	}
	q, err = resource.ParseQuantity(s)
	switch {
	case err != nil && parts[1] != "-":
		return q, parts[3], errNumber
	case err != nil || q.Sign() < 0:
		return q, "", errNegative
	}
	return q, "", nil
}
