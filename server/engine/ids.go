package engine

import (
	"strconv"
	"strings"

	"github.com/dagbridge/dagbridge/translators"
)

// jobOf is the job id in a token.
func jobOf(token string) string {
	id, _, _ := strings.Cut(token, ".")
	return id
}

// instanceID is the native id of an array's instance, as Slurm writes it.
func instanceID(base string, position int) string { return base + "_" + strconv.Itoa(position) }

// cutInstance takes an instance's native id apart; a single job's has no second part.
func cutInstance(id string) (base, position string) {
	base, position, _ = strings.Cut(id, "_")
	return base, position
}

// indices writes ascending positions as Slurm does: "0-3,7".
func indices(instances []translators.Instance) string {
	var b strings.Builder
	for i := 0; i < len(instances); {
		j := i
		for j+1 < len(instances) && instances[j+1].Position == instances[j].Position+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(instances[i].Position))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(instances[j].Position))
		}
		i = j + 1
	}
	return b.String()
}
