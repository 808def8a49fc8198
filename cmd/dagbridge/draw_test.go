package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

var drawn = &dagbridgev1.Plan{
	Tasks: []*dagbridgev1.Plan_PlannedTask{{Task: `say "hi"`, Instances: 3}, {Task: `b\n`, Held: true}},
	Edges: []*dagbridgev1.Plan_PlannedEdge{
		{From: `say "hi"`, To: `b\n`, Native: false, Why: `when it <is> skipped, "all_done" starts it and afterok does not`},
		{From: "elsewhere", To: `say "hi"`, Native: true, Why: "afterok"},
	},
}

func TestDrawDot(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, drawDot(&out, drawn))
	require.Equal(t, `digraph plan {
  rankdir=LR;
  node [shape=box, fontname="Helvetica"];
  edge [fontname="Helvetica", fontsize=10];
  "say \"hi\"" [label="say \"hi\" [3]", style=solid];
  "b\\n" [label="b\\n", style=dashed];
  "say \"hi\"" -> "b\\n" [style=dashed, label="when it <is> skipped, \"all_done\" starts\nit and afterok does not"];
  "elsewhere" -> "say \"hi\"" [style=solid, label="afterok"];
}
`, out.String())
}

func TestDrawMermaid(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, drawMermaid(&out, drawn))
	require.Equal(t, `flowchart LR
  t0["say #quot;hi#quot; [3]"]
  t1["b\n"]
  t0 -.->|"when it #lt;is#gt; skipped, #quot;all_done#quot; starts it and afterok does not"| t1
  t2["elsewhere"]
  t2 -->|"afterok"| t0
`, out.String())
}
