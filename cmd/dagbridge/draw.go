package main

import (
	"fmt"
	"io"
	"strings"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

// drawDot writes the graph for Graphviz.
func drawDot(w io.Writer, plan *dagbridgev1.Plan) error {
	var b strings.Builder
	b.WriteString("digraph plan {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\"];\n  edge [fontname=\"Helvetica\", fontsize=10];\n")
	for _, task := range plan.GetTasks() {
		style := "solid"
		if task.GetHeld() {
			style = "dashed"
		}
		fmt.Fprintf(&b, "  %s [label=%s, style=%s];\n", dotQuote(task.GetTask()), dotQuote(nodeLabel(task)), style)
	}
	for _, edge := range plan.GetEdges() {
		style := "solid"
		if !edge.GetNative() {
			style = "dashed"
		}
		fmt.Fprintf(&b, "  %s -> %s [style=%s, label=%s];\n", dotQuote(edge.GetFrom()), dotQuote(edge.GetTo()), style, dotQuote(wrap(edge.GetWhy(), 40)))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// drawMermaid writes the graph for Mermaid. Its nodes are numbered: an id may be any text.
func drawMermaid(w io.Writer, plan *dagbridgev1.Plan) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	numbers := map[string]int{}
	number := func(task string) int {
		if _, ok := numbers[task]; !ok {
			numbers[task] = len(numbers)
		}
		return numbers[task]
	}
	for _, task := range plan.GetTasks() {
		fmt.Fprintf(&b, "  t%d[%s]\n", number(task.GetTask()), mermaidQuote(nodeLabel(task)))
	}
	known := len(numbers)
	for _, edge := range plan.GetEdges() {
		if n := number(edge.GetFrom()); n >= known { // an upstream of another run
			fmt.Fprintf(&b, "  t%d[%s]\n", n, mermaidQuote(edge.GetFrom()))
			known++
		}
		arrow := "-->"
		if !edge.GetNative() {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  t%d %s|%s| t%d\n", number(edge.GetFrom()), arrow, mermaidQuote(edge.GetWhy()), number(edge.GetTo()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func nodeLabel(task *dagbridgev1.Plan_PlannedTask) string {
	if n := task.GetInstances(); n > 0 {
		return fmt.Sprintf("%s [%d]", task.GetTask(), n)
	}
	return task.GetTask()
}

func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// mermaidQuote quotes a label; what Mermaid or the browser would read as markup goes as a character's number.
func mermaidQuote(s string) string {
	return `"` + strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "\n", " ").Replace(s) + `"`
}

// wrap breaks a sentence into lines of about so many characters.
func wrap(s string, width int) string {
	var lines []string
	var line string
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}
