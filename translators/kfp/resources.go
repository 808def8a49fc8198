package kfp

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/translators/graph"
)

// gresType is what Slurm takes as the type of a GPU.
var gresType = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// resources says what the program needs: its limits, else its requests. The texts go before the numbers, which the SDK writes for
// older backends.
func (d *dag) resources(name string, s *Step, of resourcesSpec, task *dagbridgev1.Task) {
	quantity := func(what, limit, request string, read func(string) (int64, error)) string {
		limit, _ = d.now(name, s, "its "+what+" limit", limit)
		request, _ = d.now(name, s, "its "+what+" request", request)
		for _, word := range []string{limit, request} {
			if _, err := read(word); err != nil {
				d.fault(name, "its %s %s %v", what, brief(word), err)
				return ""
			}
		}
		most, _ := read(limit)
		if least, _ := read(request); limit != "" && least > most {
			d.fault(name, "its %s request %s is above its limit %s", what, request, limit)
		}
		return cmp.Or(limit, request)
	}
	r := &dagbridgev1.Resources{
		Cpu:    quantity("CPU", cmp.Or(of.ResourceCPULimit, number(of.CPULimit)), cmp.Or(of.ResourceCPURequest, number(of.CPURequest)), graph.CPU),
		Memory: quantity("memory", cmp.Or(of.ResourceMemoryLimit, bytesOf(of.MemoryLimit)), cmp.Or(of.ResourceMemoryRequest, bytesOf(of.MemoryRequest)), graph.Memory),
	}
	if a := of.Accelerator; a != nil {
		count, counted := d.now(name, s, "its number of accelerators", cmp.Or(a.ResourceCount, a.Count.String()))
		kind, known := d.now(name, s, "its type of accelerator", cmp.Or(a.ResourceType, a.Type))
		if n, err := strconv.ParseInt(cmp.Or(count, "0"), 10, 32); counted && (err != nil || n < 0) {
			d.fault(name, "its number of accelerators is %s", brief(count))
		} else if known && n > 0 {
			gpu := &dagbridgev1.Gpu{Count: new(int32(n))}
			if kind != "nvidia.com/gpu" && gresType.MatchString(kind) {
				gpu.Type = kind
			} else if kind != "nvidia.com/gpu" && kind != "" {
				d.notice(d.at(name), "any GPU is asked for; the pipeline's accelerator is %s", kind)
			}
			r.Gpus = []*dagbridgev1.Gpu{gpu}
		}
	}
	if r.GetCpu()+r.GetMemory() != "" || len(r.GetGpus()) > 0 {
		task.Resources = r
	}
}

// number is a count of CPUs; 0 was left out.
func number(value float64) string {
	if value == 0 || math.IsNaN(value) {
		return ""
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// bytesOf is a memory size in units of 10^9 bytes; 68.719476736 is 64Gi.
func bytesOf(value float64) string {
	if value == 0 {
		return ""
	}
	exact, ok := new(big.Rat).SetString(strconv.FormatFloat(value, 'f', -1, 64))
	if !ok {
		return ""
	}
	exact.Mul(exact, big.NewRat(1e9, 1))
	return strings.TrimSuffix(exact.FloatString(0), ".")
}
