package kfp

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// platforms takes of what the pipeline asks of Kubernetes what every scheduler has, and tells of the rest.
func (d *dag) platforms(name, label string, task *dagbridgev1.Task) {
	asked := d.platform.Platforms.Kubernetes.DeploymentSpec.Executors[label]
	var rest []string
	for _, key := range sorted(asked) {
		switch key {
		case "activeDeadlineSeconds":
			var seconds json.Number
			if err := json.Unmarshal(asked[key], &seconds); err != nil {
				d.fault(name, "activeDeadlineSeconds %s is no number", brief(string(asked[key])))
				continue
			}
			limit, err := time.ParseDuration(seconds.String() + "s")
			if err != nil || limit <= 0 {
				d.fault(name, "activeDeadlineSeconds %s is no time", brief(seconds.String()))
				continue
			}
			if task.Resources == nil {
				task.Resources = &dagbridgev1.Resources{}
			}
			task.Resources.TimeLimit = durationpb.New(limit)
		default:
			rest = append(rest, key)
		}
	}
	if slices.Sort(rest); len(rest) > 0 {
		d.notice(d.at(name), "what the pipeline asks of Kubernetes is not passed on: %s", strings.Join(rest, ", "))
	}
}
